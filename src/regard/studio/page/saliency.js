// @ts-check
/** What an answer hung on: gradient times input, one number for each thing that was read; above 0 for, below 0 against. */
import { css, ink, rgb } from "./colour.js";
import { choice, h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { legend, matrix } from "./matrix.js";
import { table } from "./table.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Saliency} Saliency */

/** Jobs that say an answer at once, or one for each place: it can hang on what was read. */
const KINDS = ["classify", "label", "forecast"];
const METHOD =
  "Gradient times input: about how much the answer's score would fall without it; exact where the model is linear, and a first guess elsewhere.";
/** Pixels of the longest bar. */
const BAR = 96;

/** Whether a model says its answer at once. @param {Header} header */
export function hangs(header) {
  return KINDS.includes(header.kind ?? "");
}

/** Whether it can be told what the answer of a trace hung on. @param {import("./trace.js").Trace} trace */
export function hung(trace) {
  const { header, live } = trace;
  return live ? hangs(header) && !header.fork : Boolean(header.saliency);
}

/** @param {Context} context */
export async function saliencyTab(context) {
  const tab = new Hung(context, await context.trace.source.saliency());
  tab.draw();
  context.onleave(
    context.selection.listen((changed) => {
      if ("query" in changed || "key" in changed) tab.draw();
    }),
  );
  return tab.node;
}

class Hung {
  /** @param {Context} context @param {Saliency} found */
  constructor(context, found) {
    this.context = context;
    this.found = found;
    this.top = Math.max(0, ...found.scores.flat().map(Math.abs));
    this.node = h("div", { class: "stack" });
  }

  /** Which answer is looked at. */
  get row() {
    return Math.min(this.context.selection.now.query ?? 0, this.found.rows.length - 1);
  }

  /** Which of the things that were read; null: none. */
  get column() {
    const { key } = this.context.selection.now;
    return key !== null && key < this.found.columns.length ? key : null;
  }

  /** @param {number} row @param {number|null} column */
  choose(row, column) {
    this.context.selection.set({ query: row, key: column });
  }

  draw() {
    const { found, row, top } = this;
    const several = found.rows.length > 1;
    const options = found.rows.map((name, i) => ({ value: String(i), text: name }));
    replace(
      this.node,
      h(
        "section",
        { class: "card" },
        h("div", { class: "row wrap" }, h("h2", {}, "What the answer hung on"), word(found.title, "sentence target")),
        several ? choice(found.sides[0], options, String(row), (i) => this.choose(Number(i), this.column)) : null,
        this.words(),
        this.told(),
        legend({ ramp: "signed", top, numbers: found.scores[row] }),
        this.bars(),
        h("p", { class: "muted" }, METHOD),
      ),
      several ? h("section", { class: "card" }, h("h2", {}, "All answers"), this.whole()) : null,
    );
  }

  /** All that was read, each on the colour of its number. */
  words() {
    const { found, row, top, column } = this;
    const tokens = found.columns.map((text, j) => {
      const value = found.scores[row][j];
      const colour = rgb(value, top, "signed");
      const node = h(
        "button",
        {
          type: "button",
          class: `token${j === column ? " picked" : ""}`,
          "aria-pressed": String(j === column),
          "data-focus": `read ${j}`,
          onclick: () => this.choose(row, j === column ? null : j),
          onkeydown: (/** @type {KeyboardEvent} */ event) => walk(event),
        },
        word(text.trim() || text),
        h("small", {}, signed(value, 2)),
      );
      node.style.background = css(colour);
      node.style.color = ink(colour);
      return node;
    });
    return h("div", { class: "tokens coloured", role: "group", "aria-label": this.found.sides[1] }, ...tokens);
  }

  told() {
    const { found, row, column } = this;
    if (column === null) return h("output", { class: "readout" }, "Choose something that was read.");
    const value = found.scores[row][column];
    const number = h("b", { class: "value" }, shown(value));
    const answer = found.rows[row] || found.title;
    const does = value > 0 ? " speaks for " : value < 0 ? " speaks against " : " does nothing for ";
    return h("output", { class: "readout" }, word(found.columns[column].trim()), does, word(answer), ": ", number);
  }

  /** The same as bars, with all digits. */
  bars() {
    const { found, row, top, column } = this;
    const rows = found.columns.map((text, j) => {
      const value = found.scores[row][j];
      const bar = h("span", { class: value < 0 ? "meter against" : "meter for" });
      bar.style.width = `${top > 0 ? (BAR * Math.abs(value)) / top : 0}px`;
      return h(
        "tr",
        { class: j === column ? "picked" : null },
        h("th", { scope: "row" }, word(text.trim() || text)),
        h("td", {}, shown(value)),
        h(
          "td",
          { "aria-hidden": "true" },
          h("span", { class: "half" }, value < 0 ? bar : null),
          h("span", { class: "half" }, value < 0 ? null : bar),
        ),
      );
    });
    return table(`${found.title} as bars`, [found.sides[1], "gradient × input", ""], rows, {
      kind: "numbers candidates",
    });
  }

  /** Every answer against all that was read. */
  whole() {
    const { found, top } = this;
    return matrix({
      title: `${found.title}: gradient times input`,
      numbers: Float64Array.from(found.scores.flat()),
      rows: found.rows,
      columns: found.columns.map((text) => text.trim() || text),
      rowTitle: found.sides[0],
      columnTitle: found.sides[1],
      ramp: "signed",
      top,
      roles: ["target", "source"],
      selected: this.column === null ? null : [this.row, this.column],
      onselect: (row, column) => this.choose(row, column),
    });
  }
}

/** Arrow keys go from word to word. @param {KeyboardEvent} event */
function walk(event) {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  const next = { ArrowRight: button.nextElementSibling, ArrowLeft: button.previousElementSibling }[event.key];
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}

/** @param {number} value @param {number} digits */
function signed(value, digits) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}
