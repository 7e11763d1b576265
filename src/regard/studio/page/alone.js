// @ts-check
/** Starts the page that is one file: one trace, nobody to ask, nothing to load. */
import { h, replace } from "./dom.js";
import { embeddedTrace } from "./embedded.js";
import { helpDialog } from "./help.js";
import { inspector } from "./inspector.js";
import { notices, tell } from "./notice.js";
import { route } from "./route.js";
import { applyTheme, watchTheme } from "./theme.js";
import { always } from "./topbar.js";

async function start() {
  applyTheme();
  const app = /** @type {HTMLElement} */ (document.getElementById("app"));
  const here = route();
  const query = here.parts.length ? here.query : new URLSearchParams(app.dataset.open);
  const screen = await inspector(embeddedTrace(), query);
  const bar = h("header", { class: "topbar" }, h("span", { class: "brand" }, "regard"), h("span", { class: "ask" }));
  bar.append(...always(() => screen.redraw()));
  replace(app, bar, notices, screen.node);
  watchTheme(() => screen.redraw());
  document.title = `${screen.title} – regard`;
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "?") helpDialog();
    else if (screen.key(event)) event.preventDefault();
  });
  window.addEventListener("unhandledrejection", (event) => tell(event.reason));
  document.documentElement.dataset.ready = "alone";
}

start().catch(tell);
