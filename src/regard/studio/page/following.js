// @ts-check
/** What the states after each word make the model say next: the best three of the step, with their probabilities. */
import { h, word } from "./dom.js";
import { shown } from "./format.js";
import { table } from "./table.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Description} Description */
/** @typedef {import("./types.js").Step} Step */

const BEST = 3;

/** Nothing where the states are not of what is said. @param {Context} context @param {Description} states */
export function following({ trace, selection }, states) {
  const { sequences, steps } = trace.header;
  const sides = Object.values(states.sides);
  const read = sequences.read ?? [];
  if (!steps.length || !(sides.includes("read") || sides.includes("target"))) return null;
  // a prompt of many words is read before the first is said
  const prompt = Math.max(0, read.length - steps.length);
  const rows = steps.map((step, i) => {
    const go = () => selection.set({ tab: "decode", step: i });
    const after = read[prompt + i]?.shown ?? String(i + 1);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "cell", onclick: go }, word(after))),
      ...step.best
        .slice(0, BEST)
        .flatMap((candidate) => [
          h("td", {}, word(candidate.shown, candidate.id === step.chosen.id ? "word target" : "word")),
          h("td", {}, shown(probability(step, candidate.logit))),
        ]),
    );
  });
  const names = ["best", "second", "third"].flatMap((name) => [name, "probability"]);
  return h(
    "section",
    { class: "card following" },
    h("h2", {}, "What it would say next"),
    h("p", { class: "muted" }, "After each word, by the model's last layer; choose a word to follow the step."),
    table("What it would say next", ["after", ...names], rows),
  );
}

/** Of a candidate, from what the chosen one had: p = p(chosen) e^(its logit - the chosen one's). @param {Step} step @param {number} logit */
function probability(step, logit) {
  return Math.exp(step.log + logit - step.chosen.logit);
}
