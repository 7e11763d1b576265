// @ts-check
/** Stops inside a Transformer's layer: attention with its heads, residual sum, norm and feed-forward network. */
import { isMark, largest, moments } from "./guide.js";
import { count, ids } from "./input-stops.js";

/** @typedef {import("./guide.js").Guide} Guide */
/** @typedef {import("./guide.js").Stop} Stop */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("../scene/model-graph.js").Stack} Stack */

/** Heads and keys that are listed. */
const [HEADS, KEYS] = [8, 3];

/** @param {Guide} guide @param {Stack} stack @returns {Promise<(Stop|null)[]>} */
export async function attentionStops(guide, stack) {
  const node = guide.node("self-attention", stack);
  const weights = node && guide.own(node, "weights");
  const query = weights ? guide.graph.entry(weights, guide.focus(stack)) : -1;
  if (!node || !weights || query < 0) return [];
  const looked = await sharpest(guide, weights, query);
  return [
    layers(guide, stack),
    score(guide, stack, node, looked),
    softmax(guide, stack, node, weights, looked),
    heads(guide, stack, node, weights),
    causal(guide, stack, node),
    residual(guide, stack),
    norm(guide, stack),
    feedForward(guide, stack),
  ];
}

/**
 * The head in which the token attends most to another word, and that one.
 * @param {Guide} guide @param {string} weights @param {number} query
 */
async function sharpest(guide, weights, query) {
  const tensor = await guide.trace.tensor(weights);
  const keys = guide.trace.tokens(weights, "key") ?? [];
  const words = Array.from({ length: tensor.size("key") }, (_, key) => key).filter((key) => key !== query);
  const plain = words.filter((key) => !isMark(keys[key]));
  let found = { head: 0, key: query, weight: -1 };
  for (let head = 0; head < tensor.size("head"); head++) {
    for (const key of plain.length ? plain : words) {
      const weight = tensor.at({ head, query, key });
      if (weight > found.weight) found = { head, key, weight };
    }
  }
  return { ...found, query };
}

