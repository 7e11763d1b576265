// @ts-check
/** Layer mix tab: the learned weights with which ELMo adds its layers, and what each layer contributes to one word. */
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { splitName } from "../trace/names.js";
import { table } from "../widgets/table.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../trace/tensor.js").Tensor} Tensor */

const NOTE =
  "The vector of a word is a sum over the layers: softmax weights that were learned with the task, times one factor for all. The weights are the same for every word.";

/** The tensor of the weights of a layer mix. @param {Trace} trace */
function mixTensor(trace) {
  return trace.header.tensors.find(({ name, axes }) => name.endsWith(".weights") && axes.join() === "layer");
}

/** Whether the trace has a learned mix of layers. @param {Trace} trace */
export function hasLayerMix(trace) {
  return mixTensor(trace) !== undefined;
}

/** @param {Context} context */
export async function layerMixTab(context) {
  const { trace } = context;
  const { name } = /** @type {{name: string}} */ (mixTensor(trace));
  const weights = (await trace.tensor(name)).vector("layer", {});
  const base = splitName(splitName(name)[0])[0];
  const names = Array.from(weights, (_, i) => `${base ? `${base}.` : ""}layer${i}`).filter((one) => trace.has(one));
  const layers = await Promise.all(names.map((one) => trace.tensor(one)));
  return new LayerMix(context, weights, names, layers).node;
}

class LayerMix {
  /** @param {Context} context @param {Float64Array} weights @param {string[]} names @param {Tensor[]} layers */
  constructor(context, weights, names, layers) {
    this.context = context;
    this.weights = weights;
    this.layers = layers.length === weights.length ? layers : [];
    this.tokens = names.length ? (context.trace.tokens(names[0], "position") ?? []) : [];
    this.position = Math.min(context.selection.current.position ?? 0, Math.max(0, this.tokens.length - 1));
    this.words = h("p", { class: "tokens", role: "group", "aria-label": "Word" });
    this.body = h("div", {});
    this.draw();
    this.node = h(
      "div",
      { class: "stack" },
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Layer mix"),
        h("p", { class: "muted" }, NOTE),
        this.layers.length ? this.words : null,
        this.body,
      ),
    );
  }

  draw() {
    replace(this.words, ...this.tokens.map((token, i) => this.wordButton(token.label, i)));
    const shares = this.contributions();
    const rows = Array.from(this.weights, (weight, i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, i === 0 ? "layer 0 (word vector)" : `layer ${i}`),
        h("td", {}, formatNumber(weight)),
        h("td", { class: "bar" }, meter(weight)),
        ...(shares
          ? [h("td", {}, formatNumber(shares[i])), h("td", { class: "bar" }, meter(shares[i] / total(shares)))]
          : []),
      ),
    );
    const columns = ["layer", "weight", "", ...(shares ? ["weight · |h| at this word", ""] : [])];
    replace(this.body, table("Weights of the layers", columns, rows, { kind: "numbers bars mix" }));
  }

  /** @param {string} label @param {number} i */
  wordButton(label, i) {
    const onclick = () => {
      this.position = i;
      this.context.selection.set({ position: i });
      this.draw();
    };
    const chosen = i === this.position;
    const props = { type: "button", class: `token source${chosen ? " picked" : ""}`, onclick };
    return h("button", { ...props, "aria-pressed": String(chosen) }, word(label));
  }

  /** Length of each layer's vector at the chosen word times its weight; null if the layers were not recorded. */
  contributions() {
    if (!this.layers.length) return null;
    return this.layers.map((layer, i) => {
      const vector = layer.vector("width", { position: this.position });
      return this.weights[i] * Math.hypot(...vector);
    });
  }
}

/** @param {number[]} numbers */
function total(numbers) {
  return numbers.reduce((a, b) => a + b, 0) || 1;
}

/** @param {number} share */
function meter(share) {
  const bar = h("span", { class: "meter" });
  bar.style.width = `${(100 * share).toFixed(2)}%`;
  return h("span", { class: "track" }, bar);
}
