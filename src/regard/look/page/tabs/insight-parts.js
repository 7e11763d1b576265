// @ts-check
/** Pictures of the insight tools: parts of a logit, ablated heads, attribution to tokens, and patched positions. */
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { matrix } from "../widgets/matrix.js";
import { signedBars } from "../widgets/signed-bars.js";

/** @typedef {import("../core/types.js").Context} Context */

/** Scores that a CRF adds to the emission logit of a label; null without a CRF. @param {any} scores */
function chainScores(scores) {
  if (!scores) return null;
  const { before, transition, after, next_transition } = scores;
  const number = (/** @type {string} */ name, /** @type {number} */ value) =>
    h("b", { class: "value", "data-value": name }, formatNumber(value));
  return h(
    "p",
    { class: "row" },
    h("span", {}, "The CRF adds:"),
    h("span", {}, before ? `transition from ${before} ` : "start ", number("transition", transition)),
    h("span", {}, after ? `transition to ${after} ` : "end ", number("next transition", next_transition)),
  );
}

/** Parts of one logit. @param {Context} _ @param {any} result @param {number} at */
export function attributionPicture(_, result, at) {
  const { parts, logit, output, chain } = result;
  const sum = parts.reduce((/** @type {number} */ total, /** @type {any} */ part) => total + part.value, 0);
  return h(
    "div",
    {},
    h(
      "p",
      { class: "row" },
      word(output.label, "sentence target"),
      h(
        "span",
        {},
        chain.length ? "emission logit " : "logit ",
        h("b", { class: "value", "data-value": "logit" }, formatNumber(logit)),
      ),
      h("span", {}, "sum of the parts ", h("b", { class: "value", "data-value": "sum" }, formatNumber(sum))),
    ),
    chainScores(chain[at]),
    signedBars({ title: "Parts of the logit", columns: ["part", "adds"], bars: parts, own: "in order" }),
  );
}

/** Heads, sorted by the change of the output's log-probability. @param {Context} context @param {any} result @param {number} at */
export function importancePicture({ selection }, result, at) {
  const bars = result.heads.map((/** @type {any} */ head, /** @type {number} */ i) => ({
    label: head.label,
    value: result.changes[i][at],
    onclick: () => selection.set({ tab: "attention", tensor: head.name, head: head.heads > 1 ? head.head : null }),
  }));
  const before = result.log_probs[at];
  return h(
    "div",
    {},
    h(
      "p",
      { class: "row" },
      word(result.outputs[at].label, "sentence target"),
      h("span", {}, "with all heads: log-probability ", h("b", { class: "value" }, formatNumber(before))),
      h("span", {}, "probability ", h("b", { class: "value" }, formatNumber(Math.exp(before)))),
    ),
    signedBars({
      title: "Change of the log-probability without each head",
      columns: ["head", "change of log p"],
      bars,
      own: "in order",
      note: "A head opens in the Attention tab. Heads can stand in for one another: a small change does not say that a head does nothing.",
    }),
  );
}

/** Gradient times input and integrated gradients of each token. @param {Context} _ @param {any} result */
export function inputPicture(_, result) {
  const numbers = Float64Array.from([...result.gradient, ...result.integrated]);
  const number = (/** @type {string} */ text, /** @type {number} */ value, name = "") =>
    h("span", {}, `${text} `, h("b", { class: "value", "data-value": name || null }, formatNumber(value)));
  return h(
    "div",
    {},
    matrix({
      title: "Contribution of each token",
      numbers,
      rows: ["gradient × input", "integrated gradients"],
      columns: result.labels,
      rowTitle: "method",
      columnTitle: "token",
      ramp: "signed",
      top: largest(numbers),
    }),
    h(
      "p",
      { class: "row" },
      number("log-probability", result.score),
      number("with embeddings of zero", result.baseline),
      number("difference", result.score - result.baseline),
      number("completeness error", result.error, "error"),
    ),
  );
}

/** Changes by patching, a matrix per side. @param {Context} _ @param {any} result */
export function patchPicture(_, result) {
  const top = Math.max(...result.grids.map((/** @type {any} */ grid) => largest(grid.changes.flat())));
  const grids = result.grids.map((/** @type {any} */ grid) =>
    h(
      "div",
      {},
      result.grids.length > 1 ? h("h3", {}, grid.side === "source" ? "Source" : "Target") : null,
      matrix({
        title: `Change of the log-probability, ${grid.side}`,
        numbers: Float64Array.from(grid.changes.toReversed().flat()),
        rows: grid.layers.toReversed(),
        columns: grid.tokens.map((/** @type {string} */ token, /** @type {number} */ i) =>
          token === grid.other[i] ? token : `${token} ← ${grid.other[i]}`,
        ),
        rowTitle: "layer",
        columnTitle: "position",
        ramp: "signed",
        top,
      }),
    ),
  );
  return h(
    "div",
    {},
    h(
      "p",
      { class: "row" },
      h("span", {}, "log-probability ", h("b", { class: "value" }, formatNumber(result.log_prob))),
      h("span", {}, "after the other text ", h("b", { class: "value" }, formatNumber(result.other_log_prob))),
    ),
    ...grids,
  );
}

/** @param {ArrayLike<number>} numbers */
function largest(numbers) {
  return Array.from(numbers).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}
