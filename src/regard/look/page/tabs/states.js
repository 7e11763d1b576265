// @ts-check
/** States tab: vectors per word, such as hidden states, cell states, gates and residuals. */
import { colorize } from "../core/color.js";
import { h, replace, selectField, symbolButton, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { matrix } from "../widgets/matrix.js";
import { nextWords } from "./next-words.js";
import { axisLabels } from "./one-head.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("../core/types.js").Description} Description */

const UNITS = 64;

/** Tensors with one vector per token. @param {import("../core/types.js").Header} header */
export function vectorTensors(header) {
  return header.tensors.filter((tensor) => tensor.axes.includes("width") && sequenceAxis(tensor) !== null);
}

/** The axis of the tokens. @param {Description} tensor */
export function sequenceAxis(tensor) {
  return ["position", "step", "query", "key"].find((axis) => tensor.axes.includes(axis)) ?? null;
}

/** @param {Context} context */
export async function statesTab(context) {
  const tab = new States(context);
  if (!tab.all.length) return h("p", { class: "empty" }, "No vectors were recorded.");
  await tab.draw();
  context.onleave(context.selection.listen(["tensor"], () => tab.draw().catch(showError)));
  return tab.node;
}

class States {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.all = vectorTensors(context.trace.header);
    /** @type {Record<string, number>} */
    this.fixed = { head: context.selection.current.head ?? 0, gate: 0 };
    this.unit = 0;
    this.first = 0;
    this.tokens = h("p", { class: "tokens colored" });
    this.card = h("section", { class: "card" });
    this.nextWords = h("div", {});
    this.node = h("div", { class: "stack" }, this.card, this.nextWords);
  }

  /** The selected tensor, else a state, else any. */
  get chosen() {
    const ending = (/** @type {RegExp} */ end) => this.all.find((tensor) => end.test(tensor.name));
    const selected = this.all.find((tensor) => tensor.name === this.context.selection.current.tensor);
    return selected ?? ending(/(hidden|cell)$/) ?? ending(/residual$/) ?? this.all[0];
  }

  async draw() {
    const { chosen } = this;
    const tensor = await this.context.trace.tensor(chosen.name);
    this.unit = Math.min(this.unit, tensor.size("width") - 1);
    this.first = Math.min(this.first, Math.max(0, tensor.size("width") - 1));
    const axis = /** @type {string} */ (sequenceAxis(chosen));
    const index = Object.fromEntries(
      Object.entries(this.fixed).map(([axis, i]) => [axis, Math.min(i, tensor.size(axis) - 1)]),
    );
    const words = axisLabels(this.context.trace, chosen.name, axis, tensor.size(axis));
    this.colorTokens(words, tensor.vector(axis, { ...index, width: this.unit }));
    replace(
      this.card,
      this.controls(chosen, tensor, index),
      this.tokens,
      this.pager(tensor.size("width")),
      this.picture(chosen, tensor, axis, index, words),
    );
    replace(this.nextWords, nextWords(this.context, chosen));
  }

  /** @param {Description} chosen @param {Tensor} tensor @param {Record<string, number>} index */
  controls(chosen, tensor, index) {
    const { trace, selection } = this.context;
    const names = this.all.map((t) => ({ value: t.name, text: t.name }));
    const others = chosen.axes.filter((axis) => axis !== sequenceAxis(chosen) && axis !== "width");
    const options = (/** @type {string} */ axis) =>
      Array.from({ length: tensor.size(axis) }, (_, i) => ({
        value: String(i),
        text: trace.tokens(chosen.name, axis)?.[i].label ?? String(i),
      }));
    return h(
      "div",
      { class: "row wrap" },
      h("h2", {}, "States"),
      selectField("Vectors", names, chosen.name, (tensor) => selection.set({ tensor })),
      ...others.map((axis) =>
        selectField(axis, options(axis), String(index[axis] ?? 0), (value) => {
          this.fixed[axis] = Number(value);
          this.draw().catch(showError);
        }),
      ),
    );
  }

  /** @param {number} size */
  pager(size) {
    if (size <= UNITS) return null;
    const go = (/** @type {number} */ by) => {
      this.first = Math.max(0, this.first + by);
      this.unit = this.first;
      this.draw().catch(showError);
    };
    const last = Math.min(size, this.first + UNITS) - 1;
    return h(
      "div",
      { class: "row pager" },
      h("span", { class: "muted" }, `units ${this.first} to ${last} of ${size}`),
      symbolButton("‹", "Previous units", () => go(-UNITS), this.first === 0),
      symbolButton("›", "Next units", () => go(UNITS), this.first + UNITS >= size),
    );
  }

  /** @param {Description} chosen @param {Tensor} tensor @param {string} axis @param {Record<string, number>} index @param {string[]} words */
  picture(chosen, tensor, axis, index, words) {
    const units = Array.from({ length: Math.min(UNITS, tensor.size("width") - this.first) }, (_, i) => this.first + i);
    const numbers = new Float64Array(words.length * units.length);
    units.forEach((unit, j) =>
      tensor.vector(axis, { ...index, width: unit }).forEach((value, i) => {
        numbers[i * units.length + j] = value;
      }),
    );
    return matrix({
      title: chosen.name,
      numbers,
      rows: words,
      columns: units.map(String),
      rowTitle: axis,
      columnTitle: "unit",
      ramp: "signed",
      top: numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
      largest: 28,
      selected: null,
      onselect: (_, j) => {
        this.unit = units[j];
        this.colorTokens(words, tensor.vector(axis, { ...index, width: this.unit }));
      },
      onexplain: (i, j) => this.context.drawer.open(chosen.name, { ...index, width: units[j], [axis]: i }),
    });
  }

  /** Colors each token by the value of one unit. @param {string[]} words @param {Float64Array} values */
  colorTokens(words, values) {
    const top = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const nodes = words.map((text, i) => {
      const number = h("small", {}, values[i].toFixed(2).replace("-", "−"));
      const node = h("span", { class: "token", title: formatNumber(values[i]) }, word(text), number);
      return colorize(node, values[i], top, "signed");
    });
    replace(this.tokens, h("span", { class: "muted" }, `unit ${this.unit}: `), ...nodes);
  }
}
