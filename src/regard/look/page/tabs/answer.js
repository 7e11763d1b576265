// @ts-check
/** Answer tab of a model that answers in one pass: a forecast as charts, class probabilities, labels over the words. */
import { ApiError } from "../core/api-error.js";
import { colorize } from "../core/color.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber, formatShort } from "../core/format.js";
import { showError } from "../core/notice.js";
import { softmax } from "../trace/probability.js";
import { candidateBars } from "../widgets/candidate-bars.js";
import { labeledButtons } from "../widgets/labeled-words.js";
import { legend } from "../widgets/matrix.js";
import { table, tableRow } from "../widgets/table.js";
import { TimeChart } from "../widgets/time-chart.js";
import { hasSaliency } from "./saliency.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").ForecastParts} ForecastParts */
/** @typedef {import("../core/types.js").LabeledToken} LabeledToken */
/** @typedef {import("../core/types.js").Saliency} Saliency */
/** @typedef {import("../trace/trace.js").Trace} Trace */

/** Classes and labels that are listed, and words at a mask beside other models. */
const [BARS, MASK_WORDS] = [20, 5];

/** The forecast of a trace; null if it has none. @param {Trace} trace @returns {ForecastParts|null} */
export function forecastParts({ header }) {
  return header.parts && "columns" in header.parts ? header.parts : null;
}

/** The labeled words of a trace; null if it has none. @param {import("../core/types.js").Header} header @returns {LabeledToken[]|null} */
export function labeledTokens({ parts }) {
  return parts && "tokens" in parts && parts.tokens.length ? parts.tokens : null;
}

/** Whether the logits of a trace are those of classes. @param {Trace} trace */
function classifies(trace) {
  return trace.has("logits") && trace.describe("logits").axes.join() === "label" && !trace.has("pixels");
}

/** Whether a trace has an answer that is drawn. @param {Trace} trace */
export function hasAnswer(trace) {
  return Boolean(forecastParts(trace) || labeledTokens(trace.header) || classifies(trace));
}

/** @param {Context} context */
export async function answerTab(context) {
  const forecast = forecastParts(context.trace);
  if (forecast) return forecastView(context, forecast);
  const tokens = labeledTokens(context.trace.header);
  return tokens ? new LabelsView(context, tokens).draw() : classesView(context);
}

/** @param {Context} context @param {ForecastParts} forecast */
function forecastView(context, forecast) {
  const charts = forecast.columns.map((column) => new TimeChart(forecast, column));
  const observer = new ResizeObserver(() => {
    for (const chart of charts) if (chart.stage.clientWidth) chart.draw(chart.stage.clientWidth);
  });
  for (const chart of charts) observer.observe(chart.stage);
  context.onleave(() => observer.disconnect());
  const ahead = forecast.columns[0]?.expected.length ?? 0;
  const title = (/** @type {string} */ name) => h("h2", {}, word(name), `: ${ahead} rows ahead`);
  return h(
    "div",
    { class: "stack" },
    ...charts.map((chart, i) => h("section", { class: "card" }, title(forecast.columns[i].name), chart.node)),
    h("section", { class: "card" }, h("h2", {}, "Forecast as numbers"), forecastTable(forecast)),
  );
}

/** @param {ForecastParts} forecast */
function forecastTable({ time, times, level, columns }) {
  const percent = `${Number((100 * level).toPrecision(4))} %`;
  const ahead = columns[0]?.expected.length ?? 0;
  const head = columns.flatMap(({ name }) => [name, `${name}, ${percent} from`, "to"]);
  const rows = Array.from({ length: ahead }, (_, i) =>
    tableRow(
      times[times.length - ahead + i],
      columns.flatMap(({ expected, lower, upper }) => [expected, lower, upper].map((side) => formatShort(side[i]))),
    ),
  );
  return table("Forecast as numbers", [time, ...head], rows);
}

/** Bars of class probabilities, the most probable first; null if a trace has no classes. @param {Trace} trace */
export async function classBars(trace) {
  if (!classifies(trace)) return null;
  const probabilities = softmax((await trace.tensor("logits")).data);
  const names = trace.tokens("logits", "label") ?? [];
  const order = Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
  const bars = order
    .slice(0, BARS)
    .map((i, rank) => ({
      label: names[i]?.label ?? String(i),
      probability: probabilities[i],
      note: rank ? undefined : "answer",
    }));
  const rest = order.length > BARS ? h("p", { class: "muted" }, `The ${BARS} most probable of ${order.length}.`) : null;
  return h("div", {}, candidateBars("Classes", bars, "class"), rest);
}

/** The best words at each mask; null if a trace has no masks. @param {Trace} trace */
export function maskBars({ header }) {
  if (header.predictions?.kind !== "mask") return null;
  const lists = header.predictions.positions.map(({ read, best }) =>
    h("div", {}, h("h3", {}, read.label), candidateBars(`Words at ${read.label}`, best.slice(0, MASK_WORDS), "word")),
  );
  return h("div", {}, ...lists);
}

