// @ts-check
/** Attention rollout over a text: how much of each token there is in a chosen one after all layers. */
import { colorize } from "../core/color.js";
import { buttonGroup, h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { matrix } from "../widgets/matrix.js";
import { axisLabels } from "./one-head.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */

const NOTE =
  "Attention rollout (Abnar and Zuidema 2020) multiplies (mean of the heads + identity) / 2 over all layers: the share of each token that attention weights and residual connections carry into the chosen position. What values, norms and feed-forward networks do is not in it.";

/** Rollouts over a text, one per stack. @param {import("../core/types.js").Header} header */
function rolloutTensors(header) {
  return header.tensors.filter((t) => t.name.endsWith(".rollout") && t.axes.includes("query"));
}

/** The panel; null if the model has no layers of self-attention. @param {Context} context */
export function rolloutPanel(context) {
  const stacks = rolloutTensors(context.trace.header);
  return stacks.length ? new RolloutPanel(context, stacks).node : null;
}

class RolloutPanel {
  /** @param {Context} context @param {Description[]} stacks */
  constructor(context, stacks) {
    this.context = context;
    this.stacks = stacks;
    this.name = stacks[0].name;
    this.node = h("section", { class: "card rollout", "data-panel": "rollout" });
    this.tokens = h("div", { class: "tokens colored", role: "group", "aria-label": "Share of each token" });
    this.readout = h("output", { class: "readout", "aria-live": "polite" });
    context.onleave(context.selection.listen(["position"], () => this.mark()));
    this.draw().catch(showError);
  }

  /** The chosen position. */
  get at() {
    return Math.min(this.context.selection.current.position ?? this.labels.length - 1, this.labels.length - 1);
  }

  /** @type {string[]} */
  labels = [];
  /** @type {Float64Array} */
  numbers = new Float64Array();

  async draw() {
    const { trace, selection, drawer } = this.context;
    const name = this.name;
    const tensor = await trace.tensor(name);
    if (name !== this.name) return; // another stack was chosen meanwhile
    this.labels = axisLabels(trace, name, "key", tensor.size("key"));
    this.numbers = Float64Array.from(tensor.plane("query", "key", {}));
    const options = this.stacks.map(({ name }) => ({ value: name, text: name.replace(/\.rollout$/, "") }));
    const choose = (/** @type {string} */ chosen) => {
      this.name = chosen;
      this.draw().catch(showError);
    };
    replace(
      this.node,
      h(
        "div",
        { class: "row" },
        h("h2", {}, "Attention rollout"),
        options.length > 1 ? buttonGroup("Stack", options, name, choose) : null,
      ),
      h("p", { class: "muted" }, NOTE),
      this.tokens,
      this.readout,
      matrix({
        title: `Attention rollout, ${name.replace(/\.rollout$/, "")}`,
        numbers: this.numbers,
        rows: this.labels,
        columns: this.labels,
        rowTitle: "position",
        columnTitle: "token",
        ramp: "weight",
        top: 1,
        sums: true,
        onselect: (position) => selection.set({ position }),
        onexplain: (query, key) => drawer.open(name, { query, key }),
      }),
    );
    this.mark();
  }

  /** Colors the tokens by their shares in the chosen position. */
  mark() {
    const { labels, at } = this;
    if (!labels.length) return; // not loaded yet
    const shares = this.numbers.subarray(at * labels.length, (at + 1) * labels.length);
    const top = shares.reduce((most, share) => Math.max(most, share), 0);
    replace(this.tokens, ...labels.map((label, i) => this.token(label, i, shares[i], top)));
    let best = 0;
    for (const [i, share] of shares.entries()) if (share > shares[best]) best = i;
    const number = h("b", { class: "value" }, formatNumber(shares[best]));
    const from = [" (position ", String(best + 1), ")"];
    const query = [word(labels[at]), ` (position ${at + 1})`];
    replace(this.readout, "Largest share in ", ...query, ": ", number, " of ", word(labels[best]), ...from);
  }

  /** @param {string} label @param {number} i @param {number} share @param {number} top */
  token(label, i, share, top) {
    const { selection } = this.context;
    const node = h(
      "button",
      {
        type: "button",
        class: `token${i === this.at ? " picked" : ""}`,
        "aria-pressed": String(i === this.at),
        "data-focus": `rollout ${i}`,
        title: `${label}: ${formatNumber(share)}`,
        onclick: () => selection.set({ position: i }),
      },
      word(label),
      h("small", {}, share.toFixed(2)),
    );
    return colorize(node, share, top, "weight");
  }
}
