// @ts-check
/** First steps on the start page, as long as there is no model but the built-in one. */
import { h, word } from "../core/dom.js";
import { traceAddress } from "../core/route.js";

/** @typedef {import("../core/types.js").Model} Model */
/** @typedef {import("../core/types.js").Summary} Summary */

/** Name of the built-in model, and id of its trace. */
const [BUILT_IN, TRACE] = ["built-in example", "example"];

/** @param {Model[]} models @param {Summary[]} traces @returns {HTMLElement|null} null: there are models of one's own */
export function firstSteps(models, traces) {
  const example = traces.find(({ id }) => id === TRACE);
  if (!example || models.some(({ name, usable }) => usable && name !== BUILT_IN)) return null;
  const open = (/** @type {string} */ text, /** @type {string} */ address) => h("a", { href: address }, text);
  return h(
    "section",
    { class: "card first-steps" },
    h("h2", {}, "Start here"),
    h(
      "p",
      {},
      "A small translator from French to English is built in. What it computed for ",
      word(example.text, "sentence source"),
      " → ",
      word(example.answer, "sentence target"),
      " is recorded, number by number:",
    ),
    h(
      "ul",
      { class: "steps-list" },
      h(
        "li",
        {},
        open("Take the tour", traceAddress(TRACE, { tour: "" })),
        ": every step, from the tokens to the word",
      ),
      h("li", {}, open("Open the picture", traceAddress(TRACE)), " of the whole model"),
      h("li", {}, open("Read the lessons", "#/learn"), ", from the neuron to the Transformer, with all numbers"),
    ),
    h(
      "p",
      { class: "muted" },
      "Or type a sentence above and press Run. ",
      h("code", {}, "regard demo"),
      " trains a larger model in three minutes.",
    ),
  );
}
