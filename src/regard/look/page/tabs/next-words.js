// @ts-check
/** Next-word predictions: the three best candidates after each word, with their probabilities. */
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { promptLength, stepProbability } from "../trace/predictions.js";
import { table } from "../widgets/table.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */

const BEST = 3;

/** Null if the states do not belong to the generated words. @param {Context} context @param {Description} states */
export function nextWords({ trace, selection }, states) {
  const { sequences, steps } = trace.header;
  const sides = Object.values(states.sides);
  const read = sequences.read ?? [];
  if (!steps.length || !(sides.includes("read") || sides.includes("target"))) return null;
  const prompt = promptLength(trace);
  const rows = steps.map((step, i) => {
    const go = () => selection.set({ tab: "decode", step: i });
    const after = read[prompt + i]?.label ?? String(i + 1);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "cell", onclick: go }, word(after))),
      ...step.best
        .slice(0, BEST)
        .flatMap((candidate) => [
          h("td", {}, word(candidate.label, candidate.id === step.chosen.id ? "word target" : "word")),
          h("td", {}, formatNumber(stepProbability(step, candidate.logit))),
        ]),
    );
  });
  const names = ["best", "second", "third"].flatMap((name) => [name, "probability"]);
  return h(
    "section",
    { class: "card next-words" },
    h("h2", {}, "Next-word predictions"),
    h("p", { class: "muted" }, "The best candidates after each word; choose a word to open its step."),
    table("Next-word predictions", ["after", ...names], rows),
  );
}
