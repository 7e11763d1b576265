// @ts-check
/** The keys. */
import { h } from "./dom.js";

export const KEYS = [
  ["← → ↑ ↓", "move in a matrix, a strip or the heads"],
  ["Enter", "explain the number"],
  ["[ ]", "previous, next layer"],
  ["{ }", "previous, next head"],
  [", .", "step back, step on"],
  ["Space", "play the steps"],
  ["/", "type a sentence"],
  ["e", "export"],
  ["?", "this list"],
  ["Esc", "close"],
];

export function helpDialog() {
  const dialog = h(
    "dialog",
    { "aria-label": "Keys", onclose: () => dialog.remove() },
    h("h2", {}, "Keys"),
    h("dl", { class: "keys" }, ...KEYS.flatMap(([keys, text]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, text)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
