// @ts-check
/** One attention head, or the mean of all heads, as a heat map and as lines; scores or weights; tokens or words. */
import { buttonGroup, h, replace, selectField } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { pause } from "../core/schedule.js";
import { joinLabels, mergeSubwords, tokenSpans, wordSpans } from "../trace/merge-subwords.js";
import { shortName } from "../trace/names.js";
import { usualLargest } from "../trace/probability.js";
import { openTrace } from "../trace/server-source.js";
import { arcs } from "../widgets/arcs.js";
import { isMasked, maxScore } from "../widgets/explain.js";
import { matrix } from "../widgets/matrix.js";
import { queryNote } from "./query-note.js";
import { RowEditor } from "./row-editor.js";
import { fork } from "./what-if.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Description} Description */
/**
 * What is shown: name of the weights, name of the numbers, number of heads and the chosen one (null: their mean),
 * labels of both axes, whether subwords are merged and whether they can be.
 * @typedef {{name: string, source: string, mode: string, headCount: number, head: number|null, numbers: Float64Array,
 *   weights: Float64Array, rows: string[], columns: string[], merged: boolean, canMerge: boolean}} View
 */

/** The stages from scores to weights, and the difference to the unchanged model. */
const MODES = {
  products: { text: "scores q·k", note: "Dot products of queries and keys." },
  scaled: {
    text: "scaled",
    note: "The dot products divided by the square root of their width, so that they do not grow with it.",
  },
  scores: { text: "scores", note: "The scores of this model as they enter the softmax: it does not scale them." },
  masked: { text: "masked", note: "Masked keys are left out (–): padding, and words that come later." },
  softmax: {
    text: "softmax",
    note: "Weights that sum to 1. They show where a head attended, not how much it mattered for the answer.",
  },
  change: { text: "difference", note: "The weights minus those of the unchanged model." },
};
/** @typedef {keyof typeof MODES} Mode */

/** Number of weights above which the lines are drawn in a task of their own. */
const LARGE = 10000;

export class OneHead {
  /** @param {Context} context @param {Description[]} all @param {(name: string) => boolean} isCross */
  constructor(context, all, isCross) {
    this.context = context;
    this.all = all;
    this.isCross = isCross;
    this.merging = false;
    this.editing = false;
    this.matrix = h("section", { class: "card" });
    this.lines = h("section", { class: "card" });
    this.editor = h("div", {});
    this.editButton = h("button", { type: "button", onclick: () => this.toggleEditor() }, "Edit this row");
  }

  async draw() {
    const view = await this.load();
    replace(
      this.matrix,
      this.controls(view),
      this.picture(view),
      this.editor,
      h("p", { class: "muted" }, MODES[/** @type {Mode} */ (view.mode)].note, " ", this.rowNote(view)),
    );
    this.updateEditor(view);
    if (view.weights.length > LARGE) await pause();
    this.drawLines(view);
  }

  /** @param {View} view */
  rowNote(view) {
    return queryNote(this.context.trace.describe(view.name));
  }

  /** Modes for which the tensors were recorded. @param {string} name @returns {Mode[]} */
  availableModes(name) {
    const { trace } = this.context;
    const base = name.slice(0, -"weights".length);
    /** @type {Mode[]} */
    const modes = [];
    if (trace.has(`${base}products`)) modes.push("products");
    if (trace.has(`${base}scores`)) {
      const { scaled, masked } = trace.describe(`${base}scores`);
      modes.push(scaled ? "scaled" : "scores");
      if (masked) modes.push("masked");
    }
    modes.push("softmax");
    if (trace.header.fork && trace.live) modes.push("change");
    return modes;
  }

