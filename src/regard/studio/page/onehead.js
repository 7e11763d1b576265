// @ts-check
/** One head, or the mean of all, as a matrix and as lines; scores or weights; tokens or whole words. */
import { post } from "./api.js";
import { arcs } from "./arcs.js";
import { choice, h, replace, segments } from "./dom.js";
import { short } from "./heads.js";
import { matrix } from "./matrix.js";
import { alone, joined, merged, wordRuns } from "./merging.js";
import { tell } from "./notice.js";
import { traceAddress } from "./route.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Description} Description */
/**
 * What is shown: the name of the weights, the name of the numbers, how many heads there are and which is chosen
 * (null: their mean), the words on both sides and, of each, which tokens it is made of.
 * @typedef {{name: string, source: string, mode: string, many: number, head: number|null, numbers: Float64Array,
 *   weights: Float64Array, rows: string[], columns: string[], whole: boolean, can: boolean}} Shown
 */

export class OneHead {
  /** @param {Context} context @param {Description[]} all @param {(name: string) => boolean} crossing */
  constructor(context, all, crossing) {
    this.context = context;
    this.all = all;
    this.crossing = crossing;
    this.merging = false;
    this.matrix = h("section", { class: "card" });
    this.lines = h("section", { class: "card" });
  }

  async draw() {
    const shown = await this.look();
    replace(
      this.matrix,
      this.controls(shown),
      this.picture(shown),
      h("p", { class: "muted" }, "Weights show where a head looked, not how much it mattered for the answer."),
    );
    this.drawLines(shown);
  }

  /** @returns {Promise<Shown>} */
  async look() {
    const { trace, selection } = this.context;
    const name = /** @type {string} */ (selection.now.tensor);
    const scores = `${name.slice(0, -"weights".length)}scores`;
    const mode = trace.has(scores) ? selection.now.mode : "softmax";
    const source = mode === "scores" ? scores : name;
    const [chosen, looked] = await Promise.all([trace.tensor(source), trace.tensor(name)]);
    const many = looked.size("head");
    const asked = selection.now.head;
    const head = many === 1 ? 0 : asked !== null && asked < many ? asked : null;
    const plane = (/** @type {import("./tensor.js").Tensor} */ tensor) =>
      (head === null ? tensor.mean("head") : tensor).plane("query", "key", { head: head ?? 0 });
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
    const [numbers, weights] = [put(plane(chosen)), put(plane(looked))];
    return { name, source, mode, many, head, numbers, weights, rows, columns, whole, can };
  }

  /** @param {Shown} shown */
  picture(shown) {
    const { trace, selection, drawer } = this.context;
    const { query, key } = selection.now;
    return matrix({
      title: `${shown.name}, ${shown.head === null ? `mean of ${shown.many} heads` : `head ${shown.head}`}, ${shown.mode}`,
      numbers: shown.numbers,
      rows: shown.rows,
      columns: shown.columns,
      rowTitle: "query",
      columnTitle: "key",
      ramp: shown.mode === "scores" ? "signed" : "weight",
      top: shown.numbers.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0),
      sums: shown.mode === "softmax",
      roles: roles(trace, shown.name),
      selected: !shown.whole && query !== null && key !== null ? [query, key] : null,
      onselect: (query, key) => shown.whole || selection.set({ query, key }),
      onexplain: (query, key) => {
        if (shown.whole) return; // a sum of tokens: choose tokens to have a number explained
        if (shown.head === null) drawer.openMean(shown.source, { query, key });
        else drawer.open(shown.source, { head: shown.head, query, key });
      },
    });
  }

  /** @param {Shown} shown */
  controls(shown) {
    const { selection } = this.context;
    const { name, head, many } = shown;
    const names = this.all.map((tensor) => ({ value: tensor.name, text: `${short(tensor.name)} — ${tensor.name}` }));
    const numbered = Array.from({ length: many }, (_, i) => ({ value: String(i), text: `head ${i}` }));
    const heads = [{ value: "", text: "mean of all" }, ...numbered];
    const choose = (/** @type {string} */ value) => selection.set({ head: value === "" ? null : Number(value) });
    return h(
      "div",
      { class: "row" },
      h("h2", {}, "One head"),
      choice("Attention", names, name, (tensor) => selection.set({ tensor })),
      many > 1 ? choice("Head", heads, head === null ? "" : String(head), choose) : null,
      head === null
        ? null
        : h("button", { type: "button", onclick: () => this.switchOff(name, head) }, "Switch this head off"),
      this.modes(shown),
      shown.can ? this.wordsOrTokens() : null,
    );
  }

  /** @param {Shown} shown */
  modes(shown) {
    const { trace, selection } = this.context;
    if (!trace.has(`${shown.name.slice(0, -"weights".length)}scores`)) return null;
    const options = [
      { value: "scores", text: "scores q·k/√d" },
      { value: "softmax", text: "softmax" },
    ];
    return segments("Numbers", options, shown.mode, (mode) => selection.set({ mode }));
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

  /** What if it had not looked? A sibling of this trace answers. @param {string} tensor @param {number} head */
  async switchOff(tensor, head) {
    const { trace } = this.context;
    try {
      const header = await post(`traces/${encodeURIComponent(trace.header.id)}/fork`, { ablate: { tensor, head } });
      location.hash = traceAddress(header.id, { tab: "attention", tensor, head });
    } catch (error) {
      tell(error);
    }
  }
}

/**
 * The words along an axis, or numbers where it wears none.
 * @param {import("./api.js").Trace} trace @param {string} name @param {string} axis @param {number} size
 */
export function labels(trace, name, axis, size) {
  return trace.words(name, axis)?.map((word) => word.shown) ?? Array.from({ length: size }, (_, i) => String(i));
}

/** @param {import("./api.js").Trace} trace @param {string} name @returns {[string, string]} */
function roles(trace, name) {
  const { sides } = trace.describe(name);
  const of = (/** @type {string} */ axis) => (sides[axis] === "source" ? "source" : sides[axis] ? "target" : "text");
  return [of("query"), of("key")];
}
