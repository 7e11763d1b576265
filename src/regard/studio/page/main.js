// @ts-check
/** Starts the page: the bar on top, the screen that the address names, the keys. */
import { get, openTrace } from "./api.js";
import { h, replace } from "./dom.js";
import { helpDialog } from "./help.js";
import { home } from "./home.js";
import { inspector } from "./inspector.js";
import { learn } from "./learn.js";
import { lineup } from "./lineup.js";
import { hush, notices, tell } from "./notice.js";
import { route } from "./route.js";
import { applyTheme, watchTheme } from "./theme.js";
import { TopBar } from "./topbar.js";
import { training } from "./training.js";
import { vocabulary } from "./vocabulary.js";

/** @type {import("./inspector.js").Screen|null} */
let screen = null;
let turn = 0;

applyTheme();
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const stage = h("div", { class: "screen" });
const info = await get("info");
const bar = new TopBar(info, () => screen?.redraw());
const skip = h(
  "a",
  {
    class: "skip",
    href: "#/",
    onclick: (/** @type {Event} */ event) => {
      event.preventDefault();
      stage.querySelector("main")?.focus();
    },
  },
  "Skip to the content",
);
bar.node.prepend(skip);
replace(app, bar.node, notices, stage);
watchTheme(() => screen?.redraw());

/** @param {string[]} parts @param {URLSearchParams} query */
async function opened(parts, query) {
  if (parts[0] === "t" && parts[1]) return inspector(await openTrace(parts[1]), query);
  if (parts[0] === "runs" && parts[1]) return training(parts[1]);
  if (parts[0] === "embed" && parts[1]) return vocabulary(parts[1], query);
  if (parts[0] === "compare") return lineup(query, info.sentence);
  if (parts[0] === "learn") return learn(parts[1], query);
  return home(
    (model) => bar.choose(model),
    () => bar.refresh().catch(tell),
  );
}

async function show() {
  const mine = ++turn;
  const { parts, query } = route();
  hush();
  try {
    await bar.refresh();
    const next = await opened(parts, query);
    if (mine !== turn) return next.leave();
    screen?.leave();
    screen = next;
    if (next.header) bar.show(next.header);
    if (next.model) bar.pick(next.model);
    document.title = `${next.title} – regard studio`;
    replace(stage, next.node);
    document.documentElement.dataset.ready = location.hash || "#/";
  } catch (error) {
    if (mine !== turn) return;
    screen?.leave();
    screen = null;
    replace(
      stage,
      h(
        "main",
        { class: "home", tabindex: "-1" },
        h("h1", {}, "This cannot be shown"),
        h("p", {}, h("a", { href: "#/" }, "Go to the start page")),
      ),
    );
    tell(error);
  }
}

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, dialog");
  if (event.key === "Escape" && event.target === bar.input) bar.input.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const pressing = event.target instanceof HTMLElement && event.target.closest("button, a, summary, [role=button]");
  if (event.key === " " && pressing) return; // Space presses what has the focus
  if (event.key === "/") {
    event.preventDefault();
    bar.input.focus();
    bar.input.select();
  } else if (event.key === "?") helpDialog();
  else if (screen?.key(event)) event.preventDefault();
});
window.addEventListener("hashchange", show);
window.addEventListener("unhandledrejection", (event) => tell(event.reason));
await show();
