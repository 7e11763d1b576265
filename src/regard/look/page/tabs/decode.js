// @ts-check
/** Decode tab: the candidates of each step, and the effect of temperature and filters on them. */
import { colorize } from "../core/color.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { promptLength } from "../trace/predictions.js";
import { applyTemperature, filterProbabilities, softmax } from "../trace/probability.js";
import { beamTree } from "../widgets/search-tree.js";
import { table } from "../widgets/table.js";
import { Transport } from "../widgets/transport.js";
import { crossTensor } from "./attention.js";
import { fork } from "./what-if.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Candidate} Candidate */
/** @typedef {import("../trace/probability.js").SamplingRules} SamplingRules */

const SHOWN = 20;

/** Whether the trace has decoding steps. @param {import("../trace/trace.js").Trace} trace */
export function hasSteps(trace) {
  return trace.header.steps.length > 0 && trace.has("logits");
}

/** @param {Context} context */
export async function decodeTab(context) {
  const tab = new DecodeView(context);
  await tab.start();
  return tab.node;
}

class DecodeView {
  /** @param {Context} context */
  constructor(context) {
    const { header } = context.trace;
    this.context = context;
    this.steps = header.steps;
    /** @type {SamplingRules} */
    this.rules = { temperature: 1, topK: 0, topP: 1, minP: 0 };
    this.crossTensor = crossTensor(header);
    /** @type {import("../trace/tensor.js").Tensor|null} */
    this.weights = null;
    this.transport = new Transport(context, this.steps.length);
    this.offset = promptLength(context.trace);
    this.sentence = h("div", {});
    this.table = h("div", { class: "table" });
    const choices = h(
      "section",
      { class: "card" },
      h("h2", {}, "Candidates"),
      sliders(this.rules, () => this.drawTable().catch(showError)),
      this.table,
    );
    const tree = header.beam.some((node) => !node.chosen) ? beamTree(header.beam) : null;
    const card = h("section", { class: "card" }, this.transport.node, this.sentence);
    this.node = h("div", { class: "stack" }, card, choices, tree);
  }

  async start() {
    const { context } = this;
    if (this.crossTensor) this.weights = (await context.trace.tensor(this.crossTensor.name)).mean("head");
    this.drawSentence();
    await this.drawTable();
    const redraw = () => {
      this.drawSentence();
      this.drawTable().catch(showError);
    };
    context.onleave(context.selection.listen(["step"], redraw));
  }

  get step() {
    return this.transport.step;
  }

  drawSentence() {
    const { step } = this;
    const sourceTokens = this.sourceTokens();
    const target = this.steps.map(({ chosen }, i) =>
      h(
        "button",
        {
          type: "button",
          class: `token target${i === step ? " picked" : ""}${i > step ? " later" : ""}`,
          "aria-pressed": String(i === step),
          onclick: () => this.transport.go(i),
        },
        word(chosen.label),
      ),
    );
    const where = `Color: attention of ${this.crossTensor?.name} at this step, mean of its heads.`;
    replace(
      this.sentence,
      sourceTokens.length ? h("p", { class: "tokens" }, ...sourceTokens) : null,
      h("p", { class: "tokens" }, ...target),
      this.crossTensor ? h("p", { class: "muted" }, where) : null,
    );
  }

  /** Source tokens, colored by their attention weight at this step. */
  sourceTokens() {
    const query = this.weights ? Math.min(this.step + this.offset, this.weights.size("query") - 1) : 0;
    const weights = this.weights?.vector("key", { query });
    const top = weights ? weights.reduce((a, b) => Math.max(a, b), 0) : 0;
    return (this.context.trace.header.sequences.source ?? []).map((token, i) => {
      if (!weights) return h("span", { class: "token source" }, word(token.label));
      const weight = h("small", {}, weights[i].toFixed(2));
      const node = h("span", { class: "token source", title: formatNumber(weights[i]) }, word(token.label), weight);
      return colorize(node, weights[i], top, "weight");
    });
  }

