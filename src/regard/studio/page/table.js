// @ts-check
/** Tables: what they have in common. */
import { h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * A table that scrolls in its own box, so that the page never does. A column without a name has no heading.
 * @param {string} label spoken
 * @param {string[]} columns
 * @param {Node[]} rows
 * @param {{kind?: string, caption?: string|null}} [options]
 */
export function table(label, columns, rows, { kind = "numbers", caption = null } = {}) {
  const head = columns.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {})));
  return scrolled(
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
export function scrolled(label, node) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, node);
}

/** @param {Child} name @param {Child[]} cells @param {string|null} [kind] */
export function line(name, cells, kind = null) {
  return h("tr", { class: kind }, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell)));
}
