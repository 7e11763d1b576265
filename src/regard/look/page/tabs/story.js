// @ts-check
/** Story tab: the forward pass module by module, in order of computation, with the recorded vectors. */
import { thumbnail } from "../core/color.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { onVisible } from "../core/schedule.js";
import { moduleTitle, splitName } from "../trace/names.js";
import { strip } from "../widgets/strip.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */
/** @typedef {{base: string, tensors: Description[]}} Part */

/** Descriptions of tensors, by the last part of their names. */
const DESCRIPTIONS = {
  queries: "query of each word",
  keys: "key of each word",
  values: "value of each word",
  products: "dot products of queries and keys",
  scores: "how well each key matches the query",
  weights: "softmax of the scores",
  context: "weighted sum of the values",
  embedding: "embedding of each token",
  position: "positional encoding, added to the embedding",
  normalized: "output of the normalization",
  activations: "hidden units after the activation function",
  output: "output of the feed-forward network",
  residual_sum: "input of the sublayer plus its output",
  attention_residual: "input of the attention plus its output",
  residual: "residual stream after this module",
  features: "input of the output layer",
  gates: "gate activations",
  cell: "cell state",
  hidden: "hidden state",
};
const SIDES = [
  ["source", "Source word"],
  ["target", "Target word"],
];
const STRIPS = 4;

/** @param {Context} context */
export async function storyTab(context) {
  const story = new Story(context);
  story.draw();
  return story.node;
}

class Story {
  /** @param {Context} context */
  constructor(context) {
    const { sequences, tensors } = context.trace.header;
    this.context = context;
    this.parts = groupByModule(tensors.filter((tensor) => tensor.name !== "answer" && tensor.name !== "logits"));
    const last = Math.max(0, (sequences.target?.length ?? 1) - 1);
    /** @type {Record<string, number>} */
    this.at = { source: 0, target: Math.min(context.selection.current.step, last) };
    // a prompt is read before the first word is generated
    this.prompt = Math.max(0, (sequences.read?.length ?? 0) - (sequences.target?.length ?? 0));
    /** @type {Set<Part>} */
    this.open = new Set();
    this.node = h("div", { class: "stack" });
  }

  draw() {
    const { text, answer, sequences, steps } = this.context.trace.header;
    replace(
      this.node,
      h(
        "section",
        { class: "card" },
        h("h2", {}, "From the input to the answer"),
        h("p", {}, word(text, "sentence source"), " → ", word(answer, "sentence target")),
        ...SIDES.filter(([side]) => sequences[side]?.length).map(([side, name]) => this.tokenButtons(side, name)),
      ),
      h(
        "ol",
        { class: "story" },
        ...this.parts.map((part) => h("li", {}, this.block(part))),
        steps.length ? h("li", {}, this.outputSection()) : null,
      ),
    );
  }

  /** @param {string} side @param {string} name */
  tokenButtons(side, name) {
    const buttons = this.context.trace.header.sequences[side].map((token, i) => {
      const chosen = this.at[side] === i;
      const onclick = () => {
        this.at[side] = i;
        this.draw();
      };
      const kind = `token ${side}${chosen ? " picked" : ""}`;
      return h("button", { type: "button", class: kind, "aria-pressed": String(chosen), onclick }, word(token.label));
    });
    return h(
      "div",
      { class: "row wrap", role: "group", "aria-label": name },
      h("span", { class: "muted" }, name),
      ...buttons,
    );
  }

  /** @param {Part} part */
  block(part) {
    const inside = h("div", { class: "inside" });
    const preview = h("span", { class: "part-preview" });
    const names = part.tensors.map((tensor) => splitName(tensor.name)[1]).join(" → ");
    const details = h(
      "details",
      { class: "card part", open: this.open.has(part) },
      h(
        "summary",
        {},
        h("span", { class: "part-name" }, moduleTitle(part.base)),
        h("span", { class: "muted part-tensors" }, names),
        preview,
      ),
      inside,
    );
    const weights = part.tensors.find((tensor) => tensor.name.endsWith("weights"));
    onVisible(details, () => {
      this.preview(weights ?? part.tensors[part.tensors.length - 1])
        .then((canvas) => preview.append(canvas))
        .catch(showError);
    });
    const load = async () => {
      if (!details.open || inside.childElementCount) return;
      replace(inside, ...(await Promise.all(part.tensors.map((tensor) => this.tensorSection(tensor)))));
    };
    details.addEventListener("toggle", () => {
      if (details.open) this.open.add(part);
      else this.open.delete(part);
      load().catch(showError);
    });
    load().catch(showError);
    return details;
  }

