// @ts-check
/** Tables in scrollable boxes. */
import { h } from "../core/dom.js";

/** @typedef {import("../core/dom.js").Child} Child */

/**
 * A table in its own scrollable box, so that the page never scrolls sideways. Unnamed columns have no heading.
 * @param {string} label for screen readers
 * @param {string[]} columns
 * @param {Node[]} rows
 * @param {{kind?: string, caption?: string|null}} [options]
 */
export function table(label, columns, rows, { kind = "numbers", caption = null } = {}) {
  const head = columns.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {})));
  return scrollBox(
    label,
    h(
      "table",
      { class: kind },
      caption ? h("caption", { class: "muted" }, caption) : null,
      h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...rows),
    ),
  );
}

/** @param {string} label @param {Node} node */
export function scrollBox(label, node) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, node);
}

/** @param {Child} name @param {Child[]} cells @param {string|null} [kind] */
export function tableRow(name, cells, kind = null) {
  return h("tr", { class: kind }, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell)));
}
