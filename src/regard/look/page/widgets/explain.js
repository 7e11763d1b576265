// @ts-check
/**
 * Explanations of numbers: from the server, which follows the operations of the pass down to the weights; in a page
 * without a server from the recorded tensors alone, as far as they go.
 */
import { ApiError } from "../core/api-error.js";
import { splitName } from "../trace/names.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("../core/types.js").Place} Place */
/** @typedef {import("../core/types.js").Expression} Expression */
/** @typedef {import("../core/types.js").Explanation} Explanation */
/** @typedef {import("../core/types.js").Vector} Vector */
/** @typedef {(trace: Trace, base: string, index: Index) => Promise<Expression|null>} Rule */

const WITHOUT_WEIGHTS =
  "This page has the recorded numbers, not the weights of the model: open the trace in `regard studio` to see how " +
  "this one was computed.";

/** @type {Record<string, {needs: string[], text: string, rule: Rule}>} */
const RULES = {
  weights: { needs: ["scores"], text: "Softmax: the share of this score among all scores of the row.", rule: weights },
  products: { needs: ["queries", "keys"], text: "The query of this row times the key of this column.", rule: products },
  scores: {
    needs: ["products", "queries"],
    text: "The product of query and key, divided by the square root of their width.",
    rule: scores,
  },
  context: {
    needs: ["weights", "values"],
    text: "The values of all keys in this component, weighted and summed.",
    rule: context,
  },
  hidden: { needs: ["gates", "cell"], text: "The output gate times the tanh of the cell state.", rule: hidden },
  cell: {
    needs: ["gates"],
    text: "The forget gate times the previous cell state, plus the input gate times the candidate.",
    rule: cell,
  },
};

/** How a number of a tensor was computed. @param {Trace} trace @param {string} name @param {Index} index @returns {Promise<Explanation>} */
export async function explain(trace, name, index) {
  const at = trace.describe(name).axes.map((axis) => `${axis}:${index[axis]}`);
  if (!trace.live) return explainLocally(trace, name, index, WITHOUT_WEIGHTS);
  try {
    return await trace.source.explain({ tensor: name, at: at.join(",") });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return explainLocally(trace, name, index, `${error.message} ${error.hint}`);
  }
}

/** @param {Trace} trace @param {string} name @param {Index} index @param {string} otherwise @returns {Promise<Explanation>} */
async function explainLocally(trace, name, index, otherwise) {
  const [base, last] = splitName(name);
  const found = RULES[last];
  const complete =
    found?.needs.every((other) => trace.has(sibling(base, other))) &&
    (!found.needs.includes("gates") || isLstm(trace, base));
  const expression = complete ? await found.rule(trace, base, index) : null; // null: before the first step
  const place = { kind: /** @type {const} */ ("tensor"), name, index, ref: "" };
  return { place, value: null, text: expression ? found.text : otherwise, expression };
}

/** @param {string} base @param {string} last */
function sibling(base, last) {
  return base ? `${base}.${last}` : last;
}

/** Whether the gates are those of an LSTM. @param {Trace} trace @param {string} base */
function isLstm(trace, base) {
  return (trace.describe(sibling(base, "gates")).names.gate ?? []).includes("output");
}

/** A number of a recorded tensor. @param {Trace} trace @param {string} name @param {Index} index @returns {Promise<Expression>} */
async function number(trace, name, index) {
  const own = ownIndex(trace, name, index);
  const value = (await trace.tensor(name)).at(own);
  return { op: "number", value, place: { kind: "tensor", name, index: own, ref: "" } };
}

/** @param {Trace} trace @param {string} name @param {Index} index @returns {Index} */
function ownIndex(trace, name, index) {
  return Object.fromEntries(trace.describe(name).axes.map((axis) => [axis, index[axis] ?? 0]));
}

/** Numbers of a recorded tensor along an axis. @param {Trace} trace @param {string} name @param {string} axis @param {Index} index @returns {Promise<Vector>} */
async function vector(trace, name, axis, index) {
  const { [axis]: _, ...same } = ownIndex(trace, name, index);
  const numbers = Array.from((await trace.tensor(name)).vector(axis, index));
  const places = numbers.map((_, i) => [i]);
  return { kind: "tensor", name, index: same, along: [axis], size: numbers.length, numbers, places, refs: [] };
}

