// @ts-check
/** Lens tab: what each layer would predict at each position, if it were the last one (logit lens). */
import { h, replace, word } from "../core/dom.js";
import { LENS, lensCandidates, lensFacts, promptLength } from "../trace/predictions.js";
import { candidateBars } from "../widgets/candidate-bars.js";
import { TokenGrid } from "../widgets/token-grid.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/tensor.js").Tensor} Tensor */

const NOTES = {
  token:
    "The output of each layer goes through the model's own end, its last norm and its output projection, as if it were the last layer. The top row is the model's own prediction.",
  label:
    "The states of each layer go through the model's own end, its last norm, its pooling or its CRF if it has them, and its head, as if they were those of the last layer. The top row is the model's own prediction.",
};
/** Labels per layer in the grid, where the text as a whole gets one. */
const SHOWN = 5;

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
    this.facts = lensFacts(trace);
    this.read = trace.tokens(LENS.ids, "position")?.map((one) => one.label) ?? numbers(count);
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
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Logit lens"),
        h("p", { class: "muted" }, NOTES[this.what]),
        ...this.facts.notes.map((note) => h("p", { class: "muted lens-note" }, `Note: ${note}.`)),
        this.grid.node,
      ),
      h("section", { class: "card" }, this.details),
    );
  }

  /** What the candidates are. */
  get what() {
    return this.facts.title === "answer" ? "label" : "token";
  }

  /** Rows above the layers: what followed or was chosen; a masked language model predicts those that it read. */
  get above() {
    const { title, tokens, whole } = this.facts;
    return title === "token" || whole || !tokens.length ? 0 : 1;
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
    const { title, tokens, whole } = this.facts;
    const order = this.layers.map((_, i) => this.layers.length - 1 - i);
    const known = tokens.map((token) => ({ label: token?.label ?? "", value: NaN }));
    const positions = this.read.map((_, i) => i);
    const lines = order.map((layer) => (whole ? this.ranks(layer) : positions.map((i) => this.cell(layer, i, 0))));
    const pick = (/** @type {(layer: number, position: number) => void} */ act) => {
      return (/** @type {number} */ row, /** @type {number} */ column) =>
        act(this.layers.length - 1 - Math.max(0, row - this.above), whole ? 0 : column);
    };
    return {
      title: `Most probable ${this.what}${whole ? "s" : ""} after each layer`,
      corner: title === "next token" ? "after" : "layer",
      rows: [...(this.above ? [title] : []), ...order.map((layer) => this.layers[layer])],
      columns: whole ? lines[0].map((_, i) => String(i + 1)) : this.read,
      cells: [...(this.above ? [known] : []), ...lines],
      selected: [this.row(this.layer), this.position],
      onselect: pick((layer, position) => this.select(layer, position)),
      onpoint: pick((layer, position) => this.show(layer, position)),
    };
  }

  /** The best labels of a layer, where the text as a whole gets one. @param {number} layer */
  ranks(layer) {
    return Array.from({ length: Math.min(SHOWN, this.ids.size("candidate")) }, (_, rank) => this.cell(layer, 0, rank));
  }

  /** @param {number} layer @param {number} position @param {number} rank */
  cell(layer, position, rank) {
    const one = lensCandidates(this.context.trace, this.ids, this.probabilities, layer, position)[rank];
    return { label: one.label, value: one.probability, marked: this.facts.tokens[position]?.token === one.token };
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
    const { title, tokens, whole } = this.facts;
    const actual = tokens[position];
    const bars = lensCandidates(this.context.trace, this.ids, this.probabilities, layer, position).map((one) => ({
      ...one,
      note: actual && one.token === actual.token ? title : undefined,
    }));
    const where = [
      ` ${title === "next token" ? "after" : "at"} `,
      word(this.read[position]),
      ` (position ${position + 1})`,
    ];
    replace(
      this.details,
      h("h2", {}, whole ? this.layers[layer] : `${this.layers[layer]},`, ...(whole ? [] : where)),
      candidateBars("Candidates of this layer", bars, this.what),
    );
  }
}

/** @param {number} count */
function numbers(count) {
  return Array.from({ length: count }, (_, i) => String(i + 1));
}
