// @ts-check
/** Gradients tab: how much the loss at each word depends on earlier states, |dL/dh|, and its decay with distance. */
import { h, replace, selectField, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { chart } from "../widgets/chart.js";
import { matrix } from "../widgets/matrix.js";
import { FILL, hasSingleAnswer } from "./saliency.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Gradients} Gradients */

/**
 * Names of the states that have gradients: on the server, those with one vector per token; in a file, the stored ones.
 * @param {import("../trace/trace.js").Trace} trace
 */
export function gradientTensors(trace) {
  const { header } = trace;
  if (!trace.live) return (header.gradients ?? []).map((gradients) => gradients.name);
  if (header.fork || hasSingleAnswer(header) || header.kind === FILL) return [];
  return header.tensors.filter((tensor) => tensor.axes.join() === "position,width").map((tensor) => tensor.name);
}

/** @param {Context} context */
export async function gradientsTab(context) {
  const { trace, selection } = context;
  const body = h("div", { class: "stack" });
  const draw = async () => {
    const names = gradientTensors(trace);
    const name = selection.current.tensor;
    const gradients = await trace.source.gradients(name !== null && names.includes(name) ? name : null);
    replace(body, card(context, gradients, names), ...decayChart(gradients));
  };
  await draw();
  context.onleave(selection.listen(["tensor"], () => draw().catch(showError)));
  return body;
}

/** @param {Context} context @param {Gradients} gradients @param {string[]} names */
function card(context, gradients, names) {
  const { trace, selection } = context;
  const numbers = Float64Array.from(gradients.norms.flat());
  const options = names.map((name) => ({ value: name, text: name }));
  return h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "row" },
      h("h2", {}, "Gradients"),
      selectField("States", options, gradients.name, (tensor) => selection.set({ tensor })),
    ),
    h(
      "p",
      {},
      "Each row is the loss of a target word, each column the state after an input word. Input: ",
      word(trace.header.text, "sentence source"),
      trace.header.sequences.source ? ", with its recorded answer." : "; what was generated after it is not read.",
    ),
    matrix({
      title: `|dL/dh|, h = ${gradients.name}`,
      numbers,
      rows: gradients.rows.map(tokenLabel),
      columns: gradients.columns.map(tokenLabel),
      rowTitle: "loss",
      columnTitle: "state",
      ramp: "log",
      top: numbers.reduce((a, b) => Math.max(a, b), 0),
      roles: ["target", gradients.side === "source" ? "source" : "target"],
    }),
    ...zeroNotes(gradients).map((text) => h("p", { class: "muted" }, text)),
  );
}

/** Why a first row or a last column has no gradient at all. @param {Gradients} gradients @returns {string[]} */
function zeroNotes({ norms, rows, columns }) {
  const [first, last] = [norms[0] ?? [], columns.length - 1];
  const loss = tokenLabel(rows[0] ?? "");
  const state = tokenLabel(columns[last] ?? "");
  return [
    norms.length > 1 && first.every((norm) => norm === 0)
      ? `The row of ${loss} is 0: it was predicted before any of these states existed. In RNNsearch a word is predicted from the state before its predecessor is read, the first one from the start state.`
      : "",
    norms.length > 1 && norms.every((row) => row[last] === 0)
      ? `The column of ${state} is 0: no word was predicted from that state, which is the last.`
      : "",
  ].filter(Boolean);
}

/** @param {Gradients} gradients */
function decayChart({ decay: { distances, norms, rate, relative } }) {
  const points = /** @type {[number, number][]} */ (distances.map((distance, i) => [distance, Math.log10(norms[i])]));
  const title = `log₁₀ |dL/dh|${relative ? ", relative to that at 0" : ""}`;
  const lines = [{ name: "mean", role: "attention", points }];
  const curve = chart(title, lines, "", { axis: "distance", heading: "Decay with distance" });
  return [
    h("div", { class: "charts" }, curve),
    rate === null
      ? null
      : h(
          "p",
          { class: "muted" },
          `Each step further back multiplies the gradient by ${formatNumber(rate)}: the slope of the regression line through all distances from 1 on.`,
        ),
  ];
}

/** A token without the mark for the start of a word, and with blanks that can be seen. @param {string} token */
function tokenLabel(token) {
  const label = token.replace(/^[ \u2581](?=.)/u, "").replaceAll("\n", "↵");
  return label.trim() ? label : "␣".repeat(label.length);
}
