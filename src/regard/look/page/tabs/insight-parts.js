// @ts-check
/** Pictures of the insight tools: parts of a logit, and heads by what their ablation changes. */
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { signedBars } from "../widgets/signed-bars.js";

/** @typedef {import("../core/types.js").Context} Context */

/** Parts of one logit. @param {Context} _ @param {any} result */
export function attributionPicture(_, result) {
  const { parts, logit, output } = result;
  const sum = parts.reduce((/** @type {number} */ total, /** @type {any} */ part) => total + part.value, 0);
  return h(
    "div",
    {},
    h(
      "p",
      { class: "row" },
      word(output.label, "sentence target"),
      h("span", {}, "logit ", h("b", { class: "value", "data-value": "logit" }, formatNumber(logit))),
      h("span", {}, "sum of the parts ", h("b", { class: "value", "data-value": "sum" }, formatNumber(sum))),
    ),
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
