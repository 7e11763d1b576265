// @ts-check
/** How a number came about: its formula with the operands that the model used. Rules go by what a tensor is called. */
import { dot, formula, mi, mn, mo, over, power, products, root, row, signed, sub, sum, words } from "./formula.js";
import { softmax } from "./probability.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./types.js").Place} Place */
/**
 * @typedef {{text: string, formulas: Element[], computed: number|null,
 *   operands: {label: string, numbers: Float64Array, names: string[]|null}[],
 *   next: {label: string, name: string, place: Place}[]}} Explanation
 */
/** @typedef {(trace: Trace, base: string, place: Place) => Promise<Explanation>} Rule */

/** @type {Record<string, {needs: string[], rule: Rule}>} */
const RULES = {
  weights: { needs: ["scores"], rule: weights },
  scores: { needs: ["queries", "keys"], rule: scores },
  context: { needs: ["weights", "values"], rule: context },
  hidden: { needs: ["gates", "cell"], rule: hidden },
  cell: { needs: ["gates"], rule: cell },
  logits: { needs: [], rule: logits },
};
/** The gates that the rules of an LSTM need, by name. */
const GATES = ["input", "forget", "candidate", "output"];

/** @param {string} base @param {string} last */
function sibling(base, last) {
  return base ? `${base}.${last}` : last;
}

/** @param {string} name @returns {[string, string]} */
export function parted(name) {
  const at = name.lastIndexOf(".");
  return at < 0 ? ["", name] : [name.slice(0, at), name.slice(at + 1)];
}

/** @param {Trace} trace @param {string} name @param {Place} place @returns {Promise<Explanation>} */
export async function explain(trace, name, place) {
  const [base, last] = parted(name);
  const found = RULES[last];
  const there = found?.needs.every((other) => trace.has(sibling(base, other)));
  if (there && (!found.needs.includes("gates") || gated(trace, base))) return found.rule(trace, base, place);
  return {
    text: "This is a value the model recorded; what it was computed from is not in the trace.",
    formulas: [],
    computed: null,
    operands: [],
    next: [],
  };
}

/** Whether all gates of an LSTM are there. @param {Trace} trace @param {string} base */
function gated(trace, base) {
  const names = trace.describe(sibling(base, "gates")).names.gate ?? [];
  return GATES.every((gate) => names.includes(gate));
}

/** @param {Trace} trace @param {string} base @param {import("./tensor.js").Tensor} gates @param {Place} place @param {string} gate */
function gateAt(trace, base, gates, place, gate) {
  return gates.at({ ...place, gate: trace.describe(sibling(base, "gates")).names.gate.indexOf(gate) });
}

/** @param {Trace} trace @param {string} name @param {string} axis */
function names(trace, name, axis) {
  return trace.words(name, axis)?.map((word) => word.shown) ?? null;
}

/** @type {Rule} */
async function weights(trace, base, place) {
  const [name, from] = [sibling(base, "weights"), sibling(base, "scores")];
  const [scored, weighed] = await Promise.all([trace.tensor(from), trace.tensor(name)]);
  const all = scored.along("key", place);
  const given = weighed.along("key", place);
  // a key that the mask hides has a score and no weight
  const best = largest(all);
  const seen = all.map((score, i) => (given[i] === 0 && hiddenKey(score, best) ? NaN : score));
  const computed = softmax(seen)[place.key];
  const total = seen.reduce((s, score) => s + (Number.isNaN(score) ? 0 : Math.exp(score)), 0);
  const score = seen[place.key];
  return {
    text: "Softmax: the share of this score among all scores of the row.",
    formulas: [
      formula(
        mi("w"),
        mo("="),
        over(power(mi("e"), sub(mi("s"), mi("k"))), row(sum("j"), power(mi("e"), sub(mi("s"), mi("j"))))),
      ),
      Number.isNaN(score)
        ? formula(mi("w"), mo("="), mn(0), words(" (the mask hides this key)"))
        : formula(mo("="), over(power(mi("e"), mn(score)), mn(total)), mo("="), mn(computed)),
    ],
    computed: Number.isNaN(score) ? 0 : computed,
    operands: [
      { label: "scores of the row", numbers: all, names: names(trace, from, "key") },
      { label: "weights of the row", numbers: given, names: names(trace, name, "key") },
    ],
    next: [{ label: "Where does the score come from?", name: from, place }],
  };
}

/** Whether a weight of exactly 0 cannot be the score's own: e to its distance from the best is no zero. @param {number} score @param {number} best */
export function hiddenKey(score, best) {
  return Number.isNaN(score) || Math.fround(Math.exp(score - best)) > 0;
}

/** The largest of some scores. @param {Float64Array} scores */
export function largest(scores) {
  return scores.reduce((a, b) => (Number.isNaN(b) ? a : Math.max(a, b)), -Infinity);
}