  async drawTable() {
    const { step, rules } = this;
    const logits = (await this.context.trace.tensor("logits", `step:${step}`)).data;
    if (step !== this.step) return;
    const probabilities = [
      softmax(logits),
      softmax(applyTemperature(logits, rules.temperature)),
      filterProbabilities(logits, rules),
    ];
    const left = probabilities[2].reduce((count, share) => count + (share > 0 ? 1 : 0), 0);
    const remaining = `${left.toLocaleString("en")} of ${logits.length.toLocaleString("en")} tokens remain after filtering`;
    const columns = ["", "token", "logit", "probability", "after temperature", "after filters", ""];
    const rows = this.steps[step].best
      .slice(0, SHOWN)
      .map((candidate, rank) => this.row(candidate, rank, probabilities));
    replace(
      this.table,
      h("p", { class: "muted" }, `${remaining}; entropy ${formatNumber(this.steps[step].entropy)} nats.`),
      table("Best candidates", columns, rows, { kind: "numbers candidates" }),
    );
  }

  /** @param {Candidate} candidate @param {number} rank @param {Float64Array[]} probabilities */
  row(candidate, rank, [plain, scaled, filtered]) {
    const { step, context } = this;
    const { id } = candidate;
    const chosen = id === this.steps[step].chosen.id;
    const explain = () => context.drawer.open("logits", { step, vocabulary: id });
    return h(
      "tr",
      { class: chosen ? "picked" : null },
      h("td", {}, String(rank + 1)),
      h(
        "th",
        { scope: "row" },
        h(
          "span",
          { class: "candidate" },
          word(candidate.label),
          chosen ? h("small", {}, " chosen") : context.trace.live ? this.forceButton(candidate, step) : null,
        ),
      ),
      h("td", {}, h("button", { type: "button", class: "cell", onclick: explain }, formatNumber(candidate.logit))),
      h("td", {}, formatNumber(plain[id])),
      h("td", {}, formatNumber(scaled[id])),
      h("td", {}, filtered[id] > 0 ? formatNumber(filtered[id]) : "cut"),
      h("td", { class: "bar" }, probabilityBar(filtered[id])),
    );
  }

  /** @param {Candidate} candidate @param {number} step */
  forceButton(candidate, step) {
    const label = `force: ${candidate.label} at step ${step + 1}`;
    const onclick = () => fork(this.context, { kind: "token", step, id: candidate.id }, { tab: "decode", step });
    return h("button", { type: "button", class: "small", "aria-label": label, title: label, onclick }, "force");
  }
}

/** @param {number} share */
function probabilityBar(share) {
  const bar = h("span", { class: "meter" });
  bar.style.width = `${Math.round(share * 96)}px`;
  return bar;
}

/** @param {SamplingRules} rules @param {() => void} onchange */
function sliders(rules, onchange) {
  const slider = (
    /** @type {keyof SamplingRules} */ name,
    /** @type {string} */ text,
    /** @type {number} */ min,
    /** @type {number} */ max,
    /** @type {number} */ step,
  ) => {
    const value = () => (name === "topK" && rules[name] === 0 ? "all" : String(rules[name]));
    const output = h("output", {}, value());
    const oninput = () => {
      rules[name] = Number(input.value);
      output.textContent = value();
      onchange();
    };
    const input = h("input", { type: "range", min, max, step, value: rules[name], "aria-label": text, oninput });
    return h("label", { class: "field slider" }, h("span", {}, text, " ", output), input);
  };
  return h(
    "div",
    { class: "row wrap sliders" },
    slider("temperature", "temperature", 0.1, 3, 0.05),
    slider("topK", "top-k", 0, 50, 1),
    slider("topP", "top-p", 0.05, 1, 0.05),
    slider("minP", "min-p", 0, 1, 0.02),
  );
}
