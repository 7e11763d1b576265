// @ts-check
/** Stops from an encoder to the answer: decoder, cross-attention, output layer, softmax, decoding, gradients. */
import { ApiError } from "../core/api-error.js";
import { loadChoices } from "../scene/draw-output.js";
import { largest } from "./guide.js";
import { count, ids } from "./input-stops.js";

/** @typedef {import("./guide.js").Guide} Guide */
/** @typedef {import("./guide.js").Stop} Stop */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */

/** Between an encoder and its decoder. @param {Guide} guide @returns {Promise<(Stop|null)[]>} */
export async function bridgeStops(guide) {
  if (!guide.isPair) return [];
  return [memory(guide), bridge(guide), decoder(guide), alignment(guide), await cross(guide), readout(guide)];
}

/** The answer. @param {Guide} guide @returns {(Stop|null)[]} */
export function answerStops(guide) {
  const { header } = guide.trace;
  const node = guide.graph.nodes.get("logits");
  const last = [decoding(guide), gradients(guide)];
  if (header.steps.length) return [pooling(guide), stepLogits(guide, node), stepSoftmax(guide, node), ...last];
  return [pooling(guide), readSoftmax(guide, node), ...last];
}

/** @param {Guide} guide @returns {Stop|null} */
function memory(guide) {
  const readers = guide.nodes("cross-attention", guide.target);
  const edge = guide.graph.edges.find(({ kind, to }) => kind === "memory" && to === readers[0]?.id);
  const output = edge && guide.graph.nodes.get(edge.from);
  if (!output?.tensor || !guide.graph.has(output.tensor)) return null;
  const { tokens } = guide.source;
  const size = tokens.length ? `${count(tokens.length, "vector")}, one per token,` : "vectors";
  const isTransformer = guide.own(readers[0], "keys") !== null;
  const use = isTransformer
    ? `Each of the ${count(readers.length, "cross-attention")} on the right makes keys (K) and values (V) of them, once for the whole answer.`
    : "At every step of the decoder they are compared with its state, and added with weights.";
  return {
    name: "memory",
    title: "What the encoder hands over",
    lit: [output.id, ...readers.map(({ id }) => id)],
    lesson: "transformer",
    text: () =>
      guide.textTemplate`The encoder is done when it has ${size} of ${guide.size(/** @type {string} */ (output.tensor), "width")} numbers. ${use}`,
  };
}

/** @param {Guide} guide @returns {Stop|null} */
function bridge(guide) {
  const node = guide.node("bridge", guide.target);
  const attends = guide.node("cross-attention", guide.target);
  if (!node?.tensor) return null;
  const width = guide.size(node.tensor, "width");
  const tokens = guide.source.tokens.length;
  const text = attends
    ? () =>
        guide.textTemplate`The decoder starts from one vector of ${width} numbers that was made of the encoder's states. It need not hold the whole sentence: attention looks at the states themselves.`
    : () =>
        guide.textTemplate`All that the decoder gets is one vector of ${width} numbers, however long the sentence is; here it stands for ${count(tokens, "token")}. This bottleneck is why long sentences suffer, and what attention removes.`;
  return { name: "bridge", title: "The source in one vector", lit: [node.id], lesson: "seq2seq", text };
}

/** @param {Guide} guide @returns {Stop|null} */
function decoder(guide) {
  const tokens = guide.node("tokens", guide.target);
  const self = guide.node("self-attention", guide.target);
  const cell = guide.node("recurrent", guide.target);
  if (!tokens || !(self || cell)) return null;
  const seen = guide.focus(guide.target) + 1;
  const how = self
    ? "Its self-attention sees the tokens before it only, since the later ones do not exist yet"
    : "Its state goes from step to step";
  return {
    name: "decoder",
    title: "The decoder",
    lit: ids(tokens, self, cell),
    column: guide.focus(guide.target),
    lesson: self ? "transformer" : "seq2seq",
    text: () =>
      guide.textTemplate`The decoder writes one token per step and reads what it has written, after a mark for the beginning: ${guide.list(guide.target.tokens)}. ${how}; at the lit step it has read ${count(seen, "token")}.`,
  };
}

