// @ts-check
/** Lens tab: what each layer would predict at each position, if it were the last one (logit lens). */
import { h, replace, word } from "../core/dom.js";
import { actualTokens, LENS, lensCandidates, promptLength } from "../trace/predictions.js";
import { candidateBars } from "../widgets/candidate-bars.js";
import { TokenGrid } from "../widgets/token-grid.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/tensor.js").Tensor} Tensor */

const NOTE =
  "The output of each layer goes through the model's own end, its last norm and its output projection, as if it were the last layer. The top row is the model's own prediction.";

/** Whether the trace has a logit lens. @param {import("../trace/trace.js").Trace} trace */
export function hasLens(trace) {
  return trace.has(LENS.ids) && trace.has(LENS.probabilities);
}

/** @param {Context} context */
export async function lensTab(context) {
  const [ids, probabilities] = await Promise.all([
    context.trace.tensor(LENS.ids),
    context.trace.tensor(LENS.probabilities),
  ]);
  return new LensView(context, ids, probabilities).node;
}

class LensView {
  /** @param {Context} context @param {Tensor} ids @param {Tensor} probabilities */
  constructor(context, ids, probabilities) {
    const { trace, selection } = context;
    this.context = context;
    this.ids = ids;
    this.probabilities = probabilities;
    this.layers = trace.tokens(LENS.ids, "layer")?.map((name) => name.label) ?? [];
    const count = ids.size("position");
    this.read = trace.tokens(LENS.ids, "position")?.map((one) => one.label) ?? numbers(count);
    this.actual = actualTokens(trace);
    const clamp = (/** @type {number|null} */ i, /** @type {number} */ size) => Math.min(i ?? size - 1, size - 1);
    this.layer = clamp(selection.current.layer, ids.size("layer"));
    this.position = clamp(selection.current.position ?? this.firstPosition(), count);
    this.details = h("div", { class: "lens-details", "aria-live": "polite" });
    this.grid = new TokenGrid(this.gridData());
    this.show(this.layer, this.position);
    context.layer = (by) => this.move(by);
    this.node = h(
      "div",
      { class: "stack" },
      h("section", { class: "card" }, h("h2", {}, "Logit lens"), h("p", { class: "muted" }, NOTE), this.grid.node),
      h("section", { class: "card" }, this.details),
    );
  }

  /** Rows above the layers: the token that followed; a masked language model predicts those that it read. */
  get above() {
    return this.actual.title === "token" ? 0 : 1;
  }

  /** The selected step of a generation, or the first mask. */
  firstPosition() {
    const { header } = this.context.trace;
    if (header.steps.length) return promptLength(this.context.trace) + this.context.selection.current.step;
    return Math.max(0, this.read.indexOf("[MASK]"));
  }

  /** Layers stand from the last one down. @param {number} layer */
  row(layer) {
    return this.layers.length - 1 - layer + this.above;
  }

  /** @returns {import("../widgets/token-grid.js").TokenGridData} */
  gridData() {
    const { title, tokens } = this.actual;
    const order = this.layers.map((_, i) => this.layers.length - 1 - i);
    const known = tokens.map((token) => ({ label: token?.label ?? "", value: NaN }));
    const lines = order.map((layer) => tokens.map((token, i) => this.cell(layer, i, token)));
    const pick = (/** @type {(layer: number, position: number) => void} */ act) => {
      return (/** @type {number} */ row, /** @type {number} */ column) =>
        act(this.layers.length - 1 - Math.max(0, row - this.above), column);
    };
    return {
      title: "Most probable token after each layer",
      corner: this.actual.title === "token" ? "layer" : "after",
      rows: [...(this.above ? [title] : []), ...order.map((layer) => this.layers[layer])],
      columns: this.read,
      cells: [...(this.above ? [known] : []), ...lines],
      selected: [this.row(this.layer), this.position],
      onselect: pick((layer, position) => this.select(layer, position)),
      onpoint: pick((layer, position) => this.show(layer, position)),
    };
  }

  /** @param {number} layer @param {number} position @param {import("../core/types.js").Token|null} actual */
  cell(layer, position, actual) {
    const [best] = lensCandidates(this.context.trace, this.ids, this.probabilities, layer, position);
    return { label: best.label, value: best.probability, marked: actual?.token === best.token };
  }

  /** @param {number} layer @param {number} position */
  select(layer, position) {
    [this.layer, this.position] = [layer, position];
    this.context.selection.set({ layer, position });
    this.show(layer, position);
  }

  /** @param {number} by */
  move(by) {
    const layer = Math.max(0, Math.min(this.layers.length - 1, this.layer + by));
    this.grid.show([this.row(layer), this.position]);
    this.select(layer, this.position);
  }

  /** @param {number} layer @param {number} position */
  show(layer, position) {
    const { trace } = this.context;
    const actual = this.actual.tokens[position];
    const what = this.actual.title === "token" ? "at" : "after";
    const bars = lensCandidates(trace, this.ids, this.probabilities, layer, position).map((one) => ({
      ...one,
      note: actual && one.token === actual.token ? this.actual.title : undefined,
    }));
    replace(
      this.details,
      h("h2", {}, `${this.layers[layer]}, ${what} `, word(this.read[position]), ` (position ${position + 1})`),
      candidateBars("Candidates of this layer", bars),
    );
  }
}

/** @param {number} count */
function numbers(count) {
  return Array.from({ length: count }, (_, i) => String(i + 1));
}
