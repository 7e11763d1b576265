// @ts-check
/** How a recorded number was computed: formula and operands, by the name of its tensor. */
import { splitName } from "../trace/names.js";
import { softmax } from "../trace/probability.js";
import {
  dot,
  dotTerms,
  formula,
  fraction,
  mi,
  mn,
  mo,
  mrow,
  mtext,
  parenthesize,
  power,
  sqrt,
  subscript,
  sum,
} from "./formula.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Index} Index */
/**
 * @typedef {{text: string, formulas: Element[], computed: number|null,
 *   operands: {label: string, numbers: Float64Array, names: string[]|null}[],
 *   next: {label: string, name: string, index: Index}[]}} Explanation
 */
/** @typedef {(trace: Trace, base: string, index: Index) => Promise<Explanation>} Rule */

/** @type {Record<string, {needs: string[], rule: Rule}>} */
const RULES = {
  weights: { needs: ["scores"], rule: weights },
  products: { needs: ["queries", "keys"], rule: products },
  scores: { needs: ["products", "queries"], rule: scores },
  context: { needs: ["weights", "values"], rule: context },
  hidden: { needs: ["gates", "cell"], rule: hidden },
  cell: { needs: ["gates"], rule: cell },
  logits: { needs: [], rule: logits },
};
/** Gates of an LSTM. */
const GATES = ["input", "forget", "candidate", "output"];

/** @param {string} base @param {string} last */
function sibling(base, last) {
  return base ? `${base}.${last}` : last;
}

/** @param {Trace} trace @param {string} name @param {Index} index @returns {Promise<Explanation>} */
export async function explain(trace, name, index) {
  const [base, last] = splitName(name);
  const explained = RULES[last];
  const complete = explained?.needs.every((other) => trace.has(sibling(base, other)));
  if (complete && (!explained.needs.includes("gates") || isLstm(trace, base)))
    return explained.rule(trace, base, index);
  return {
    text: "Recorded by the model. The tensors it was computed from are not in the trace.",
    formulas: [],
    computed: null,
    operands: [],
    next: [],
  };
}

/** Whether all gates of an LSTM were recorded. @param {Trace} trace @param {string} base */
function isLstm(trace, base) {
  const names = trace.describe(sibling(base, "gates")).names.gate ?? [];
  return GATES.every((gate) => names.includes(gate));
}

/** @param {Trace} trace @param {string} base @param {import("../trace/tensor.js").Tensor} gates @param {Index} index @param {string} gate */
function gateAt(trace, base, gates, index, gate) {
  return gates.at({ ...index, gate: trace.describe(sibling(base, "gates")).names.gate.indexOf(gate) });
}

/** @param {Trace} trace @param {string} name @param {string} axis */
function tokenTexts(trace, name, axis) {
  return trace.tokens(name, axis)?.map((word) => word.label) ?? null;
}

/** @type {Rule} */
async function weights(trace, base, index) {
  const [name, from] = [sibling(base, "weights"), sibling(base, "scores")];
  const [scoreTensor, weightTensor] = await Promise.all([trace.tensor(from), trace.tensor(name)]);
  const all = scoreTensor.vector("key", index);
  const recorded = weightTensor.vector("key", index);
  // a masked key has a score and no weight
  const best = maxScore(all);
  const visible = all.map((score, i) => (recorded[i] === 0 && isMasked(score, best) ? NaN : score));
  const computed = softmax(visible)[index.key];
  const total = visible.reduce((s, score) => s + (Number.isNaN(score) ? 0 : Math.exp(score)), 0);
  const score = visible[index.key];
  return {
    text: "Softmax: the share of this score among all scores of the row.",
    formulas: [
      formula(
        mi("w"),
        mo("="),
        fraction(
          power(mi("e"), subscript(mi("s"), mi("k"))),
          mrow(sum("j"), power(mi("e"), subscript(mi("s"), mi("j")))),
        ),
      ),
      Number.isNaN(score)
        ? formula(mi("w"), mo("="), mn(0), mtext(" (this key is masked)"))
        : formula(mo("="), fraction(power(mi("e"), mn(score)), mn(total)), mo("="), mn(computed)),
    ],
    computed: Number.isNaN(score) ? 0 : computed,
    operands: [
      { label: "scores of the row", numbers: all, names: tokenTexts(trace, from, "key") },
      { label: "weights of the row", numbers: recorded, names: tokenTexts(trace, name, "key") },
    ],
    next: [{ label: "How was the score computed?", name: from, index }],
  };
}

/** Whether a weight of exactly 0 comes from the mask: exp(score - best) alone would not be 0. @param {number} score @param {number} best */
export function isMasked(score, best) {
  return Number.isNaN(score) || Math.fround(Math.exp(score - best)) > 0;
}

/** Maximum of the scores that are numbers. @param {Float64Array} scores */
export function maxScore(scores) {
  return scores.reduce((a, b) => (Number.isNaN(b) ? a : Math.max(a, b)), -Infinity);
}

/** @type {Rule} */
async function products(trace, base, index) {
  const [queries, keys] = await Promise.all([
    trace.tensor(sibling(base, "queries")),
    trace.tensor(sibling(base, "keys")),
  ]);
  const q = queries.vector("width", index);
  const k = keys.vector("width", index);
  const computed = dot(q, k);
  return {
    text: "The query of this row times the key of this column.",
    formulas: [
      formula(mi("p"), mo("="), mrow(mi("q"), mo("·"), mi("k"))),
      formula(mo("="), dotTerms(q, k)),
      formula(mo("="), mn(computed)),
    ],
    computed,
    operands: [
      { label: "query", numbers: q, names: null },
      { label: "key", numbers: k, names: null },
    ],
    next: [],
  };
}