/** Scores of a recurrent decoder's attention. @param {Guide} guide @returns {Stop|null} */
function alignment(guide) {
  const node = guide.node("cross-attention", guide.target);
  const scores = node && !guide.own(node, "keys") ? guide.own(node, "scores") : null;
  const query = scores ? guide.graph.entry(scores, guide.focus(guide.target)) : -1;
  if (!node || !scores || query < 0) return null;
  const text = async () => {
    const row = (await guide.trace.tensor(scores)).vector("key", { head: 0, query });
    const keys = guide.trace.tokens(scores, "key") ?? [];
    const best = largest(row);
    const least = largest(row.map((value) => -value));
    return guide.textTemplate`Before it writes ${written(guide)}, the decoder compares its state with each state of the encoder. The score says how well they match: ${guide.number(scores, { head: 0, query, key: best })} for ${guide.quote(keys[best])}, ${guide.number(scores, { head: 0, query, key: least })} for ${guide.quote(keys[least])}.`;
  };
  return {
    name: "alignment",
    title: "Alignment scores",
    at: node.id,
    head: 0,
    position: guide.focus(guide.target),
    lit: [node.id],
    lesson: "bahdanau",
    text,
  };
}

/** @param {Guide} guide @returns {Promise<Stop|null>} */
async function cross(guide) {
  const readers = guide.nodes("cross-attention", guide.target);
  const node = readers[readers.length - 1];
  const weights = node && guide.own(node, "weights");
  const column = guide.focus(guide.target);
  const query = weights ? guide.graph.entry(weights, column) : -1;
  if (!node || !weights || query < 0) return null;
  const heads = guide.size(weights, "head");
  const text = async () => {
    const row = (await guide.trace.tensor(weights)).mean("head").vector("key", { query });
    const key = largest(row);
    const keys = guide.trace.tokens(weights, "key") ?? [];
    const target = keys[key] ? [" on ", guide.quote(keys[key])] : [` on place ${key + 1}`];
    const mean = heads > 1 ? `, as the mean of ${heads} heads,` : "";
    return guide.textTemplate`This is where the answer looks back at the input. While the model writes ${written(guide)}${mean} the largest weight is ${guide.number(weights, { query, key, head: 0 }, true)}${target}. Its lines are lit. Which word belongs to which was never given: this was learned from pairs of sentences.`;
  };
  return {
    name: "cross-attention",
    title: "Cross-attention",
    lit: [node.id],
    column,
    lesson: "evolution-of-attention",
    text,
  };
}

/** The token of the decoding step that is looked at. @param {Guide} guide */
function written(guide) {
  const step = guide.trace.header.steps[guide.step];
  return step ? guide.quote(step.chosen) : guide.quote(guide.target.tokens[guide.focus(guide.target)]);
}

/** @param {Guide} guide @returns {Stop|null} */
function readout(guide) {
  const node = guide.node("readout", guide.target) ?? guide.node("attended", guide.target);
  if (!node?.tensor) return null;
  const name = node.tensor;
  return {
    name: "readout",
    title: node.title,
    lit: [node.id],
    column: guide.focus(guide.target),
    lesson: "bahdanau",
    optional: true,
    text: () =>
      guide.textTemplate`What the decoder knows (its state) and what it looked at (the context) are joined in one vector of ${guide.size(name, "width")} numbers, which begins with ${guide.beginning(name, guide.focus(guide.target))}and so on. The word is chosen from this vector.`,
  };
}

/** @param {Guide} guide @returns {Stop|null} */
function pooling(guide) {
  const node = guide.graph.stacks.flatMap(({ nodes }) => nodes).find(({ kind }) => kind === "pooling");
  if (!node?.tensor || !guide.graph.has(node.tensor) || guide.trace.header.steps.length) return null;
  const width = guide.size(node.tensor, "width");
  return {
    name: "pooling",
    title: "One vector for all",
    lit: [node.id],
    lesson: "bert",
    text: () =>
      guide.textTemplate`One answer needs one vector: what was computed for all parts of the input is reduced to ${width} numbers.`,
  };
}

/** Logits of a decoding step. @param {Guide} guide @param {GraphNode|undefined} node @returns {Stop|null} */
function stepLogits(guide, node) {
  const step = guide.trace.header.steps[guide.step];
  if (!step || !node || !guide.graph.has("logits")) return null;
  const words = guide.size("logits", "vocabulary");
  const other = step.best.find(({ id }) => id !== step.chosen.id);
  const logit = (/** @type {{id: number, logit: number}} */ { id, logit }) =>
    guide.value("logits", { step: guide.step, vocabulary: id }, logit);
  return {
    name: "logits",
    title: "Output layer",
    lit: [node.id],
    column: guide.graph.prompt + guide.step,
    lesson: "output-layer",
    text: () =>
      guide.textTemplate`The vector at the top is multiplied with one vector for each of the ${words.toLocaleString("en")} tokens of the vocabulary. Each product is a logit: ${logit(step.chosen)} for ${guide.quote(step.chosen)}${other ? [", ", logit(other), " for ", guide.quote(other)] : ""}.`,
  };
}

