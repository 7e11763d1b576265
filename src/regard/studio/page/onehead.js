// @ts-check
/** One head, or the mean of all, as a matrix and as lines; scores or weights; tokens or whole words. */
import { openTrace } from "./api.js";
import { arcs } from "./arcs.js";
import { choice, h, replace, segments } from "./dom.js";
import { hiddenKey, largest } from "./explain.js";
import { short } from "./heads.js";
import { matrix } from "./matrix.js";
import { alone, joined, merged, wordRuns } from "./merging.js";
import { tell } from "./notice.js";
import { pause } from "./patience.js";
import { RowEditor } from "./roweditor.js";
import { fork } from "./whatif.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./tensor.js").Tensor} Tensor */
/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./types.js").Description} Description */
/**
 * What is shown: the name of the weights, the name of the numbers, how many heads there are and which is chosen
 * (null: their mean), the words on both sides and, of each, which tokens it is made of.
 * @typedef {{name: string, source: string, mode: string, many: number, head: number|null, numbers: Float64Array,
 *   weights: Float64Array, rows: string[], columns: string[], whole: boolean, can: boolean}} Shown
 */

/** The way from scores to weights, and what a changed model does otherwise. */
const MODES = {
  scores: { text: "scores q·k", says: "Queries times keys, as they are." },
  scaled: { text: "scaled", says: "The scores divided by the root of their width, so that they do not grow with it." },
  masked: { text: "masked", says: "What may not be seen is taken out (–): padding, and words that come later." },
  softmax: {
    text: "softmax",
    says: "Shares of 1. They show where a head looked, not how much it mattered for the answer.",
  },
  change: { text: "− before", says: "The weights here minus those of the model as it is." },
};
/** @typedef {keyof typeof MODES} Mode */

/** Numbers after which the lines are drawn in a turn of their own. */
const LARGE = 10000;

export class OneHead {
  /** @param {Context} context @param {Description[]} all @param {(name: string) => boolean} crossing */
  constructor(context, all, crossing) {
    this.context = context;
    this.all = all;
    this.crossing = crossing;
    this.merging = false;
    this.editing = false;
    this.matrix = h("section", { class: "card" });
    this.lines = h("section", { class: "card" });
    this.editor = h("div", {});
    this.act = h("button", { type: "button", onclick: () => this.edit() }, "Edit this row");
  }

  async draw() {
    const shown = await this.look();
    replace(
      this.matrix,
      this.controls(shown),
      this.picture(shown),
      this.editor,
      h("p", { class: "muted" }, MODES[/** @type {Mode} */ (shown.mode)].says),
    );
    this.edited(shown);
    if (shown.weights.length > LARGE) await pause();
    this.drawLines(shown);
  }

  /** Which numbers can be shown of an attention. @param {string} name @returns {Mode[]} */
  modesOf(name) {
    const { trace } = this.context;
    const base = name.slice(0, -"weights".length);
    const dotted = trace.has(`${base}queries`) && trace.has(`${base}keys`);
    return [
      ...(trace.has(`${base}scores`)
        ? /** @type {Mode[]} */ (dotted ? ["scores", "scaled", "masked"] : ["scaled", "masked"])
        : []),
      "softmax",
      ...(trace.header.fork && trace.live ? /** @type {Mode[]} */ (["change"]) : []),
    ];
  }

