// @ts-check
/** A value of a lesson: number, vector or matrix in brackets, table, heat map, curves, arcs or tree. */
import { h, replace, word } from "../core/dom.js";
import { arcs } from "../widgets/arcs.js";
import { curves } from "../widgets/chart.js";
import { mathFromTree } from "../widgets/formula.js";
import { matrix } from "../widgets/matrix.js";
import { searchTree } from "../widgets/search-tree.js";

/**
 * @typedef {{name: string, sign: string, tree: any, axes: string[], labels: Record<string, string[]>, data: any,
 *   text: any, look: "numbers"|"weights"|"signed"|"arcs"|"line"|"log"|"tree"|"records"|"listing", changed?: boolean, original?: string|null}} Value
 */

/** Name of a value. @param {Value} value */
export function valueName(value) {
  return h("span", { class: "lesson-name" }, mathFromTree(value.tree));
}

/**
 * @param {Value} value
 * @param {boolean} [result] whether it is a result and not an operand
 * @param {string} [selectedWord] word whose arcs are shown first
 */
export function value(value, result = false, selectedWord) {
  const changed = value.changed
    ? h(
        "span",
        { class: "changed-note" },
        value.original ? ` the lesson has ${value.original}` : " changed from the lesson",
      )
    : null;
  return h(
    "div",
    {
      class: `lesson-value ${result ? "result" : "operand"}${value.changed ? " changed" : ""}`,
      "data-value": value.name,
    },
    h(
      "span",
      { class: "lesson-sign" },
      result ? h("span", { class: "arrow", "aria-hidden": "true" }, "→ ") : null,
      valueName(value),
      " =",
    ),
    drawValue(value, selectedWord),
    changed,
  );
}

/** @param {Value} value @param {string} [selectedWord] @returns {Node} */
function drawValue(value, selectedWord) {
  if (value.look === "line" || value.look === "log") return curves(value);
  if (value.look === "tree") return searchTree(value);
  if (value.look === "records") return records(value);
  if (value.look === "listing") return listing(value);
  if (value.look === "arcs")
    return h("div", { class: "lesson-wide" }, attentionArcs(value, selectedWord), heatMap(value, "weight"));
  if (value.look === "signed") return h("div", { class: "lesson-wide" }, heatMap(value, "signed"));
  if (value.look === "weights" && value.axes.length === 2 && value.labels[value.axes[0]] && value.labels[value.axes[1]])
    return h("div", { class: "lesson-wide" }, heatMap(value, "weight"));
  if (!value.axes.length) return scalar(value.data, value.text);
  return table(value);
}

/** @param {any} data @param {string} text */
function scalar(data, text) {
  if (typeof data === "string") return h("bdi", { class: "lesson-text", dir: "auto", "data-exact": data }, `“${data}”`);
  return h("span", { class: "value", "data-exact": String(data) }, text.replace(/-/g, "−"));
}

/** @param {Value} value */
function table(value) {
  const two = value.axes.length === 2;
  const [rows, cells] = two ? [value.data, value.text] : [[value.data], [value.text]];
  const columnLabels = value.labels[value.axes[value.axes.length - 1]];
  const rowLabels = two ? value.labels[value.axes[0]] : null;
  const texts = typeof rows[0]?.[0] === "string";
  const weights = value.look === "weights";
  const head = columnLabels
    ? h(
        "thead",
        {},
        h(
          "tr",
          {},
          rowLabels ? h("td", {}) : null,
          ...columnLabels.map((name) => h("th", { scope: "col" }, word(name))),
        ),
      )
    : null;
  const body = rows.map((/** @type {any[]} */ row, /** @type {number} */ i) =>
    h(
      "tr",
      {},
      rowLabels ? h("th", { scope: "row" }, word(rowLabels[i])) : null,
      ...row.map((item, j) => cell(item, cells[i][j], texts, weights)),
    ),
  );
  return h(
    "div",
    { class: "scroll lesson-scroll", tabindex: "0", role: "region", "aria-label": value.sign },
    h(
      "table",
      { class: `lesson-table${columnLabels ? "" : " brackets"}${texts ? " texts" : ""}` },
      head,
      h("tbody", {}, ...body),
    ),
  );
}

/** Rows of texts: a list per row, with the label of its column before each text. @param {Value} value */
function records(value) {
  const [rowLabels, columnLabels] = value.axes.map((axis) => value.labels[axis]);
  const fields = (/** @type {string[]} */ row) =>
    row.map((text, j) => h("div", {}, h("dt", {}, columnLabels[j]), h("dd", { "data-exact": text }, text)));
  const items = value.data.map((/** @type {string[]} */ row, /** @type {number} */ i) =>
    h("section", {}, h("h3", {}, word(rowLabels[i])), h("dl", {}, ...fields(row))),
  );
  return h("div", { class: "lesson-wide lesson-records" }, ...items);
}

/** Lines of code with their indentation, each beside what it does. @param {Value} value */
function listing(value) {
  const columns = value.labels[value.axes[1]];
  const lines = value.data.map((/** @type {string[]} */ [code, meaning], /** @type {number} */ i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, String(i + 1)),
      h("td", { "data-exact": code }, h("code", { dir: "ltr" }, code)),
      h("td", { "data-exact": meaning }, meaning),
    ),
  );
  const head = columns.map((name) => h("th", { scope: "col" }, name));
  return h(
    "div",
    { class: "scroll lesson-wide", tabindex: "0", role: "region", "aria-label": value.sign },
    h(
      "table",
      { class: "lesson-listing" },
      h("thead", {}, h("tr", {}, h("td", {}), ...head)),
      h("tbody", {}, ...lines),
    ),
  );
}

/** @param {any} item @param {string} text @param {boolean} texts @param {boolean} weight */
function cell(item, text, texts, weight) {
  if (texts) return h("td", { "data-exact": item }, word(item));
  const node = h("td", { "data-exact": String(item) }, text.replace(/-/g, "−"));
  if (!weight) return node;
  node.classList.add("share");
  const share = Math.max(0, Math.min(1, Number(item)));
  node.append(h("span", { class: "meter", "aria-hidden": "true" }));
  /** @type {HTMLElement} */ (node.lastChild).style.width = `${Math.round(share * 100)}%`;
  return node;
}

/** @param {Value} value @param {import("../core/color.js").Ramp} ramp */
function heatMap(value, ramp) {
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

/** @param {Value} value @param {string} [selectedWord] */
function attentionArcs(value, selectedWord) {
  const node = h("div", {});
  const numbers = Float64Array.from(value.data.flat());
  const [rows, columns] = value.axes.map((axis) => value.labels[axis]);
  /** @param {number|null} query */
  const draw = (query) => replace(node, arcs({ numbers, rows, columns, same: true, query, onquery: draw }));
  const at = rows.indexOf(selectedWord ?? "");
  draw(at < 0 ? null : at);
  return node;
}
