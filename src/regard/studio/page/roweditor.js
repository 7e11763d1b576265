// @ts-check
/** One row of an attention, to be written by hand: what if this word had looked elsewhere? */
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { fork } from "./whatif.js";

/** @typedef {import("./inspector.js").Context} Context */
/**
 * The row of a head: the weights that the model used, which keys it could see, and the words.
 * @typedef {{tensor: string, head: number, query: number, key: number|null, weights: Float64Array, seen: boolean[],
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
        disabled: !row.seen[i],
        oninput: () => this.say(),
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
    const seen = row.seen.filter(Boolean).length;
    const only = row.key !== null && row.seen[row.key] ? row.key : row.seen.indexOf(true);
    replace(
      this.node,
      h("p", {}, "Where should ", word(row.queryWord), ` look, in head ${row.head}? The weights of the row:`),
      h(
        "div",
        { class: "row wrap" },
        ...row.keyWords.map((text, i) => h("label", { class: "weight" }, word(text), this.inputs[i])),
      ),
      h(
        "div",
        { class: "row" },
        button(`Only at “${row.keyWords[only]}”`, () => row.keyWords.map((_, i) => (i === only ? 1 : 0))),
        button("Everywhere alike", () => row.seen.map((there) => (there ? 1 / seen : 0))),
        button("As it was", () => Array.from(row.weights)),
        this.sum,
        h("button", { type: "button", class: "primary", onclick: () => this.run() }, "Try it"),
      ),
    );
    this.say();
  }

  /** @param {number[]} weights */
  fill(weights) {
    this.inputs.forEach((input, i) => (input.value = String(Number(weights[i].toFixed(6)))));
    this.say();
  }

  get weights() {
    return this.inputs.map((input) => Math.max(0, Number(input.value) || 0));
  }

  say() {
    const sum = this.weights.reduce((a, b) => a + b, 0);
    this.sum.textContent = `Σ ${shown(sum)}${Math.abs(sum - 1) > 1e-3 ? ", made to be 1 when you try it" : ""}`;
  }

  run() {
    const { tensor, head, query } = this.row;
    const sum = this.weights.reduce((a, b) => a + b, 0);
    const weights = sum > 0 ? this.weights.map((weight) => weight / sum) : this.weights;
    return fork(this.context, { kind: "row", tensor, head, query, weights }, { tab: "attention", tensor, head, query });
  }
}
