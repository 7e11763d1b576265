// @ts-check
/** Entry point of the studio: top bar, the screen named by the address, keyboard shortcuts. */
import { get } from "./core/api.js";
import { canvasNote } from "./core/canvas.js";
import { h, replace } from "./core/dom.js";
import { clearNotices, notices, showError } from "./core/notice.js";
import { parseRoute } from "./core/route.js";
import { restoreScroll, savedScroll, trackScroll } from "./core/scroll.js";
import { applyTheme, watchTheme } from "./core/theme.js";
import { lessonList } from "./lessons/lesson-list.js";
import { lesson } from "./lessons/lesson.js";
import { compare } from "./screens/compare.js";
import { home } from "./screens/home.js";
import { inspector } from "./screens/inspector.js";
import { TopBar } from "./screens/top-bar.js";
import { training } from "./screens/training.js";
import { vocabulary } from "./screens/vocabulary.js";
import { openTrace } from "./trace/server-source.js";
import { listenForKeys } from "./widgets/keys.js";
import { RunProgress } from "./widgets/run-progress.js";

/** @type {import("./core/types.js").Screen|null} */
let screen = null;
let requests = 0;
/** Whether a screen was shown before: the first one leaves the focus where the browser has it. */
let arrived = false;

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
const opening = new RunProgress();
bar.node.prepend(skip);
bar.node.append(opening.node);
replace(app, bar.node, canvasNote(), notices, stage);
watchTheme(() => screen?.redraw());

/** @param {string[]} parts @param {URLSearchParams} query */
async function openScreen([name, id], query) {
  if (name === "t" && id) return inspector(await openTrace(id), query);
  if (name === "runs" && id) return training(id);
  if (name === "embed" && id) return vocabulary(id, query);
  if (name === "compare") return compare(query);
  if (name === "learn") return id ? lesson(id, query) : lessonList();
  return home((model) => bar.choose(model));
}

/** Shows the top of a new screen, or where one was in it before, and moves the focus to its heading. @param {number|null} top */
function arrive(top) {
  restoreScroll(top ?? 0);
  const heading = stage.querySelector("h1");
  if (arrived && heading) {
    if (!heading.hasAttribute("tabindex")) heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  arrived = true;
}

async function show() {
  const request = ++requests;
  const top = savedScroll();
  const { parts, query } = parseRoute();
  clearNotices();
  if (screen?.follow && parts[0] === "t" && parts[1] === screen.header?.id) {
    opening.hide();
    await screen.follow(query);
    if (request !== requests) return;
    if (top !== null) restoreScroll(top);
    document.documentElement.dataset.ready = location.hash;
    return;
  }
  opening.show(parts[0] === "embed" ? "Loading the word vectors" : "Loading");
  try {
    await bar.refresh();
    const next = await openScreen(parts, query);
    if (request !== requests) return next.leave();
    screen?.leave();
    screen = next;
    if (next.header) bar.show(next.header);
    if (next.model) bar.pick(next.model);
    document.title = `${next.title} – regard studio`;
    replace(stage, next.node);
    arrive(top);
    document.documentElement.dataset.ready = location.hash || "#/";
  } catch (error) {
    if (request !== requests) return;
    screen?.leave();
    screen = null;
    const start = h("p", {}, h("a", { href: "#/" }, "Go to the start page"));
    replace(stage, h("main", { class: "home", tabindex: "-1" }, h("h1", {}, "This cannot be shown"), start));
    arrive(null);
    showError(error);
  } finally {
    if (request === requests) opening.hide();
  }
}

listenForKeys(() => screen, bar.input);
trackScroll();
window.addEventListener("hashchange", show);
window.addEventListener("unhandledrejection", (event) => showError(event.reason));
await show();