/** @param {number} value @returns {Expression} */
function constant(value) {
  return { op: "number", value, place: { kind: "constant", name: "constant", index: {}, ref: "" } };
}

/** @param {Vector} left @param {Vector} right @returns {Expression} */
function dot(left, right) {
  const value = left.numbers.reduce((total, a, i) => total + a * right.numbers[i], 0);
  return { op: "dot", left, right, rest: 0, value };
}

/** @type {Rule} */
async function weights(trace, base, index) {
  const row = await vector(trace, sibling(base, "scores"), "key", index);
  const recorded = (await trace.tensor(sibling(base, "weights"))).vector("key", index);
  const best = maxScore(row.numbers);
  // a masked key has a score and no weight
  const visible = row.numbers.map((score, i) => (recorded[i] === 0 && isMasked(score, best) ? -Infinity : score));
  const total = visible.reduce((sum, score) => sum + Math.exp(score - best), 0);
  const own = await number(trace, sibling(base, "scores"), index);
  const value = Math.exp(visible[index.key] - best) / total;
  return { op: "softmax", number: { ...own, value: visible[index.key] }, vector: { ...row, numbers: visible }, value };
}

/** Whether a weight of exactly 0 comes from the mask: exp(score - best) alone would not be 0. @param {number} score @param {number} best */
export function isMasked(score, best) {
  return Number.isNaN(score) || Math.fround(Math.exp(score - best)) > 0;
}

/** Maximum of the scores that are numbers. @param {ArrayLike<number>} scores */
export function maxScore(scores) {
  let best = -Infinity;
  for (let i = 0; i < scores.length; i++) if (scores[i] > best) best = scores[i];
  return best;
}

/** @type {Rule} */
async function products(trace, base, index) {
  const [q, k] = ["queries", "keys"].map((last) => vector(trace, sibling(base, last), "width", index));
  return dot(await q, await k);
}

/** @type {Rule} */
async function scores(trace, base, index) {
  const product = await number(trace, sibling(base, "products"), index);
  const { axes, shape } = trace.describe(sibling(base, "queries"));
  const root = Math.sqrt(shape[axes.indexOf("width")]);
  return { op: "combination", operator: "÷", terms: [product, constant(root)], value: product.value / root };
}

/** @type {Rule} */
async function context(trace, base, index) {
  const [w, v] = ["weights", "values"].map((last) => vector(trace, sibling(base, last), "key", index));
  return dot(await w, await v);
}

/** A gate by its name. @param {Trace} trace @param {string} base @param {Index} index @param {string} gate */
function gateAt(trace, base, index, gate) {
  const name = sibling(base, "gates");
  return number(trace, name, { ...index, gate: (trace.describe(name).names.gate ?? []).indexOf(gate) });
}

/** @param {Expression} a @param {Expression} b @returns {Expression} */
function times(a, b) {
  return { op: "combination", operator: "×", terms: [a, b], value: a.value * b.value };
}

/** @type {Rule} */
async function hidden(trace, base, index) {
  const o = await gateAt(trace, base, index, "output");
  const c = await number(trace, sibling(base, "cell"), index);
  return times(o, { op: "call", function: "tanh", argument: c, value: Math.tanh(c.value) });
}

/** @type {Rule} */
async function cell(trace, base, index) {
  const name = sibling(base, "cell");
  const { axes, shape, backwards } = trace.describe(name);
  const position = index.position + (backwards ? 1 : -1);
  if (!(position >= 0 && position < shape[axes.indexOf("position")])) return null;
  const [f, i, g] = await Promise.all(["forget", "input", "candidate"].map((gate) => gateAt(trace, base, index, gate)));
  const terms = [times(f, await number(trace, name, { ...index, position })), times(i, g)];
  return { op: "combination", operator: "+", terms, value: terms[0].value + terms[1].value };
}