  /** @returns {Promise<View>} */
  async load() {
    const { trace, selection } = this.context;
    const name = /** @type {string} */ (selection.current.tensor);
    const modes = this.availableModes(name);
    const mode = modes.find((mode) => mode === selection.current.mode) ?? "softmax";
    const weightTensor = await trace.tensor(name);
    const headCount = weightTensor.size("head");
    const chosen = selection.current.head;
    const head = headCount === 1 ? 0 : chosen !== null && chosen < headCount ? chosen : null;
    const plane = (/** @type {Tensor} */ tensor) =>
      (head === null ? tensor.mean("head") : tensor).plane("query", "key", { head: head ?? 0 });
    const weights = plane(weightTensor);
    const numbers = await this.numbers(name, mode, weightTensor, plane);
    const sizes = [weightTensor.size("query"), weightTensor.size("key")];
    const spans = ["query", "key"].map((axis, i) => wordSpans(trace.tokens(name, axis)) ?? tokenSpans(sizes[i]));
    const canMerge = mode === "softmax" && spans.some((span, i) => span.length < sizes[i]);
    const merged = canMerge && this.merging;
    const merge = (/** @type {Float64Array} */ numbers) =>
      merged ? mergeSubwords(numbers, sizes[1], spans[0], spans[1]) : numbers;
    const [rows, columns] = ["query", "key"].map((axis, i) => {
      const words = axisLabels(trace, name, axis, sizes[i]);
      return merged ? joinLabels(words, spans[i]) : words;
    });
    const isWeight = mode === "softmax" || mode === "change";
    const source = isWeight ? name : name.slice(0, -"weights".length) + (mode === "products" ? "products" : "scores");
    return {
      name,
      source,
      mode,
      headCount,
      head,
      numbers: merge(numbers),
      weights: merge(weights),
      rows,
      columns,
      merged,
      canMerge,
    };
  }

  /** @param {string} name @param {Mode} mode @param {Tensor} weightTensor @param {(tensor: Tensor) => Float64Array} plane */
  async numbers(name, mode, weightTensor, plane) {
    const { trace } = this.context;
    const base = name.slice(0, -"weights".length);
    if (mode === "softmax") return plane(weightTensor);
    if (mode === "change") return difference(weightTensor, await originalWeights(trace, name), plane);
    if (mode === "products") return plane(await trace.tensor(`${base}products`));
    const scores = await trace.tensor(`${base}scores`);
    return plane(mode === "masked" ? maskScores(scores, weightTensor) : scores);
  }

  /** @param {View} view */
  picture(view) {
    const { trace, selection, drawer } = this.context;
    const { query, key } = selection.current;
    const heads = view.head === null ? `mean of ${view.headCount} heads` : `head ${view.head}`;
    return matrix({
      title: `${view.name}, ${heads}, ${view.mode}`,
      numbers: view.numbers,
      rows: view.rows,
      columns: view.columns,
      rowTitle: "query",
      columnTitle: "key",
      ramp: view.mode === "softmax" ? "weight" : "signed",
      top:
        view.mode === "softmax"
          ? usualLargest(view.numbers, view.rows.length, view.columns.length)
          : view.numbers.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0),
      sums: view.mode === "softmax",
      roles: axisRoles(trace, view.name),
      selected: !view.merged && query !== null && key !== null ? [query, key] : null,
      onselect: (query, key) => {
        if (view.merged) return;
        selection.set({ query, key });
        this.updateEditor(view);
      },
      onexplain: (query, key) => {
        if (view.merged) return; // merged subwords have no single number to explain
        if (view.head === null) drawer.openMean(view.source, { query, key });
        else drawer.open(view.source, { head: view.head, query, key });
      },
    });
  }

  /** @param {View} view */
  controls(view) {
    const { selection, trace } = this.context;
    const { name, head, headCount } = view;
    const names = this.all.map((tensor) => ({
      value: tensor.name,
      text: `${shortName(tensor.name)} — ${tensor.name}`,
    }));
    const off = () => fork(this.context, { kind: "head", tensor: name, head }, { tensor: name, head });
    const modes = this.availableModes(name).map((mode) => ({ value: mode, text: MODES[mode].text }));
    return h(
      "div",
      { class: "row" },
      h("h2", {}, "One head"),
      selectField("Attention", names, name, (tensor) => selection.set({ tensor })),
      headField(headCount, head, (head) => selection.set({ head })),
      modes.length > 1 ? buttonGroup("Numbers", modes, view.mode, (mode) => selection.set({ mode })) : null,
      view.canMerge ? this.mergeButtons() : null,
      head === null || !trace.live ? null : h("button", { type: "button", onclick: off }, "Switch this head off"),
      head === null || !trace.live ? null : this.editButton,
    );
  }

  mergeButtons() {
    const options = [
      { value: "tokens", text: "tokens" },
      { value: "words", text: "whole words" },
    ];
    return buttonGroup("Labels", options, this.merging ? "words" : "tokens", (value) => {
      this.merging = value === "words";
      this.draw().catch(showError);
    });
  }

  toggleEditor() {
    this.editing = !this.editing;
    this.draw().catch(showError);
  }

  /** Shows the editor for the selected row. @param {View} view */
  updateEditor(view) {
    const { query, key } = this.context.selection.current;
    const fits = view.head !== null && !view.merged;
    this.editButton.disabled = !fits;
    this.editButton.setAttribute("aria-expanded", String(this.editing && fits));
    if (!this.editing || !fits) return replace(this.editor);
    const [i, n] = [Math.min(query ?? 0, view.rows.length - 1), view.columns.length];
    const weights = view.weights.slice(i * n, (i + 1) * n);
    const base = view.name.slice(0, -"weights".length);
    const loading = this.context.trace.has(`${base}scores`)
      ? this.context.trace
          .tensor(`${base}scores`)
          .then((scores) => scores.vector("key", { head: view.head ?? 0, query: i }))
      : Promise.resolve(weights);
    loading
      .then((scores) => {
        const row = {
          tensor: view.name,
          head: view.head ?? 0,
          query: i,
          key,
          weights,
          visible: Array.from(scores, (score) => !Number.isNaN(score)),
          queryWord: view.rows[i],
          keyWords: view.columns,
        };
        replace(this.editor, new RowEditor(this.context, row).node);
      })
      .catch(showError);
  }

  /** @param {View} view */
  drawLines(view) {
    const { selection } = this.context;
    const query = selection.current.view === "row" && !view.merged ? selection.current.query : null;
    replace(
      this.lines,
      h("h2", {}, "As lines"),
      arcs({
        numbers: view.weights,
        rows: view.rows,
        columns: view.columns,
        same: !this.isCross(view.name),
        query,
        onquery: (query) => view.merged || selection.set({ query, view: query === null ? null : "row" }),
      }),
    );
  }
}

