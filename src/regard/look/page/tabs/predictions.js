// @ts-check
/** Predictions tab: the candidates for the next token at each position, or for each mask. */
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { LENS, lensCandidates, promptLength, stepPrediction } from "../trace/predictions.js";
import { candidateBars } from "../widgets/candidate-bars.js";
import { TokenGrid } from "../widgets/token-grid.js";
import { hasLens } from "./lens.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Prediction} Prediction */
/** @typedef {import("../trace/trace.js").Trace} Trace */

/** Candidates per position in the grid, and below it. */
const [SHOWN, BARS] = [5, 10];
const MASK = "[MASK]";
const NOTES = {
  mask: "What the model would put at each mask; the most probable word first.",
  next: "The most probable next token after each token of the text, and the rank of the one that followed.",
  step: "The most probable next token after each token. Those after the prompt are the predictions that the answer was chosen from; those inside the prompt are of the last layer of the logit lens.",
};

/** Whether the trace has predictions of tokens. @param {Trace} trace */
export function hasPredictions({ header }) {
  return Boolean(header.predictions?.positions.length || header.steps.length);
}

/** @param {Context} context */
export async function predictionsTab(context) {
  const { trace } = context;
  const { predictions, steps, sequences } = trace.header;
  if (predictions) return new PredictionsView(context, predictions.kind, predictions.positions).node;
  const prompt = promptLength(trace);
  const generated = steps.map((step, i) => stepPrediction(step, sequences.read?.[prompt + i]));
  const before = hasLens(trace) && !sequences.source ? await promptPredictions(trace, prompt) : [];
  return new PredictionsView(context, "step", [...before, ...generated]).node;
}

/** Predictions inside a prompt, by the last layer of the lens. @param {Trace} trace @param {number} prompt */
async function promptPredictions(trace, prompt) {
  const [ids, probabilities] = await Promise.all([trace.tensor(LENS.ids), trace.tensor(LENS.probabilities)]);
  const { read } = trace.header.sequences;
  const layer = ids.size("layer") - 1;
  return Array.from({ length: prompt }, (_, i) => {
    const best = lensCandidates(trace, ids, probabilities, layer, i);
    const rank = best.findIndex((one) => one.token === read[i + 1].token) + 1;
    const probability = rank ? best[rank - 1].probability : NaN;
    return { read: read[i], best, actual: { ...read[i + 1], rank, probability } };
  });
}

class PredictionsView {
  /** @param {Context} context @param {string} kind @param {Prediction[]} all */
  constructor(context, kind, all) {
    this.context = context;
    this.all = all;
    this.kind = kind;
    const { position, step } = context.selection.current;
    const at = Math.min(position ?? (kind === "step" ? promptLength(context.trace) + step : 0), all.length - 1);
    this.details = h("div", { "aria-live": "polite" });
    this.sentence = h("p", { class: "tokens", role: "group", "aria-label": "Text with masks" });
    this.grid = new TokenGrid(this.gridData(at));
    this.show(at);
    const title = kind === "mask" ? "Predictions for each mask" : "Next-token candidates";
    const note = NOTES[/** @type {keyof typeof NOTES} */ (kind)] ?? NOTES.next;
    this.node = h(
      "div",
      { class: "stack" },
      h(
        "section",
        { class: "card" },
        h("h2", {}, title),
        h("p", { class: "muted" }, note),
        kind === "mask" ? this.sentence : null,
        this.grid.node,
      ),
      h("section", { class: "card" }, this.details),
    );
  }

  get actualTitle() {
    return this.kind === "step" ? "chosen" : "actual";
  }

  /** @param {number} at @returns {import("../widgets/token-grid.js").TokenGridData} */
  gridData(at) {
    const count = Math.min(SHOWN, Math.max(...this.all.map((one) => one.best.length)));
    const columns = Array.from({ length: count }, (_, i) => String(i + 1));
    const withActual = this.all.some((one) => one.actual);
    const cells = this.all.map(({ best, actual }) => [
      ...columns.map((_, i) => ({
        label: best[i]?.label ?? "",
        value: best[i]?.probability ?? NaN,
        marked: actual !== null && best[i]?.token === actual.token,
      })),
      ...(withActual
        ? [
            { label: actual?.label ?? "", value: NaN },
            { label: formatRank(actual), value: NaN },
          ]
        : []),
    ]);
    return {
      title: this.kind === "mask" ? "Candidates for each mask" : "Candidates at each position",
      corner: this.kind === "mask" ? "mask" : "after",
      rows: this.all.map((one) => one.read.label),
      columns: withActual ? [...columns, this.actualTitle, "rank"] : columns,
      cells,
      selected: [at, 0],
      onselect: (row) => this.select(row),
      onpoint: (row) => this.show(row),
    };
  }

  /** @param {number} at */
  select(at) {
    this.context.selection.set({ position: at });
    this.show(at);
  }

  /** The text that was read, with the best word at each mask; a mask can be chosen. @param {number} at */
  drawSentence(at) {
    let number = -1;
    const tokens = (this.context.trace.header.sequences.source ?? []).map(({ token, label }) => {
      if (token !== MASK || number + 1 >= this.all.length) return h("span", { class: "token source" }, word(label));
      const mask = ++number;
      const onclick = () => {
        this.grid.show([mask, 0]);
        this.select(mask);
      };
      const props = { type: "button", class: `token target${mask === at ? " picked" : ""}`, onclick };
      const best = this.all[mask].best[0].label;
      return h("button", { ...props, "aria-pressed": String(mask === at) }, word(best), h("small", {}, label));
    });
    replace(this.sentence, ...tokens);
  }

  /** @param {number} at */
  show(at) {
    if (this.kind === "mask") this.drawSentence(at);
    const { read, best, actual } = this.all[at];
    const bars = best
      .slice(0, BARS)
      .map((one) => ({ ...one, note: actual && one.token === actual.token ? this.actualTitle : undefined }));
    const missing =
      actual && !bars.some((one) => one.note)
        ? h("p", {}, `${this.actualTitle}: `, word(actual.label), ` (${chance(actual)})`)
        : null;
    replace(
      this.details,
      this.kind === "mask" ? h("h2", {}, read.label) : h("h2", {}, "After ", word(read.label), ` (position ${at + 1})`),
      candidateBars("Candidates at this position", bars),
      missing,
    );
  }
}

/** @param {Prediction["actual"]} actual */
function formatRank(actual) {
  if (!actual) return "";
  return actual.rank ? `#${actual.rank}` : "further down";
}

/** @param {NonNullable<Prediction["actual"]>} actual */
function chance({ rank, probability }) {
  const place = rank ? `rank ${rank}` : "not among the best";
  return Number.isNaN(probability) ? place : `${place}, probability ${formatNumber(probability)}`;
}