/** @param {Guide} guide @param {GraphNode|undefined} node @returns {Stop|null} */
function stepSoftmax(guide, node) {
  const step = guide.trace.header.steps[guide.step];
  if (!step || !node) return null;
  const isBest = step.best[0]?.id === step.chosen.id;
  const rest = isBest ? "more than any other" : "not the largest: the search or the sampling chose it";
  return {
    name: "softmax",
    title: "From logits to probabilities",
    lit: [node.id],
    column: guide.graph.prompt + guide.step,
    lesson: "training",
    text: () =>
      guide.textTemplate`The softmax turns all logits into probabilities that sum to 1. ${guide.quote(step.chosen)} has ${guide.derived(Math.exp(step.log_prob))}, ${rest}; the bars show the best candidates. The entropy of all of them is ${guide.derived(step.entropy)} nats, where 0 would be certainty.`,
  };
}

/** The answer of a model that reads only. @param {Guide} guide @param {GraphNode|undefined} node @returns {Stop|null} */
function readSoftmax(guide, node) {
  if (!node) return null;
  const text = async () => {
    const all = await loadChoices(guide.graph);
    const one = all.find(({ column }) => column === guide.column) ?? all[0];
    if (!one) return guide.textTemplate`The output layer turns the vector at the top into the numbers of the answer.`;
    const what = one.labels ? "label" : "token of the vocabulary";
    const next = one.bars.find(({ label }) => label !== one.chosen);
    const second = next
      ? await guide.textTemplate`, before ${guide.quote({ token: next.label, label: next.label })} with ${guide.derived(next.probability)}`
      : [];
    const answer = guide.quote({ token: one.chosen, label: one.chosen });
    if (one.whole)
      return guide.textTemplate`The output layer gives one number for each label, and a conditional random field adds one for each pair of neighbors. The labels are chosen as one sequence, the one with the largest sum. At ${guide.quote(guide.source.tokens[one.column])} this is ${answer}, whose probability over all sequences is ${guide.derived(one.probability)}${second}.`;
    return guide.textTemplate`The output layer gives one number for each ${what}, a logit, and the softmax turns them into probabilities that sum to 1. ${one.title}: ${answer} has ${guide.derived(one.probability)}${second}.`;
  };
  return {
    name: "softmax",
    title: "The answer",
    lit: [node.id],
    ...(guide.source.tokens.length ? { column: guide.column } : {}),
    lesson: "training",
    text,
  };
}

/** @param {Guide} guide @returns {Stop|null} */
function decoding(guide) {
  const { steps, decode } = guide.trace.header;
  if (!steps.length) return null;
  const total = steps.reduce((sum, step) => sum + step.log_prob, 0);
  const beam =
    decode?.beam && decode.beam > 1
      ? ` Here the ${decode.beam} best beginnings were kept at each step (beam search), and the best was taken at the end.`
      : "";
  const tokens = guide.node("tokens", guide.target);
  return {
    name: "decoding",
    title: "Step by step",
    lit: ids(tokens, guide.graph.nodes.get("logits")),
    lesson: "beam-search",
    text: () =>
      guide.textTemplate`The token that was chosen is read next, and all begins again for the next one. After ${count(steps.length, "step")} the answer is ${guide.list(steps.map(({ chosen }) => chosen))}. The logarithms of its probabilities sum to ${guide.derived(total)}.${beam}`,
  };
}

/** What training sends back through a recurrent network. @param {Guide} guide @returns {Stop|null} */
function gradients(guide) {
  const cells = guide.graph.stacks.flatMap((stack) => guide.nodes("recurrent", stack));
  const { fork, steps } = guide.trace.header;
  if (!cells.length || fork || !steps.length) return null;
  const text = async () => {
    const general =
      "In training the error of each word goes back the same way, step by step through time, and is multiplied at every step. ";
    try {
      const { norms, rows, columns } = await guide.trace.source.gradients(null);
      const row = norms.length - 1;
      const [near, far] = [norms[row].findLastIndex((x) => x > 0), norms[row].findIndex((x) => x > 0)];
      if (row < 0 || near < 0 || near === far) return guide.textTemplate`${general}`;
      return await guide.textTemplate`${general}For ${guide.quote({ token: rows[row], label: rows[row] })} the gradient is ${guide.derived(norms[row][near])} long at ${guide.quote({ token: columns[near], label: columns[near] })} and ${guide.derived(norms[row][far])} at ${guide.quote({ token: columns[far], label: columns[far] })}. The tab Gradients has all of them.`;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return guide.textTemplate`${general}`;
    }
  };
  return { name: "gradients", title: "Backward through time", lit: ids(...cells), lesson: "linear-bptt", text };
}