/** @type {Rule} */
async function scores(trace, base, index) {
  const name = sibling(base, "products");
  const product = (await trace.tensor(name)).at(index);
  const { axes, shape } = trace.describe(sibling(base, "queries"));
  const width = shape[axes.indexOf("width")];
  const computed = product / Math.sqrt(width);
  return {
    text: "The product of query and key, divided by the square root of their width.",
    formulas: [
      formula(mi("s"), mo("="), fraction(mrow(mi("q"), mo("·"), mi("k")), sqrt(mi("d")))),
      formula(mo("="), fraction(mn(product), sqrt(mtext(String(width)))), mo("="), mn(computed)),
    ],
    computed,
    operands: [],
    next: [{ label: "How was the product computed?", name, index }],
  };
}

/** @type {Rule} */
async function context(trace, base, index) {
  const [weightTensor, values] = await Promise.all([
    trace.tensor(sibling(base, "weights")),
    trace.tensor(sibling(base, "values")),
  ]);
  const w = weightTensor.vector("key", index);
  const v = values.vector("key", index);
  const computed = dot(w, v);
  const keys = tokenTexts(trace, sibling(base, "weights"), "key");
  return {
    text: "The values of all keys in this component, weighted and summed.",
    formulas: [
      formula(mi("z"), mo("="), sum("k"), subscript(mi("w"), mi("k")), subscript(mi("v"), mi("k"))),
      formula(mo("="), dotTerms(w, v)),
      formula(mo("="), mn(computed)),
    ],
    computed,
    operands: [
      { label: "weights", numbers: w, names: keys },
      { label: "values", numbers: v, names: keys },
    ],
    next: [],
  };
}

/** @type {Rule} */
async function hidden(trace, base, index) {
  const [gates, cells] = await Promise.all([trace.tensor(sibling(base, "gates")), trace.tensor(sibling(base, "cell"))]);
  const [o, c] = [gateAt(trace, base, gates, index, "output"), cells.at(index)];
  return {
    text: "The output gate times the tanh of the cell state.",
    formulas: [
      formula(mi("h"), mo("="), mi("o"), mo("·"), mi("tanh"), mo("("), mi("c"), mo(")")),
      formula(mo("="), mn(o), mo("·"), mi("tanh"), mo("("), mn(c), mo(")"), mo("="), mn(o * Math.tanh(c))),
    ],
    computed: o * Math.tanh(c),
    operands: [],
    next: [{ label: "How was the cell state computed?", name: sibling(base, "cell"), index }],
  };
}

/** @type {Rule} */
async function cell(trace, base, index) {
  const [gates, cells] = await Promise.all([trace.tensor(sibling(base, "gates")), trace.tensor(sibling(base, "cell"))]);
  const [i, f, g] = GATES.slice(0, 3).map((gate) => gateAt(trace, base, gates, index, gate));
  const earlier = index.position + (trace.describe(sibling(base, "cell")).backwards ? 1 : -1);
  const past = subscript(mi("c"), mrow(mi("t"), mo("−"), mtext("1")));
  const general = formula(
    subscript(mi("c"), mi("t")),
    mo("="),
    mi("f"),
    mo("·"),
    past,
    mo("+"),
    mi("i"),
    mo("·"),
    mi("g"),
  );
  const text = "The forget gate times the previous cell state, plus the input gate times the candidate.";
  if (earlier < 0 || earlier >= cells.size("position")) {
    const gateValues = [mrow(mi("f"), mo("="), mn(f)), mrow(mi("i"), mo("="), mn(i)), mrow(mi("g"), mo("="), mn(g))];
    return {
      text: `${text} The initial cell state is not in the trace.`,
      formulas: [general, formula(gateValues[0], mo(","), gateValues[1], mo(","), gateValues[2])],
      computed: null,
      operands: [],
      next: [],
    };
  }
  const before = cells.at({ ...index, position: earlier });
  const computed = f * before + i * g;
  const carried = mrow(mn(f), mo("·"), parenthesize(before));
  return {
    text,
    formulas: [general, formula(mo("="), carried, mo("+"), mn(i), mo("·"), parenthesize(g), mo("="), mn(computed))],
    computed,
    operands: [],
    next: [{ label: "The previous cell state", name: sibling(base, "cell"), index: { ...index, position: earlier } }],
  };
}

/** @type {Rule} */
async function logits(trace, base, index) {
  const all = (await trace.tensor(sibling(base, "logits"), `step:${index.step}`)).vector("vocabulary", {});
  const p = softmax(all)[index.vocabulary];
  let total = 0;
  for (const logit of all) total += Math.exp(logit);
  return {
    text: "An unnormalized score; softmax over the vocabulary turns it into a probability.",
    formulas: [
      formula(
        mi("p"),
        mo("="),
        fraction(power(mi("e"), mi("logit")), mrow(sum("j"), power(mi("e"), subscript(mi("logit"), mi("j"))))),
      ),
      formula(mo("="), fraction(power(mi("e"), mn(all[index.vocabulary])), mn(total)), mo("="), mn(p)),
    ],
    computed: null,
    operands: [],
    next: [],
  };
}