/** Class probabilities, and the text colored by what supports the answer. @param {Context} context */
async function classesView(context) {
  const { trace } = context;
  const support = h("section", { class: "card" }, h("h2", {}, "What supports the answer"));
  if (hasSaliency(trace)) fillSupport(context, support, 0).catch(showError);
  else support.hidden = true;
  return h(
    "div",
    { class: "stack" },
    h("section", { class: "card" }, h("h2", {}, "Class probabilities"), await classBars(trace)),
    support,
  );
}

/** Adds the input colored by the saliency of one answer. @param {Context} context @param {HTMLElement} card @param {number} row */
async function fillSupport(context, card, row) {
  const title = h("h2", {}, "What supports the answer");
  replace(card, title, h("p", { class: "muted", role: "status" }, "computing"));
  try {
    const saliency = await context.trace.source.saliency();
    const scores = saliency.scores[Math.min(row, saliency.scores.length - 1)];
    const top = Math.max(0, ...saliency.scores.flat().map(Math.abs));
    const answer = saliency.rows[row] || saliency.title;
    const more = () => context.selection.set({ tab: "saliency", query: row });
    replace(
      card,
      h("div", { class: "row wrap" }, title, word(answer, "sentence target")),
      coloredText(saliency, scores, top),
      legend({ ramp: "signed", top, numbers: scores }),
      h(
        "p",
        { class: "muted" },
        "Orange supports the answer, blue opposes it: gradient × input, a first-order estimate. ",
        h("button", { type: "button", class: "link", onclick: more }, "All numbers"),
      ),
    );
  } catch (error) {
    const message = error instanceof ApiError ? `${error.message} ${error.hint}` : String(error);
    replace(card, title, h("p", { class: "empty", role: "alert" }, message));
  }
}

/** @param {Saliency} saliency @param {number[]} scores @param {number} top */
function coloredText(saliency, scores, top) {
  const words = saliency.columns.map((text, i) => {
    const label = `${text.trim() || text}: ${formatNumber(scores[i])}`;
    return colorize(
      h("span", { class: "colored-word", title: label }, word(text.trim() || text)),
      scores[i],
      top,
      "signed",
    );
  });
  return h("p", { class: "colored-text" }, ...words.flatMap((node) => [node, " "]));
}

/** Words with their labels, and the probabilities of the labels of one word. */
class LabelsView {
  /** @param {Context} context @param {LabeledToken[]} tokens */
  constructor(context, tokens) {
    this.context = context;
    this.tokens = tokens;
    this.words = h("section", { class: "card" });
    this.details = h("section", { class: "card", "aria-live": "polite" });
    this.support = h("section", { class: "card" });
    this.node = h("div", { class: "stack" }, this.words, this.details, this.support);
  }

  get chosen() {
    return Math.min(this.context.selection.current.position ?? 0, this.tokens.length - 1);
  }

  async draw() {
    const { context, tokens, chosen } = this;
    const { trace } = context;
    const choose = (/** @type {number} */ position) => {
      context.selection.set({ position });
      this.draw().catch(showError);
    };
    replace(this.words, h("h2", {}, "Labels"), labeledButtons(tokens, chosen, choose));
    const { text, label, probability } = tokens[chosen];
    const sure = probability === null ? "" : `, probability ${formatNumber(probability)}`;
    const bars = await this.bars();
    replace(
      this.details,
      h("h2", {}, word(text), ": ", word(label, "sentence target"), h("small", { class: "muted" }, sure)),
      bars,
      this.isChain && bars
        ? h(
            "p",
            { class: "muted" },
            "The bars are the scores of this word alone; the CRF chooses the labels of all words together.",
          )
        : null,
    );
    if (hasSaliency(trace)) fillSupport(context, this.support, chosen).catch(showError);
    else this.support.hidden = true;
    return this.node;
  }

  get isChain() {
    const { parts } = this.context.trace.header;
    return Boolean(parts && "is_chain" in parts && parts.is_chain);
  }

  /** Probabilities of the labels of the chosen word; null where labels are numbers or written forms. */
  async bars() {
    const { trace } = this.context;
    if (!trace.has("logits") || trace.describe("logits").axes.join() !== "position,label") return null;
    const logits = await trace.tensor("logits");
    const names = trace.tokens("logits", "label");
    if (!names || this.chosen >= logits.size("position")) return null;
    const probabilities = softmax(logits.vector("label", { position: this.chosen }));
    const order = Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
    const { label } = this.tokens[this.chosen];
    const bars = order
      .slice(0, BARS)
      .map((i) => ({
        label: names[i].label,
        probability: probabilities[i],
        note: names[i].token === label ? "chosen" : undefined,
      }));
    return candidateBars("Labels of this word", bars, "label");
  }
}