  /** @returns {Promise<Shown>} */
  async look() {
    const { trace, selection } = this.context;
    const name = /** @type {string} */ (selection.now.tensor);
    const modes = this.modesOf(name);
    const mode = modes.find((mode) => mode === selection.now.mode) ?? "softmax";
    const looked = await trace.tensor(name);
    const many = looked.size("head");
    const asked = selection.now.head;
    const head = many === 1 ? 0 : asked !== null && asked < many ? asked : null;
    const plane = (/** @type {Tensor} */ tensor) =>
      (head === null ? tensor.mean("head") : tensor).plane("query", "key", { head: head ?? 0 });
    const weights = plane(looked);
    const numbers = await this.numbers(name, mode, looked, plane);
    const sizes = [looked.size("query"), looked.size("key")];
    const runs = ["query", "key"].map((axis, i) => wordRuns(trace.words(name, axis)) ?? alone(sizes[i]));
    const can = mode === "softmax" && runs.some((run, i) => run.length < sizes[i]);
    const whole = can && this.merging;
    const put = (/** @type {Float64Array} */ numbers) =>
      whole ? merged(numbers, sizes[1], runs[0], runs[1]) : numbers;
    const [rows, columns] = ["query", "key"].map((axis, i) => {
      const words = labels(trace, name, axis, sizes[i]);
      return whole ? joined(words, runs[i]) : words;
    });
    const scored = mode !== "softmax" && mode !== "change";
    const source = scored ? `${name.slice(0, -"weights".length)}scores` : name;
    return { name, source, mode, many, head, numbers: put(numbers), weights: put(weights), rows, columns, whole, can };
  }

  /** @param {string} name @param {Mode} mode @param {Tensor} looked @param {(tensor: Tensor) => Float64Array} plane */
  async numbers(name, mode, looked, plane) {
    const { trace } = this.context;
    const base = name.slice(0, -"weights".length);
    if (mode === "softmax") return plane(looked);
    if (mode === "change") return minus(looked, await before(trace, name), plane);
    const scores = await trace.tensor(`${base}scores`);
    if (mode === "scaled") return plane(scores);
    if (mode === "masked") return plane(unseen(scores, looked));
    const { axes, shape } = trace.describe(`${base}queries`);
    const root = Math.sqrt(shape[axes.indexOf("width")]);
    return plane(scores).map((score) => score * root);
  }

  /** @param {Shown} shown */
  picture(shown) {
    const { trace, selection, drawer } = this.context;
    const { query, key } = selection.now;
    const heads = shown.head === null ? `mean of ${shown.many} heads` : `head ${shown.head}`;
    return matrix({
      title: `${shown.name}, ${heads}, ${shown.mode}`,
      numbers: shown.numbers,
      rows: shown.rows,
      columns: shown.columns,
      rowTitle: "query",
      columnTitle: "key",
      ramp: shown.mode === "softmax" ? "weight" : "signed",
      top: shown.numbers.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0),
      sums: shown.mode === "softmax",
      roles: roles(trace, shown.name),
      selected: !shown.whole && query !== null && key !== null ? [query, key] : null,
      onselect: (query, key) => {
        if (shown.whole) return;
        selection.set({ query, key });
        this.edited(shown);
      },
      onexplain: (query, key) => {
        if (shown.whole) return; // a sum of tokens: choose tokens to have a number explained
        if (shown.head === null) drawer.openMean(shown.source, { query, key });
        else drawer.open(shown.source, { head: shown.head, query, key });
      },
    });
  }

  /** @param {Shown} shown */
  controls(shown) {
    const { selection, trace } = this.context;
    const { name, head, many } = shown;
    const names = this.all.map((tensor) => ({ value: tensor.name, text: `${short(tensor.name)} — ${tensor.name}` }));
    const numbered = Array.from({ length: many }, (_, i) => ({ value: String(i), text: `head ${i}` }));
    const heads = [{ value: "", text: "mean of all" }, ...numbered];
    const choose = (/** @type {string} */ value) => selection.set({ head: value === "" ? null : Number(value) });
    const off = () => fork(this.context, { kind: "head", tensor: name, head }, { tensor: name, head });
    const modes = this.modesOf(name).map((mode) => ({ value: mode, text: MODES[mode].text }));
    return h(
      "div",
      { class: "row" },
      h("h2", {}, "One head"),
      choice("Attention", names, name, (tensor) => selection.set({ tensor })),
      many > 1 ? choice("Head", heads, head === null ? "" : String(head), choose) : null,
      modes.length > 1 ? segments("Numbers", modes, shown.mode, (mode) => selection.set({ mode })) : null,
      shown.can ? this.wordsOrTokens() : null,
      head === null || !trace.live ? null : h("button", { type: "button", onclick: off }, "Switch this head off"),
      head === null || !trace.live ? null : this.act,
    );
  }

  wordsOrTokens() {
    const options = [
      { value: "tokens", text: "tokens" },
      { value: "words", text: "whole words" },
    ];
    return segments("Sides", options, this.merging ? "words" : "tokens", (value) => {
      this.merging = value === "words";
      this.draw().catch(tell);
    });
  }

  edit() {
    this.editing = !this.editing;
    this.draw().catch(tell);
  }

  /** The row that is edited goes with what is chosen. @param {Shown} shown */
  edited(shown) {
    const { query, key } = this.context.selection.now;
    const fits = shown.head !== null && !shown.whole;
    this.act.disabled = !fits;
    this.act.setAttribute("aria-expanded", String(this.editing && fits));
    if (!this.editing || !fits) return replace(this.editor);
    const [i, n] = [Math.min(query ?? 0, shown.rows.length - 1), shown.columns.length];
    const weights = shown.weights.slice(i * n, (i + 1) * n);
    const base = shown.name.slice(0, -"weights".length);
    const there = this.context.trace.has(`${base}scores`)
      ? this.context.trace
          .tensor(`${base}scores`)
          .then((scores) => scores.along("key", { head: shown.head ?? 0, query: i }))
      : Promise.resolve(weights);
    there
      .then((scores) => {
        const row = {
          tensor: shown.name,
          head: shown.head ?? 0,
          query: i,
          key,
          weights,
          seen: Array.from(scores, (score) => !Number.isNaN(score)),
          queryWord: shown.rows[i],
          keyWords: shown.columns,
        };
        replace(this.editor, new RowEditor(this.context, row).node);
      })
      .catch(tell);
  }

  /** @param {Shown} shown */
  drawLines(shown) {
    const { selection } = this.context;
    const query = selection.now.view === "row" && !shown.whole ? selection.now.query : null;
    replace(
      this.lines,
      h("h2", {}, "As lines"),
      arcs({
        numbers: shown.weights,
        rows: shown.rows,
        columns: shown.columns,
        same: !this.crossing(shown.name),
        query,
        onquery: (query) => shown.whole || selection.set({ query, view: query === null ? null : "row" }),
      }),
    );
  }
}