  /** Preview of a module: its attention, mean of heads, or its vector at the selected word. @param {Description} tensor */
  async preview(tensor) {
    const numbers = (await this.context.trace.tensor(tensor.name)).mean("head").mean("gate");
    const isAttention = tensor.axes.includes("query") && tensor.axes.includes("key");
    const { own, index, last } = this.locate(tensor);
    const [rows, columns] = isAttention ? [numbers.size("query"), numbers.size("key")] : [1, numbers.size(last)];
    const values = isAttention ? numbers.plane("query", "key", {}) : numbers.vector(last, own ? index : {});
    const top = values.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0);
    const [width, height] = isAttention
      ? [Math.min(160, 8 * columns), Math.min(48, 8 * rows)]
      : [Math.min(160, 6 * columns), 16];
    const canvas = thumbnail(values, rows, columns, top, isAttention ? "weight" : "signed", width, height);
    canvas.setAttribute("aria-hidden", "true");
    return canvas;
  }

  /** Index of a tensor at the selected word. @param {Description} tensor */
  locate(tensor) {
    const last = tensor.axes[tensor.axes.length - 1];
    const own = tensor.axes.find((axis) => axis !== last && ["query", "position", "step", "key"].includes(axis));
    if (!own) return { own, last, index: {}, side: null };
    const side = tensor.sides[own] === "source" ? "source" : "target";
    const shift = tensor.sides[own] === "read" ? this.prompt : 0;
    const most = tensor.shape[tensor.axes.indexOf(own)] - 1;
    return { own, last, side, index: { [own]: Math.min(this.at[side] + shift, most) } };
  }

  /** One tensor at the selected word: one vector per head, at most four. @param {Description} tensor */
  async tensorSection(tensor) {
    const { trace, drawer } = this.context;
    const numbers = await trace.tensor(tensor.name);
    const { own, last, index, side } = this.locate(tensor);
    const other = tensor.axes.find((axis) => axis !== last && axis !== own);
    const kind = /** @type {keyof typeof DESCRIPTIONS} */ (splitName(tensor.name)[1]);
    const names = trace.tokens(tensor.name, last)?.map((w) => w.label) ?? null;
    const count = other ? numbers.size(other) : 1;
    const rows = Array.from({ length: Math.min(STRIPS, count) }, (_, i) => {
      /** @type {Record<string, number>} */
      const row = other ? { ...index, [other]: i } : index;
      const vector = strip({
        numbers: numbers.vector(last, row),
        top: Math.max(Math.abs(tensor.min), Math.abs(tensor.max)),
        ramp: kind === "weights" ? "weight" : "signed",
        label: `${tensor.name}${other ? ` ${other} ${i}` : ""}`,
        names,
        onpick: (unit) => drawer.open(tensor.name, { ...row, [last]: unit }),
      });
      return h(
        "div",
        { class: "row" },
        other ? h("span", { class: "muted strip-label" }, `${other} ${i}`) : null,
        vector,
      );
    });
    const where = own && side ? (trace.tokens(tensor.name, own)?.[index[own]]?.label ?? String(index[own])) : null;
    const rest = count > STRIPS ? h("p", { class: "muted" }, `and ${count - STRIPS} more in the Numbers tab`) : null;
    return h(
      "section",
      { class: "tensor" },
      h("h3", {}, kind, where ? h("span", { class: "muted" }, " at ") : null, where ? word(where) : null),
      DESCRIPTIONS[kind] ? h("p", { class: "muted" }, DESCRIPTIONS[kind]) : null,
      ...rows,
      rest,
    );
  }

  outputSection() {
    const { trace, selection } = this.context;
    const { steps } = trace.header;
    const step = steps[Math.min(this.at.target, steps.length - 1)];
    const best = step.best.slice(0, 5);
    const follow = () => selection.set({ tab: "decode", step: this.at.target });
    return h(
      "section",
      { class: "card part" },
      h("h3", {}, "logits → next word"),
      h(
        "p",
        {},
        "Chosen from the vocabulary: ",
        word(step.chosen.label, "word target"),
        `, with probability ${formatNumber(Math.exp(step.log_prob))}.`,
      ),
      h(
        "p",
        { class: "muted" },
        "The largest logits: ",
        ...best.flatMap((candidate, i) => [i ? ", " : "", word(candidate.label), ` ${formatNumber(candidate.logit)}`]),
      ),
      h("p", {}, h("button", { type: "button", class: "link", onclick: follow }, "Open this step in Decode")),
    );
  }
}

/** Consecutive tensors of the same module. @param {Description[]} tensors @returns {Part[]} */
function groupByModule(tensors) {
  /** @type {Part[]} */
  const parts = [];
  for (const tensor of tensors) {
    const base = splitName(tensor.name)[0];
    const last = parts[parts.length - 1];
    if (last?.base === base) last.tensors.push(tensor);
    else parts.push({ base, tensors: [tensor] });
  }
  return parts;
}
