// @ts-check
/** Saliency tab: gradient times input per input token; positive supports the answer, negative opposes it. */
import { colorize } from "../core/color.js";
import { h, replace, selectField, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { legend, matrix } from "../widgets/matrix.js";
import { table } from "../widgets/table.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Header} Header */
/** @typedef {import("../core/types.js").Saliency} Saliency */

/** Tasks with one answer per input or per token. */
const KINDS = ["classify", "label", "forecast", "regress"];
const METHOD =
  "Gradient times input: about how much the answer's score would fall without this input; exact for linear models, a first-order estimate otherwise.";
/** Maximum length of a bar in pixels. */
const BAR = 96;

/** Whether the model answers in one step. @param {Header} header */
export function hasSingleAnswer(header) {
  return KINDS.includes(header.kind ?? "");
}

/** The task whose models predict masked words: in one pass, and not one token after another. */
export const FILL = "fill";

/** Whether a trace has saliency scores. @param {import("../trace/trace.js").Trace} trace */
export function hasSaliency(trace) {
  const { header, live } = trace;
  return live ? hasSingleAnswer(header) && !header.fork : Boolean(header.saliency);
}

/** @param {Context} context */
export async function saliencyTab(context) {
  const tab = new SaliencyView(context, await context.trace.source.saliency());
  tab.draw();
  context.onleave(context.selection.listen(["query", "key"], () => tab.draw()));
  return tab.node;
}

class SaliencyView {
  /** @param {Context} context @param {Saliency} saliency */
  constructor(context, saliency) {
    this.context = context;
    this.saliency = saliency;
    this.top = Math.max(0, ...saliency.scores.flat().map(Math.abs));
    this.node = h("div", { class: "stack" });
  }

  /** Index of the selected answer. */
  get row() {
    return Math.min(this.context.selection.current.query ?? 0, this.saliency.rows.length - 1);
  }

  /** Index of the selected input; null: none. */
  get column() {
    const { key } = this.context.selection.current;
    return key !== null && key < this.saliency.columns.length ? key : null;
  }

  /** @param {number} row @param {number|null} column */
  choose(row, column) {
    this.context.selection.set({ query: row, key: column });
  }

  draw() {
    const { saliency: saliency, row, top } = this;
    const several = saliency.rows.length > 1;
    const options = saliency.rows.map((name, i) => ({ value: String(i), text: name }));
    replace(
      this.node,
      h(
        "section",
        { class: "card" },
        h("div", { class: "row wrap" }, h("h2", {}, "Saliency of the answer"), word(saliency.title, "sentence target")),
        several
          ? selectField(saliency.sides[0], options, String(row), (i) => this.choose(Number(i), this.column))
          : null,
        this.tokens(),
        this.readout(),
        legend({ ramp: "signed", top, numbers: saliency.scores[row] }),
        this.bars(),
        h("p", { class: "muted" }, METHOD),
      ),
      several ? h("section", { class: "card" }, h("h2", {}, "All answers"), this.allAnswers()) : null,
    );
  }

  /** Input tokens, colored by their scores. */
  tokens() {
    const { saliency: saliency, row, top, column } = this;
    const tokens = saliency.columns.map((text, j) => {
      const value = saliency.scores[row][j];
      const node = h(
        "button",
        {
          type: "button",
          class: `token${j === column ? " picked" : ""}`,
          "aria-pressed": String(j === column),
          "data-focus": `input ${j}`,
          onclick: () => this.choose(row, j === column ? null : j),
          onkeydown: (/** @type {KeyboardEvent} */ event) => moveFocus(event),
        },
        word(text.trim() || text),
        h("small", {}, formatSigned(value, 2)),
      );
      return colorize(node, value, top, "signed");
    });
    return h("div", { class: "tokens colored", role: "group", "aria-label": this.saliency.sides[1] }, ...tokens);
  }

  readout() {
    const { saliency: saliency, row, column } = this;
    if (column === null) return h("output", { class: "readout" }, "Choose an input.");
    const value = saliency.scores[row][column];
    const number = h("b", { class: "value" }, formatNumber(value));
    const answer = saliency.rows[row] || saliency.title;
    const effect = value > 0 ? " supports " : value < 0 ? " opposes " : " has no effect on ";
    return h("output", { class: "readout" }, word(saliency.columns[column].trim()), effect, word(answer), ": ", number);
  }

  /** Scores as bars and numbers. */
  bars() {
    const { saliency: saliency, row, top, column } = this;
    const rows = saliency.columns.map((text, j) => {
      const value = saliency.scores[row][j];
      const bar = h("span", { class: value < 0 ? "meter negative" : "meter positive" });
      bar.style.width = `${top > 0 ? (BAR * Math.abs(value)) / top : 0}px`;
      return h(
        "tr",
        { class: j === column ? "picked" : null },
        h("th", { scope: "row" }, word(text.trim() || text)),
        h("td", {}, formatNumber(value)),
        h(
          "td",
          { "aria-hidden": "true" },
          h("span", { class: "half" }, value < 0 ? bar : null),
          h("span", { class: "half" }, value < 0 ? null : bar),
        ),
      );
    });
    return table(`${saliency.title} as bars`, [saliency.sides[1], "gradient × input", ""], rows, {
      kind: "numbers candidates",
    });
  }

  /** Scores of all answers as a heat map. */
  allAnswers() {
    const { saliency: saliency, top } = this;
    return matrix({
      title: `${saliency.title}: gradient times input`,
      numbers: Float64Array.from(saliency.scores.flat()),
      rows: saliency.rows,
      columns: saliency.columns.map((text) => text.trim() || text),
      rowTitle: saliency.sides[0],
      columnTitle: saliency.sides[1],
      ramp: "signed",
      top,
      roles: ["target", "source"],
      selected: this.column === null ? null : [this.row, this.column],
      onselect: (row, column) => this.choose(row, column),
    });
  }
}

/** Moves between tokens with the arrow keys. @param {KeyboardEvent} event */
function moveFocus(event) {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  const next = { ArrowRight: button.nextElementSibling, ArrowLeft: button.previousElementSibling }[event.key];
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}

/** @param {number} value @param {number} digits */
function formatSigned(value, digits) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}
