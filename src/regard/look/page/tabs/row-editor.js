// @ts-check
/** Editor of one row of attention weights, to run the model with it. */
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { fork } from "./what-if.js";

/** @typedef {import("../core/types.js").Context} Context */
/**
 * One row of a head: recorded weights, which keys are visible, and the tokens.
 * @typedef {{tensor: string, head: number, query: number, key: number|null, weights: Float64Array, visible: boolean[],
 *   queryWord: string, keyWords: string[]}} Row
 */

export class RowEditor {
  /** @param {Context} context @param {Row} row */
  constructor(context, row) {
    this.context = context;
    this.row = row;
    this.inputs = row.keyWords.map((text, i) =>
      h("input", {
        type: "number",
        min: "0",
        max: "1",
        step: "0.01",
        value: row.weights[i].toFixed(4),
        "aria-label": `Weight of ${text}`,
        disabled: !row.visible[i],
        oninput: () => this.updateSum(),
      }),
    );
    this.sum = h("output", { class: "muted" });
    this.node = h("div", { class: "row-editor", role: "group", "aria-label": "Edit this row" });
    this.draw();
  }

  draw() {
    const { row } = this;
    const button = (/** @type {string} */ text, /** @type {() => number[]} */ make) =>
      h("button", { type: "button", class: "small", onclick: () => this.fill(make()) }, text);
    const visible = row.visible.filter(Boolean).length;
    const only = row.key !== null && row.visible[row.key] ? row.key : row.visible.indexOf(true);
    replace(
      this.node,
      h("p", {}, "Attention weights of ", word(row.queryWord), ` in head ${row.head}:`),
      h(
        "div",
        { class: "row wrap" },
        ...row.keyWords.map((text, i) => h("label", { class: "weight" }, word(text), this.inputs[i])),
      ),
      h(
        "div",
        { class: "row" },
        button(`Only “${row.keyWords[only]}”`, () => row.keyWords.map((_, i) => (i === only ? 1 : 0))),
        button("Uniform", () => row.visible.map((shown) => (shown ? 1 / visible : 0))),
        button("Reset", () => Array.from(row.weights)),
        this.sum,
        h("button", { type: "button", class: "primary", onclick: () => this.run() }, "Run with this row"),
      ),
    );
    this.updateSum();
  }

  /** @param {number[]} weights */
  fill(weights) {
    this.inputs.forEach((input, i) => (input.value = String(Number(weights[i].toFixed(6)))));
    this.updateSum();
  }

  get weights() {
    return this.inputs.map((input) => Math.max(0, Number(input.value) || 0));
  }

  updateSum() {
    const sum = this.weights.reduce((a, b) => a + b, 0);
    this.sum.textContent = `Σ ${formatNumber(sum)}${Math.abs(sum - 1) > 1e-3 ? ", normalized to 1 when run" : ""}`;
  }

  run() {
    const { tensor, head, query } = this.row;
    const sum = this.weights.reduce((a, b) => a + b, 0);
    const weights = sum > 0 ? this.weights.map((weight) => weight / sum) : this.weights;
    return fork(this.context, { kind: "row", tensor, head, query, weights }, { tab: "attention", tensor, head, query });
  }
}
