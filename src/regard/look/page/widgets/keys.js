// @ts-check
/** Keyboard shortcuts of the page and their help dialog. */
import { h, openDialog } from "../core/dom.js";

/** @typedef {import("../core/types.js").Screen} Screen */

const KEYS = [
  ["← → ↑ ↓", "move in the picture, a matrix, a vector or the heads"],
  ["Enter", "open the part, explain the number"],
  ["[ ]", "previous, next layer"],
  ["{ }", "previous, next head"],
  [", .", "previous, next step"],
  ["Space", "play the computation or the steps"],
  ["/", "type a sentence"],
  ["e", "export"],
  ["?", "this list"],
  ["Esc", "close, or go up a level of the picture"],
];

export function helpDialog() {
  const entries = KEYS.flatMap(([keys, text]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, text)]);
  openDialog("Keys", h("dl", { class: "keys" }, ...entries));
}

/** Passes keys to the screen, except while typing. @param {() => Screen|null} screen @param {HTMLInputElement} [input] focused by "/" */
export function listenForKeys(screen, input) {
  document.addEventListener("keydown", (event) => {
    const target = event.target instanceof HTMLElement ? event.target : null;
    if (event.key === "Escape" && input && target === input) input.blur();
    if (target?.closest("input, select, textarea, dialog")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === " " && target?.closest("button, a, summary, [role=button]")) return; // Space presses the button
    if (event.key === "/" && input) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === "?") helpDialog();
    else if (screen()?.key(event)) event.preventDefault();
  });
}
