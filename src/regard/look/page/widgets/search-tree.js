// @ts-check
/** Search trees: the beam of a trace (one column per step) and the tree of the beam-search lesson (one row per leaf). */
import { h, svg, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { scrollBox } from "./table.js";

/** @typedef {import("../core/types.js").BeamNode} BeamNode */
/**
 * @typedef {{parent: number|null, text: string, score: string, title: string, state: string, column: number,
 *   row: number, chosen: boolean}} TreeNode
 */

const [WIDTH, HEIGHT, GAP, MAX_CHARACTERS] = [120, 44, 20, 12];
const CAPTION = "Each word shows the log-probability of the sentence so far. Bold: the answer. Dashed: pruned.";

/** The beam of a trace, with the reason for each pruned hypothesis. @param {BeamNode[]} beam */
export function beamTree(beam) {
  /** @type {Map<number, number>} */
  const sizes = new Map();
  const nodes = beam.map((node) => {
    const row = sizes.get(node.step) ?? 0;
    sizes.set(node.step, row + 1);
    const { parent, state, chosen } = node;
    const [score, title] = [formatNumber(node.score), outcome(node)];
    return { parent, text: node.label, score, title, state, column: node.step - 1, row, chosen };
  });
  const pruned = beam.filter((node) => node.state === "pruned");
  const reasons = pruned
    .slice(0, 100)
    .map((node) => h("li", {}, `step ${node.step}, `, word(node.label), `: ${outcome(node)}`));
  const label = `Beam tree with ${beam.length} hypotheses, ${pruned.length} pruned`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Beam search"),
    h("p", { class: "muted" }, `One column per step. ${CAPTION}`),
    scrollBox("Beam tree", drawTree(nodes, label)),
    pruned.length
      ? h("details", {}, h("summary", {}, `Why ${pruned.length} hypotheses were pruned`), h("ul", {}, ...reasons))
      : null,
  );
}

/** @param {BeamNode} node */
function outcome({ state, chosen, best, worst }) {
  const score = formatNumber(best ?? NaN);
  if (state === "pruned") return `best continuation ${score}, last one kept ${formatNumber(worst ?? NaN)}`;
  if (state === "ended")
    return `best continuation was the end of the sentence, ${score}: taken, or forbidden by a rule`;
  if (state === "open") return "the search ended before it was continued";
  return chosen ? "part of the answer" : "continued";
}

/** The tree of a lesson: rows of parent, text, score and outcome. @param {{data: string[][]}} value */
export function searchTree({ data }) {
  const nodes = layout(data);
  const leaves = nodes.filter((node) => node.state);
  const list = leaves.map((node) => h("li", {}, ...sentence(nodes, node), `: ${node.score}, ${node.state}`));
  return h(
    "figure",
    { class: "figure lesson-wide" },
    scrollBox("Search tree", drawTree(nodes, `Search tree with ${nodes.length} words and ${leaves.length} leaves`)),
    h("figcaption", { class: "muted small" }, CAPTION),
    h("details", { class: "as-table" }, h("summary", {}, "As a list"), h("ul", {}, ...list)),
  );
}

/** One column per word of a sentence, one row per leaf. @param {string[][]} data @returns {TreeNode[]} */
function layout(data) {
  const nodes = data.map(([parent, text, score, state]) => ({
    ...{ parent: parent === "" ? null : Number(parent), text, state, score: score.replace("-", "−") },
    title: `${text}: ${score}${state ? `, ${state}` : ""}`,
    ...{ column: 0, row: -1, chosen: false },
  }));
  /** @type {number[][]} */
  const children = nodes.map(() => []);
  nodes.forEach((node, i) => {
    if (node.parent === null) return;
    children[node.parent].push(i);
    node.column = nodes[node.parent].column + 1;
  });
  let row = 0;
  const walk = (/** @type {number} */ i) => {
    nodes[i].row = row;
    children[i].forEach((child, k) => {
      if (k) row++;
      walk(child);
    });
  };
  nodes.forEach((node, i) => {
    if (node.parent !== null) return;
    walk(i);
    row++;
  });
  const answer = nodes.find((node) => node.state === "the answer");
  for (const node of answer ? ancestors(nodes, answer) : []) node.chosen = true;
  return nodes;
}

/** A node and all before it, the node first. @param {TreeNode[]} nodes @param {TreeNode} node @returns {TreeNode[]} */
function ancestors(nodes, node) {
  return [node, ...(node.parent === null ? [] : ancestors(nodes, nodes[node.parent]))];
}

/** @param {TreeNode[]} nodes @param {TreeNode} leaf */
function sentence(nodes, leaf) {
  const words = ancestors(nodes, leaf).reverse();
  return words.flatMap((node, i) => (i ? [" ", word(node.text)] : [word(node.text)]));
}

/** @param {TreeNode[]} nodes @param {string} label */
function drawTree(nodes, label) {
  const corner = (/** @type {TreeNode} */ node) => ({ x: 8 + node.column * WIDTH, y: 8 + node.row * HEIGHT });
  const branches = nodes.flatMap((node) => {
    if (node.parent === null) return [];
    const [from, to] = [corner(nodes[node.parent]), corner(node)];
    const line = { x1: from.x + WIDTH - GAP, y1: from.y + 18, x2: to.x, y2: to.y + 18 };
    return [svg("line", { ...line, class: node.chosen ? "branch chosen" : "branch" })];
  });
  return svg(
    "svg",
    {
      width: 16 + (Math.max(...nodes.map((node) => node.column)) + 1) * WIDTH,
      height: 16 + (Math.max(...nodes.map((node) => node.row)) + 1) * HEIGHT,
      role: "img",
      "aria-label": label,
    },
    ...branches,
    ...nodes.map((node) => box(node, corner(node))),
  );
}

/** @param {TreeNode} node @param {{x: number, y: number}} corner */
function box(node, { x, y }) {
  const state = node.state.replaceAll(" ", "-");
  return svg(
    "g",
    { transform: `translate(${x} ${y})`, class: `node ${state}${node.chosen ? " chosen" : ""}` },
    svg("title", {}, node.title),
    svg("rect", { width: WIDTH - GAP, height: 36, rx: 4 }),
    svg("text", { x: 8, y: 14, "dominant-baseline": "middle", "unicode-bidi": "isolate" }, truncate(node.text)),
    svg("text", { x: 8, y: 28, class: "small", "dominant-baseline": "middle" }, node.score),
  );
}

/** @param {string} text */
function truncate(text) {
  const characters = Array.from(text);
  return characters.length > MAX_CHARACTERS ? `${characters.slice(0, MAX_CHARACTERS - 1).join("")}…` : text;
}