/** The same weights in the unchanged model; null if it has none. @param {Trace} trace @param {string} name */
async function originalWeights(trace, name) {
  const base = trace.header.fork?.base;
  const original = base ? await openTrace(base) : null;
  return original?.has(name) ? original.tensor(name) : null;
}

/**
 * Difference of two weight tensors; NaN where the original has no value.
 * @param {Tensor} current @param {Tensor|null} before @param {(tensor: Tensor) => Float64Array} plane
 */
function difference(current, before, plane) {
  const [m, n] = [current.size("query"), current.size("key")];
  const values = plane(current);
  if (!before) return values.fill(NaN);
  const [rows, columns] = [before.size("query"), before.size("key")];
  const original = plane(before);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) values[i * n + j] -= i < rows && j < columns ? original[i * columns + j] : NaN;
  }
  return values;
}

/** Scores with masked keys, which have a score and no weight, set to NaN. @param {Tensor} scores @param {Tensor} weights */
function maskScores(scores, weights) {
  const Kind = /** @type {typeof import("../trace/tensor.js").Tensor} */ (scores.constructor);
  const n = scores.size("key");
  const data = Float64Array.from(scores.data);
  for (let start = 0; start < data.length; start += n) {
    const best = maxScore(data.subarray(start, start + n));
    for (let k = start; k < start + n; k++) if (weights.data[k] === 0 && isMasked(data[k], best)) data[k] = NaN;
  }
  return new Kind(scores.axes, scores.shape, data);
}

/** Choice of a head, or of the mean of all; null if there is one head. @param {number} count @param {number|null} head @param {(head: number|null) => void} onchange */
export function headField(count, head, onchange) {
  if (count <= 1) return null;
  const heads = Array.from({ length: count }, (_, i) => ({ value: String(i), text: `head ${i}` }));
  const options = [{ value: "", text: "mean of all" }, ...heads];
  return selectField("Head", options, String(head ?? ""), (value) => onchange(value === "" ? null : Number(value)));
}

/**
 * Tokens along an axis, or numbers if it has none.
 * @param {Trace} trace @param {string} name @param {string} axis @param {number} size
 */
export function axisLabels(trace, name, axis, size) {
  return trace.tokens(name, axis)?.map((word) => word.label) ?? Array.from({ length: size }, (_, i) => String(i));
}

/** @param {Trace} trace @param {string} name @returns {[string, string]} */
export function axisRoles(trace, name) {
  const { sides } = trace.describe(name);
  const of = (/** @type {string} */ axis) => (sides[axis] === "source" ? "source" : sides[axis] ? "target" : "text");
  return [of("query"), of("key")];
}