/** @type {Rule} */
async function scores(trace, base, place) {
  const [queries, keys] = await Promise.all([
    trace.tensor(sibling(base, "queries")),
    trace.tensor(sibling(base, "keys")),
  ]);
  const q = queries.along("width", place);
  const k = keys.along("width", place);
  const product = dot(q, k);
  return {
    text: "The query of this row times the key of this column, divided by the root of their width.",
    formulas: [
      formula(mi("s"), mo("="), over(row(mi("q"), mo("·"), mi("k")), root(mi("d")))),
      formula(mo("="), over(products(q, k), root(mn0(q.length)))),
      formula(mo("="), over(mn(product), mn(Math.sqrt(q.length))), mo("="), mn(product / Math.sqrt(q.length))),
    ],
    computed: product / Math.sqrt(q.length),
    operands: [
      { label: "query", numbers: q, names: null },
      { label: "key", numbers: k, names: null },
    ],
    next: [],
  };
}

/** @param {number} whole */
function mn0(whole) {
  return words(String(whole));
}

/** @type {Rule} */
async function context(trace, base, place) {
  const [weighed, values] = await Promise.all([
    trace.tensor(sibling(base, "weights")),
    trace.tensor(sibling(base, "values")),
  ]);
  const w = weighed.along("key", place);
  const v = values.along("key", place);
  const computed = dot(w, v);
  const keys = names(trace, sibling(base, "weights"), "key");
  return {
    text: "The values of all keys at this place, each as heavy as its weight.",
    formulas: [
      formula(mi("z"), mo("="), sum("k"), sub(mi("w"), mi("k")), sub(mi("v"), mi("k"))),
      formula(mo("="), products(w, v)),
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
async function hidden(trace, base, place) {
  const [gates, cells] = await Promise.all([trace.tensor(sibling(base, "gates")), trace.tensor(sibling(base, "cell"))]);
  const [o, c] = [gateAt(trace, base, gates, place, "output"), cells.at(place)];
  return {
    text: "The output gate lets through this much of the cell.",
    formulas: [
      formula(mi("h"), mo("="), mi("o"), mo("·"), mi("tanh"), mo("("), mi("c"), mo(")")),
      formula(mo("="), mn(o), mo("·"), mi("tanh"), mo("("), mn(c), mo(")"), mo("="), mn(o * Math.tanh(c))),
    ],
    computed: o * Math.tanh(c),
    operands: [],
    next: [{ label: "Where does the cell come from?", name: sibling(base, "cell"), place }],
  };
}

/** @type {Rule} */
async function cell(trace, base, place) {
  const [gates, cells] = await Promise.all([trace.tensor(sibling(base, "gates")), trace.tensor(sibling(base, "cell"))]);
  const [i, f, g] = GATES.slice(0, 3).map((gate) => gateAt(trace, base, gates, place, gate));
  const earlier = place.position + (trace.describe(sibling(base, "cell")).backwards ? 1 : -1);
  const past = sub(mi("c"), row(mi("t"), mo("−"), words("1")));
  const general = formula(sub(mi("c"), mi("t")), mo("="), mi("f"), mo("·"), past, mo("+"), mi("i"), mo("·"), mi("g"));
  const text = "The forget gate keeps part of the cell before; the input gate lets in part of the candidate.";
  if (earlier < 0 || earlier >= cells.size("position")) {
    const given = [row(mi("f"), mo("="), mn(f)), row(mi("i"), mo("="), mn(i)), row(mi("g"), mo("="), mn(g))];
    return {
      text: `${text} The cell before the first place is not in the trace.`,
      formulas: [general, formula(given[0], mo(","), given[1], mo(","), given[2])],
      computed: null,
      operands: [],
      next: [],
    };
  }
  const before = cells.at({ ...place, position: earlier });
  const computed = f * before + i * g;
  const kept = row(mn(f), mo("·"), signed(before));
  return {
    text,
    formulas: [general, formula(mo("="), kept, mo("+"), mn(i), mo("·"), signed(g), mo("="), mn(computed))],
    computed,
    operands: [],
    next: [{ label: "The cell one place before", name: sibling(base, "cell"), place: { ...place, position: earlier } }],
  };
}

/** @type {Rule} */
async function logits(trace, base, place) {
  const all = (await trace.tensor(sibling(base, "logits"), `step:${place.step}`)).along("vocabulary", {});
  const p = softmax(all)[place.vocabulary];
  let total = 0;
  for (const logit of all) total += Math.exp(logit);
  return {
    text: "A logit is no probability yet; the softmax over the whole vocabulary makes it one.",
    formulas: [
      formula(
        mi("p"),
        mo("="),
        over(power(mi("e"), mi("logit")), row(sum("j"), power(mi("e"), sub(mi("logit"), mi("j"))))),
      ),
      formula(mo("="), over(power(mi("e"), mn(all[place.vocabulary])), mn(total)), mo("="), mn(p)),
    ],
    computed: null,
    operands: [],
    next: [],
  };
}
