// @ts-check
/** Entry point of the single-file page: one embedded trace, no server. */
import { canvasNote } from "./core/canvas.js";
import { h, replace } from "./core/dom.js";
import { notices, showError } from "./core/notice.js";
import { parseRoute } from "./core/route.js";
import { applyTheme, watchTheme } from "./core/theme.js";
import { inspector } from "./screens/inspector.js";
import { commonButtons } from "./screens/top-bar.js";
import { embeddedTrace } from "./trace/embedded.js";
import { listenForKeys } from "./widgets/keys.js";

async function start() {
  applyTheme();
  const app = /** @type {HTMLElement} */ (document.getElementById("app"));
  const route = parseRoute();
  const query = route.parts.length ? route.query : new URLSearchParams(app.dataset.open);
  const screen = await inspector(embeddedTrace(), query);
  const bar = h(
    "header",
    { class: "topbar" },
    h("span", { class: "brand" }, "regard"),
    h("span", { class: "run-form" }),
  );
  bar.append(...commonButtons(() => screen.redraw()));
  replace(app, bar, canvasNote(), notices, screen.node);
  watchTheme(() => screen.redraw());
  document.title = `${screen.title} – regard`;
  listenForKeys(() => screen);
  window.addEventListener("hashchange", () => screen.follow?.(parseRoute().query));
  window.addEventListener("unhandledrejection", (event) => showError(event.reason));
  document.documentElement.dataset.ready = "standalone";
}

start().catch(showError);
