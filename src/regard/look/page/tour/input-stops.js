// @ts-check
/** Stops at what a model reads: tokens, images, embeddings and positions. */

/** @typedef {import("./guide.js").Guide} Guide */
/** @typedef {import("./guide.js").Stop} Stop */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */

/** @param {Guide} guide @returns {(Stop|null)[]} */
export function inputStops(guide) {
  return [tokens(guide), image(guide), patches(guide), embedding(guide), position(guide), rotary(guide)];
}

/** @param {Guide} guide @returns {Stop|null} */
function tokens(guide) {
  const node = guide.node("tokens");
  const { tokens } = guide.source;
  if (!node || !tokens.length) return null;
  const text = guide.isSeries
    ? () =>
        guide.textTemplate`The input is a series of ${count(tokens.length, "time step")}. Each has one number per column, scaled to mean 0 and deviation 1.`
    : () =>
        guide.textTemplate`The input is cut into ${count(tokens.length, "token")}: ${guide.list(tokens)}. A token is a word, a piece of a word or a mark such as the end of a sentence. The model knows each only as a number of its vocabulary.`;
  const title = guide.isSeries ? "Time steps" : "Tokens";
  return { name: "tokens", title, lit: [node.id], lesson: "embedding", text };
}

/** @param {Guide} guide @returns {Stop|null} */
function image(guide) {
  const node = guide.node("image");
  if (!node || !guide.graph.has("pixels")) return null;
  const [rows, columns] = [guide.size("pixels", "row"), guide.size("pixels", "column")];
  return {
    name: "image",
    title: "Image",
    lit: [node.id],
    lesson: "filters",
    text: () =>
      guide.textTemplate`The input is an image of ${rows} × ${columns} pixels: a table of numbers, one per pixel and color channel.`,
  };
}

/** @param {Guide} guide @returns {Stop|null} */
function patches(guide) {
  const node = guide.node("patches");
  if (!node) return null;
  return {
    name: "patches",
    title: "Patches",
    lit: [node.id],
    lesson: "vit",
    text: () =>
      guide.textTemplate`The image is cut into patches, and each patch becomes one vector: from here on a patch is what a token is in a text.`,
  };
}

/** @param {Guide} guide @returns {Stop|null} */
function embedding(guide) {
  const node = guide.node("embedding");
  const name = node && lookedUp(node);
  if (!node || !name || !guide.index(name, guide.column)) return null;
  const token = guide.source.tokens[guide.column];
  const width = guide.size(name, "width");
  const made = guide.isSeries
    ? `The numbers of each time step are multiplied by a matrix and become a vector of ${width} numbers`
    : guide.node("patches")
      ? `Each patch is multiplied by a matrix and becomes a vector of ${width} numbers`
      : `Each token is looked up in a table that was learned, and becomes a vector of ${width} numbers`;
  return {
    name: "embedding",
    title: "Embedding",
    lit: [node.id],
    column: guide.column,
    lesson: "embedding",
    text: () =>
      guide.textTemplate`${made}, drawn as a strip of colors. That of ${guide.quote(token)} begins with ${guide.beginning(name, guide.column)}and so on. Point at a strip to read any of its numbers.`,
  };
}

/** @param {Guide} guide @returns {Stop|null} */
function position(guide) {
  const [node, words] = [guide.node("position"), guide.node("embedding")];
  const sum = guide.nodes("sum").find(({ title }) => title === "Embedding + position");
  if (!node?.tensor) return null;
  const token = guide.source.tokens[guide.column];
  const reason =
    "Attention treats its inputs as a set, so the place of a token has to be part of its vector: a vector that depends on the place only is added to the embedding.";
  const text = async () =>
    sum && words
      ? [`${reason} `, ...(await added(guide, words, node, sum))]
      : guide.textTemplate`${reason} In unit 0 of ${guide.quote(token)} the position is ${guide.unit(node, guide.column)}; the two are added, and normalized.`;
  return { name: "position", title: "Position", lit: ids(node, sum), column: guide.column, lesson: "positions", text };
}

/** The embedding before its factor; some models multiply it by the root of its width. @param {GraphNode} node */
function lookedUp(node) {
  return node.tensors.find((name) => name.endsWith("embedding") && !name.endsWith("scaled_embedding")) ?? node.tensor;
}

/** Embedding and position as a sum. @param {Guide} guide @param {GraphNode} words @param {GraphNode} place @param {GraphNode} sum */
async function added(guide, words, place, sum) {
  const { column } = guide;
  const token = guide.quote(guide.source.tokens[column]);
  const [a, b, c] = [words, place, sum].map((node) => guide.unit(node, column));
  const name = lookedUp(words);
  if (name === words.tensor) return guide.textTemplate`In unit 0 of ${token}: embedding ${a} + position ${b} = ${c}.`;
  const width = guide.size(words.tensor ?? "", "width");
  const raw = guide.unit({ ...words, tensor: name }, column);
  return guide.textTemplate`In unit 0 of ${token}: embedding ${raw} × √${width} = ${a}, and with position ${b} the sum is ${c}. The factor √${width} keeps the embedding from being small beside the position.`;
}

/** @param {Guide} guide @returns {Stop|null} */
function rotary(guide) {
  const node = guide.node("rotary");
  if (!node) return null;
  return {
    name: "rotary",
    title: "Rotary positions",
    lit: [node.id],
    lesson: "rotary",
    text: () =>
      guide.textTemplate`Nothing is added for the place of a token. Instead each query and key is rotated by angles that grow with its position, so that their product depends on how far apart two tokens are.`,
  };
}

/** Ids of the parts that there are. @param {...(GraphNode|null|undefined)} nodes */
export function ids(...nodes) {
  return nodes.flatMap((node) => (node ? [node.id] : []));
}

/** A number with its noun. @param {number} number @param {string} noun */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
