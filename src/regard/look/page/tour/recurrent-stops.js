// @ts-check
/** Stops inside recurrent layers: time steps, gates, both directions, layers; and stops at convolutions. */
import { residual } from "./attention-stops.js";
import { count } from "./input-stops.js";

/** @typedef {import("./guide.js").Guide} Guide */
/** @typedef {import("./guide.js").Stop} Stop */
/** @typedef {import("../core/dom.js").Child} Child */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("../scene/model-graph.js").Stack} Stack */

/** Lesson of a cell, by its title. */
const LESSONS = /** @type {Record<string, string>} */ ({ LSTM: "lstm", GRU: "gru" });

/** @param {Guide} guide @param {Stack} stack @returns {(Stop|null)[]} */
export function recurrentStops(guide, stack) {
  const node = guide.node("recurrent", stack);
  const hidden = node && guide.own(node, "hidden");
  if (!node || !hidden || guide.graph.entry(hidden, guide.focus(stack)) < 0) return [];
  return [
    unrolled(guide, stack, node, hidden),
    step(guide, stack, node, hidden),
    gates(guide, stack, node),
    mixed(guide, stack, node, hidden),
    sequential(guide, stack, node),
    bothDirections(guide, stack),
    stacked(guide, stack),
    residual(guide, stack),
  ];
}