/** @param {Guide} guide @param {Stack} stack @returns {Stop|null} */
function layers(guide, stack) {
  const all = guide.graph.layers(stack);
  const inside = stack.nodes.filter(({ layer }) => layer);
  if (!inside.length) return null;
  const what = stack.title ? `The ${stack.title.toLowerCase()}` : "The model";
  const number =
    all.length > 1 ? `${all.length} layers with the same parts, each with weights of its own` : "one layer";
  return {
    name: "layers",
    title: all.length > 1 ? "A stack of layers" : "A layer",
    lit: inside.map(({ id }) => id),
    lesson: "stack",
    text: () =>
      guide.textTemplate`${what} has ${number}. A layer reads one vector per token and gives one vector per token, of the same width, to what is above it. The next stops go through the first.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @param {{head: number, key: number, query: number}} looked @returns {Stop|null} */
function score(guide, stack, node, { head, key, query }) {
  const [queries, products, scores] = ["queries", "products", "scores"].map((last) => guide.own(node, last));
  if (!queries || !products || !scores) return null;
  const width = guide.size(queries, "width");
  const keys = guide.trace.tokens(products, "key") ?? [];
  const at = { head, query, key };
  return {
    name: "query",
    title: "Query and key",
    at: node.id,
    head,
    position: guide.focus(stack),
    lit: [node.id],
    lesson: "attention",
    text: () =>
      guide.textTemplate`Every token makes a query (what it looks for), a key (what it can be found by) and a value, each by a matrix of weights. In head ${head} the query of ${guide.quote(stack.tokens[guide.focus(stack)])} has ${width} numbers. Its product with the key of ${guide.quote(keys[key])} is ${guide.number(products, at)}; divided by √${width} this is the score ${guide.number(scores, at)}.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @param {string} weights @param {{head: number, query: number}} looked @returns {Stop} */
function softmax(guide, stack, node, weights, { head, query }) {
  const context = guide.own(node, "context");
  const text = async () => {
    const row = (await guide.trace.tensor(weights)).vector("key", { head, query });
    const keys = guide.trace.tokens(weights, "key") ?? [];
    const order = Array.from(row.keys()).sort((a, b) => row[b] - row[a]);
    const listed = order.slice(0, KEYS).map(async (key) => [await guide.number(weights, { head, query, key }), key]);
    const parts = (await Promise.all(listed)).flatMap(([number, key], i) => [
      i ? ", " : "",
      number,
      " on ",
      guide.quote(keys[/** @type {number} */ (key)]),
    ]);
    const sum = row.reduce((a, b) => a + (Number.isFinite(b) ? b : 0), 0);
    const result = context
      ? await guide.textTemplate` The values are added with these weights; the sum is the context, whose unit 0 is ${guide.number(context, { head, query, width: 0 })}.`
      : [];
    return [
      ...(await guide.textTemplate`The softmax turns the scores of one query into weights between 0 and 1 that sum to ${guide.derived(sum)}: `),
      ...parts,
      ".",
      ...result,
    ];
  };
  return {
    name: "weights",
    title: "Attention weights",
    at: node.id,
    head,
    position: guide.focus(stack),
    lit: [node.id],
    lesson: "soft-lookup",
    text,
  };
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @param {string} weights @returns {Stop|null} */
function heads(guide, stack, node, weights) {
  const total = guide.size(weights, "head");
  if (total < 2) return null;
  const text = async () => {
    const tensor = await guide.trace.tensor(weights);
    const query = guide.graph.entry(weights, guide.focus(stack));
    const keys = guide.trace.tokens(weights, "key") ?? [];
    const parts = Array.from({ length: Math.min(total, HEADS) }, (_, head) => {
      const key = largest(tensor.vector("key", { head, query }));
      const number = guide.value(weights, { head, query, key }, tensor.at({ head, query, key }));
      return [head ? ", " : "", `head ${head} on `, guide.quote(keys[key]), " (", number, ")"];
    });
    return [
      ...(await guide.textTemplate`${total} heads do this side by side, each with queries, keys and values of its own. For ${guide.quote(stack.tokens[guide.focus(stack)])} the largest weight is in `),
      ...parts.flat(),
      total > HEADS ? " and so on" : "",
      ". Their contexts are put side by side and multiplied by one more matrix. Click a head to open it.",
    ];
  };
  return {
    name: "heads",
    title: "Several heads",
    at: node.id,
    position: guide.focus(stack),
    lit: [node.id],
    lesson: "eight-heads",
    text,
  };
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @returns {Stop|null} */
function causal(guide, stack, node) {
  if (stack.side !== "target" || guide.isPair) return null;
  const seen = guide.focus(stack) + 1;
  return {
    name: "causal",
    title: "Only what came before",
    lit: [node.id],
    column: guide.focus(stack),
    lesson: "gpt",
    text: () =>
      guide.textTemplate`A language model predicts the next token, so a token must not see later ones: the query of ${guide.quote(stack.tokens[guide.focus(stack)])} is compared with ${count(seen, "key")}, that of the token itself${seen > 1 ? " and those before it" : ""}. All lines go up or to the right, never back.`,
  };
}

/** A sum of a part and of what goes past it. @param {Guide} guide @param {Stack} stack @returns {Stop|null} */
export function residual(guide, stack) {
  const node = guide
    .nodes("sum", stack)
    .find(({ title, tensor }) => title === "Residual sum" && guide.index(tensor ?? "", guide.focus(stack)));
  const parts = node ? guide.inputs(node) : [];
  const past = parts.find(({ kind }) => kind === "residual")?.node;
  const sublayer = parts.find(({ kind }) => kind === "flow")?.node;
  if (!node || !past || !sublayer) return null;
  const unit = (/** @type {GraphNode} */ part) => guide.unit(part, guide.focus(stack));
  return {
    name: "residual",
    title: "Residual connection",
    at: node.id,
    position: guide.focus(stack),
    lit: ids(node),
    lesson: "add-and-norm",
    text: () =>
      guide.textTemplate`What goes into a sublayer is added to what comes out, x + sublayer(x), so a layer only has to learn a change, and gradients reach the layers below unhindered. In unit 0 of ${guide.quote(stack.tokens[guide.focus(stack)])}: ${unit(past)} + ${unit(sublayer)} = ${unit(node)}.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @returns {Stop|null} */
function norm(guide, stack) {
  const node = guide.nodes("norm", stack).find((one) => one.layer && guide.inputs(one).length === 1);
  const before = node && guide.inputs(node)[0].node.tensor;
  if (!node?.tensor || !before) return null;
  const name = node.tensor;
  const text = async () => {
    const [low, high] = [
      await guide.vector(before, guide.focus(stack)),
      await guide.vector(name, guide.focus(stack)),
    ].map(moments);
    return guide.textTemplate`A norm brings each vector, by itself, to a similar size, and then applies a gain that was learned for each unit. For ${guide.quote(stack.tokens[guide.focus(stack)])} the mean of the vector is ${guide.derived(low.mean)} before and ${guide.derived(high.mean)} after it, the standard deviation ${guide.derived(low.deviation)} before and ${guide.derived(high.deviation)} after.`;
  };
  return {
    name: "norm",
    title: "Norm",
    at: node.id,
    position: guide.focus(stack),
    lit: [node.id],
    lesson: "add-and-norm",
    text,
  };
}

/** @param {Guide} guide @param {Stack} stack @returns {Stop|null} */
function feedForward(guide, stack) {
  const node = guide.node("ffn", stack);
  const hidden = node && guide.own(node, "activations");
  if (!node?.tensor || !hidden) return null;
  const width = guide.size(node.tensor, "width");
  const text = async () => {
    const units = await guide.vector(hidden, guide.focus(stack));
    const active = units.filter((value) => value > 0).length;
    return guide.textTemplate`Attention moves information between tokens; this network then works on each token alone. It makes ${units.length} hidden units of ${width} numbers, applies a nonlinear function, and goes back to ${width}. At ${guide.quote(stack.tokens[guide.focus(stack)])}, ${guide.derived(active, String(active))} of ${units.length} hidden units are above 0.`;
  };
  return {
    name: "feed-forward",
    title: "Feed-forward network",
    at: node.id,
    position: guide.focus(stack),
    lit: [node.id],
    lesson: "feed-forward",
    text,
  };
}
