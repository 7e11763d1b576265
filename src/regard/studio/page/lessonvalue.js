// @ts-check
/** A value of a lesson: a number, a vector or a matrix in brackets, a table, a heat map, curves, arcs, or a tree. */
import { arcs } from "./arcs.js";
import { curves } from "./curves.js";
import { h, replace, word } from "./dom.js";
import { markup } from "./markup.js";
import { matrix } from "./matrix.js";
import { searchTree } from "./searchtree.js";

/**
 * @typedef {{name: string, sign: string, tree: any, axes: string[], labels: Record<string, string[]>, data: any,
 *   shown: any, look: "numbers"|"weights"|"signed"|"arcs"|"line"|"log"|"tree", moved?: boolean, was?: string|null}} Value
 */

/** Its name alone. @param {Value} value */
export function named(value) {
  return h("span", { class: "lesson-name" }, markup(value.tree));
}

/**
 * @param {Value} value
 * @param {boolean} [result] whether it came out, and did not go in
 * @param {string} [followed] the word whose arcs are drawn first
 */
export function value(value, result = false, followed) {
  const changed = value.moved
    ? h("span", { class: "yours" }, value.was ? ` the lesson has ${value.was}` : " another than the lesson's")
    : null;
  return h(
    "div",
    { class: `lesson-value ${result ? "result" : "operand"}${value.moved ? " moved" : ""}`, "data-value": value.name },
    h(
      "span",
      { class: "lesson-sign" },
      result ? h("span", { class: "arrow", "aria-hidden": "true" }, "→ ") : null,
      named(value),
      " =",
    ),
    drawn(value, followed),
    changed,
  );
}

/** @param {Value} value @param {string} [followed] @returns {Node} */
function drawn(value, followed) {
  if (value.look === "line" || value.look === "log") return curves(value);
  if (value.look === "tree") return searchTree(value);
  if (value.look === "arcs") return h("div", { class: "lesson-wide" }, lines(value, followed), heat(value, "weight"));
  if (value.look === "signed") return h("div", { class: "lesson-wide" }, heat(value, "signed"));
  if (value.look === "weights" && value.axes.length === 2 && value.labels[value.axes[0]] && value.labels[value.axes[1]])
    return h("div", { class: "lesson-wide" }, heat(value, "weight"));
  if (!value.axes.length) return one(value.data, value.shown);
  return table(value);
}

/** @param {any} data @param {string} shown */
function one(data, shown) {
  if (typeof data === "string") return h("bdi", { class: "lesson-text", dir: "auto", "data-exact": data }, `“${data}”`);
  return h("span", { class: "value", "data-exact": String(data) }, shown.replace(/-/g, "−"));
}

/** @param {Value} value */
function table(value) {
  const two = value.axes.length === 2;
  const [rows, cells] = two ? [value.data, value.shown] : [[value.data], [value.shown]];
  const across = value.labels[value.axes[value.axes.length - 1]];
  const down = two ? value.labels[value.axes[0]] : null;
  const texts = typeof rows[0]?.[0] === "string";
  const weights = value.look === "weights";
  const head = across
    ? h(
        "thead",
        {},
        h("tr", {}, down ? h("td", {}) : null, ...across.map((name) => h("th", { scope: "col" }, word(name)))),
      )
    : null;
  const body = rows.map((/** @type {any[]} */ row, /** @type {number} */ i) =>
    h(
      "tr",
      {},
      down ? h("th", { scope: "row" }, word(down[i])) : null,
      ...row.map((item, j) => cell(item, cells[i][j], texts, weights)),
    ),
  );
  return h(
    "div",
    { class: "scroll lesson-scroll", tabindex: "0", role: "region", "aria-label": value.sign },
    h(
      "table",
      { class: `lesson-table${across ? "" : " brackets"}${texts ? " texts" : ""}` },
      head,
      h("tbody", {}, ...body),
    ),
  );
}

/** @param {any} item @param {string} shown @param {boolean} texts @param {boolean} weight */
function cell(item, shown, texts, weight) {
  if (texts) return h("td", { "data-exact": item }, word(item));
  const made = h("td", { "data-exact": String(item) }, shown.replace(/-/g, "−"));
  if (!weight) return made;
  made.classList.add("share");
  const share = Math.max(0, Math.min(1, Number(item)));
  made.append(h("span", { class: "meter", "aria-hidden": "true" }));
  /** @type {HTMLElement} */ (made.lastChild).style.width = `${Math.round(share * 100)}%`;
  return made;
}

/** @param {Value} value @param {import("./colour.js").Ramp} ramp */
function heat(value, ramp) {
  const [rows, columns] = [value.data.length, value.data[0].length];
  const names = (/** @type {string} */ axis, /** @type {number} */ size) =>
    value.labels[axis] ?? Array.from({ length: size }, (_, i) => String(i));
  const numbers = Float64Array.from(value.data.flat());
  const top = ramp === "weight" ? 1 : numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 1e-12);
  return matrix({
    title: value.sign,
    numbers,
    rows: names(value.axes[0], rows),
    columns: names(value.axes[1], columns),
    rowTitle: value.axes[0],
    columnTitle: value.axes[1],
    ramp,
    top,
    largest: rows > 24 ? 16 : rows > 8 ? 36 : 44,
  });
}

/** @param {Value} value @param {string} [followed] */
function lines(value, followed) {
  const node = h("div", {});
  const numbers = Float64Array.from(value.data.flat());
  const [rows, columns] = value.axes.map((axis) => value.labels[axis]);
  /** @param {number|null} query */
  const draw = (query) => replace(node, arcs({ numbers, rows, columns, same: true, query, onquery: draw }));
  const at = rows.indexOf(followed ?? "");
  draw(at < 0 ? null : at);
  return node;
}