/** The token that is read before. @param {GraphNode} node @param {number} column */
function before(node, column) {
  return node.direction === "backward" ? column + 1 : column - 1;
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @param {string} hidden @returns {Stop} */
function unrolled(guide, stack, node, hidden) {
  const tokens = stack.tokens.length;
  const noun = guide.isSeries ? "time step" : "token";
  const order = node.direction === "backward" ? "from right to left" : "from left to right";
  return {
    name: "unrolled",
    title: "Unrolled in time",
    lit: [node.id],
    lesson: "rnn",
    text: () =>
      guide.textTemplate`The boxes are one and the same ${node.title}, drawn once for each of the ${count(tokens, noun)}: the same weights at every time step. It reads ${order}, and its state, ${guide.size(hidden, "width")} numbers, is all that it remembers of what it has read.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @param {string} hidden @returns {Stop} */
function step(guide, stack, node, hidden) {
  const column = guide.focus(stack);
  const earlier = guide.index(hidden, before(node, column));
  const was = earlier ? { name: hidden, index: earlier } : startOf(guide, node);
  const index = { ...guide.index(hidden, column), width: 0 };
  /** @returns {Promise<Child[]>} */
  const state = async () =>
    was
      ? guide.textTemplate`In unit 0 the state was ${guide.number(was.name, { ...was.index, width: 0 })} before and is ${guide.number(hidden, index)} after.`
      : guide.textTemplate`Before the first token the state is 0; after it, unit 0 is ${guide.number(hidden, index)}.`;
  return {
    name: "step",
    title: "One time step",
    at: node.id,
    position: column,
    lit: [node.id],
    lesson: "rnn",
    text: () =>
      guide.textTemplate`At ${guide.quote(stack.tokens[column])} the cell reads two vectors, the one of this token and its own state after the token before, and computes a new state of both. ${state()}`,
  };
}

/** The initial state. @param {Guide} guide @param {GraphNode} node */
function startOf(guide, node) {
  const name = guide.own(node, "start");
  return name ? { name, index: /** @type {import("../core/types.js").Index} */ ({}) } : null;
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @returns {Stop|null} */
function gates(guide, stack, node) {
  const name = guide.own(node, "gates");
  const column = guide.focus(stack);
  const index = name ? guide.index(name, column) : null;
  if (!name || !index) return null;
  const labels = guide.trace.tokens(name, "gate") ?? [];
  const text = async () => {
    const parts = labels.map(async ({ label }, gate) => [
      gate ? ", " : "",
      `${label} `,
      await guide.number(name, { ...index, gate, width: 0 }),
    ]);
    const listed = (await Promise.all(parts)).flat();
    const meaning =
      node.title === "LSTM"
        ? "Gates are numbers between 0 and 1 that multiply: the forget gate what stays of the cell state, the input gate how much of the candidate is added, the output gate how much of it is shown."
        : "Gates are numbers between 0 and 1 that multiply: the reset gate how much of the old state the candidate sees, the update gate how old state and candidate are mixed.";
    return guide.textTemplate`${meaning} At ${guide.quote(stack.tokens[column])}, unit 0: ${listed}.`;
  };
  return {
    name: "gates",
    title: "Gates",
    at: node.id,
    position: column,
    lit: [node.id],
    lesson: LESSONS[node.title] ?? "rnn",
    text,
  };
}

/** How gates make the new state. @param {Guide} guide @param {Stack} stack @param {GraphNode} node @param {string} hidden @returns {Stop|null} */
function mixed(guide, stack, node, hidden) {
  const column = guide.focus(stack);
  const [cell, candidate, gates] = ["cell", "candidate", "gates"].map((last) => guide.own(node, last));
  const index = guide.index(hidden, column);
  if (!gates || !index || !(cell || candidate)) return null;
  const name = /** @type {string} */ (cell ?? candidate);
  const unit = { ...index, width: 0 };
  const text = cell
    ? () =>
        guide.textTemplate`The cell state is what the forget gate keeps of the old one plus what the input gate lets in. It is only multiplied and added to, so it can stay the same over many steps, and so can its gradient. Unit 0 of the cell is ${guide.number(name, unit)}; its tanh times the output gate is the hidden state, ${guide.number(hidden, unit)}.`
    : () =>
        guide.textTemplate`The candidate, ${guide.number(name, unit)} in unit 0, is what a plain recurrent network would take as its new state. The update gate decides for each unit how much of it replaces the old state: the result is ${guide.number(hidden, unit)}.`;
  return {
    name: cell ? "cell" : "candidate",
    title: cell ? "Cell state" : "Old state and candidate",
    at: node.id,
    position: column,
    lit: [node.id],
    lesson: LESSONS[node.title] ?? "rnn",
    text,
  };
}

/** @param {Guide} guide @param {Stack} stack @param {GraphNode} node @returns {Stop|null} */
function sequential(guide, stack, node) {
  const steps = stack.tokens.length;
  if (steps < 2) return null;
  return {
    name: "sequential",
    title: "One after the other",
    lit: [node.id],
    lesson: "limits-of-rnns",
    optional: true,
    text: () =>
      guide.textTemplate`A state needs the one before it, so these ${steps} steps cannot be computed at once, however many processors there are. And what the last state knows of the first token went through ${steps - 1} steps. Both are reasons for attention.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @returns {Stop|null} */
function bothDirections(guide, stack) {
  const all = guide.nodes("recurrent", stack);
  const back = all.find(({ id }) => id.endsWith("backward_layer"));
  const forward = all.find(({ id, layer }) => id.endsWith("forward_layer") && layer === back?.layer);
  if (!back || !forward) return null;
  const joined = stack.nodes.find(({ kind }) => kind === "states");
  return {
    name: "both-directions",
    title: "Both directions",
    lit: [forward.id, back.id, ...(joined ? [joined.id] : [])],
    lesson: "bidirectional",
    text: () =>
      guide.textTemplate`A second layer reads the same tokens from right to left. At ${guide.quote(stack.tokens[guide.focus(stack)])} the first knows what comes before it, the second what comes after; put side by side, the two states are about the whole sentence, seen from this token.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @returns {Stop|null} */
function stacked(guide, stack) {
  const cells = guide.nodes("recurrent", stack).filter(({ layer }) => layer);
  const all = [...new Set(cells.map(({ layer }) => layer))]; // not the stages of a network of images below them
  if (all.length < 2) return null;
  return {
    name: "layers",
    title: "Layers",
    lit: cells.map(({ id }) => id),
    optional: true,
    lesson: "seq2seq",
    text: () =>
      guide.textTemplate`There are ${all.length} layers: the states of one are what the next reads, at the same token. So there are two ways through this picture, along time and upwards.`,
  };
}

/** @param {Guide} guide @param {Stack} stack @returns {(Stop|null)[]} */
export function convolutionStops(guide, stack) {
  const maps = guide.node("feature-map", stack) ?? guide.node("convolution", stack);
  if (!maps) return [];
  const isImage = maps.kind === "feature-map";
  const all = guide.nodes(maps.kind, stack);
  return [
    {
      name: "convolution",
      title: isImage ? "Feature maps" : "Convolution",
      lit: all.map(({ id }) => id),
      lesson: "filters",
      text: () =>
        isImage
          ? guide.textTemplate`A filter, a small table of weights, slides over what is below and gives one number per place: a feature map. ${count(all.length, "layer")} of them are drawn here, each with the maps that vary most.`
          : guide.textTemplate`A convolution computes the vector of a token from those of its neighbors, with the same weights at every place. With each layer a token sees further.`,
    },
  ];
}