/** The same attention in the model as it is; null where it has none. @param {Trace} trace @param {string} name */
async function before(trace, name) {
  const of = trace.header.fork?.of;
  const whole = of ? await openTrace(of) : null;
  return whole?.has(name) ? whole.tensor(name) : null;
}

/**
 * Numbers minus those that were there before; what was not there before is not a number.
 * @param {Tensor} now @param {Tensor|null} before @param {(tensor: Tensor) => Float64Array} plane
 */
function minus(now, before, plane) {
  const [m, n] = [now.size("query"), now.size("key")];
  const found = plane(now);
  if (!before) return found.fill(NaN);
  const [rows, columns] = [before.size("query"), before.size("key")];
  const old = plane(before);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) found[i * n + j] -= i < rows && j < columns ? old[i * columns + j] : NaN;
  }
  return found;
}

/** Scores without those that the mask hides: they have a score, and no weight. @param {Tensor} scores @param {Tensor} weights */
function unseen(scores, weights) {
  const Kind = /** @type {typeof import("./tensor.js").Tensor} */ (scores.constructor);
  const n = scores.size("key");
  const data = Float64Array.from(scores.data);
  for (let start = 0; start < data.length; start += n) {
    const best = largest(data.subarray(start, start + n));
    for (let k = start; k < start + n; k++) if (weights.data[k] === 0 && hiddenKey(data[k], best)) data[k] = NaN;
  }
  return new Kind(scores.axes, scores.shape, data);
}

/**
 * The words along an axis, or numbers where it wears none.
 * @param {Trace} trace @param {string} name @param {string} axis @param {number} size
 */
export function labels(trace, name, axis, size) {
  return trace.words(name, axis)?.map((word) => word.shown) ?? Array.from({ length: size }, (_, i) => String(i));
}

/** @param {Trace} trace @param {string} name @returns {[string, string]} */
export function roles(trace, name) {
  const { sides } = trace.describe(name);
  const of = (/** @type {string} */ axis) => (sides[axis] === "source" ? "source" : sides[axis] ? "target" : "text");
  return [of("query"), of("key")];
}
