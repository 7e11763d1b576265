// @ts-check
/** The tree of a search: a column a word, a line from each word to the one before it, and what became of each end. */
import { h, svg, word } from "./dom.js";

/** @typedef {import("./lessonvalue.js").Value} Value */
/** @typedef {{parent: number|null, text: string, score: string, fate: string, depth: number, row: number, chosen: boolean}} Node */

const [WIDE, TALL] = [120, 44];

/** @param {Value} value */
export function searchTree(value) {
  const nodes = placed(value.data);
  const ends = nodes.filter((node) => node.fate);
  const list = ends.map((node) =>
    h("li", {}, ...sentence(nodes, node), `: ${node.score.replace("-", "−")}, ${node.fate}`),
  );
  return h(
    "figure",
    { class: "figure lesson-wide" },
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tree of the search" },
      picture(nodes, ends.length),
    ),
    h(
      "figcaption",
      { class: "muted small" },
      "Under each word the log-probability so far. Bold became the answer, dashed was left behind.",
    ),
    h("details", { class: "as-table" }, h("summary", {}, "As a list"), h("ul", {}, ...list)),
  );
}

/** @param {Node} node */
function corner(node) {
  return { x: 8 + node.depth * WIDE, y: 8 + node.row * TALL };
}

/** @param {Node[]} nodes @param {number} ends */
function picture(nodes, ends) {
  const lines = nodes.flatMap((node) => {
    if (node.parent === null) return [];
    const [from, to] = [corner(nodes[node.parent]), corner(node)];
    const line = { x1: from.x + WIDE - 20, y1: from.y + 18, x2: to.x, y2: to.y + 18 };
    return [svg("line", { ...line, class: node.chosen ? "branch chosen" : "branch" })];
  });
  return svg(
    "svg",
    {
      width: 16 + (Math.max(...nodes.map((node) => node.depth)) + 1) * WIDE,
      height: 16 + (Math.max(...nodes.map((node) => node.row)) + 1) * TALL,
      role: "img",
      "aria-label": `A tree of ${nodes.length} words with ${ends} ends`,
    },
    ...lines,
    ...nodes.map(box),
  );
}

/** @param {Node} node */
function box(node) {
  const { x, y } = corner(node);
  return svg(
    "g",
    {
      transform: `translate(${x} ${y})`,
      class: `node${node.chosen ? " chosen" : node.fate === "left behind" ? " left" : ""}`,
    },
    svg("title", {}, `${node.text}: ${node.score}${node.fate ? `, ${node.fate}` : ""}`),
    svg("rect", { width: WIDE - 20, height: 36, rx: 4 }),
    svg("text", { x: 8, y: 14, "dominant-baseline": "middle", "unicode-bidi": "isolate" }, cut(node.text)),
    svg("text", { x: 8, y: 28, class: "small", "dominant-baseline": "middle" }, node.score.replace("-", "−")),
  );
}

/** Where each word stands: as deep as it is late, one line for each end. @param {string[][]} rows @returns {Node[]} */
function placed(rows) {
  /** @type {Node[]} */
  const nodes = rows.map(([parent, text, score, fate]) => ({
    parent: parent === "" ? null : Number(parent),
    text,
    score,
    fate,
    depth: 0,
    row: -1,
    chosen: false,
  }));
  /** @type {number[][]} */
  const children = nodes.map(() => []);
  nodes.forEach((node, i) => {
    if (node.parent === null) return;
    children[node.parent].push(i);
    node.depth = nodes[node.parent].depth + 1;
  });
  let line = 0;
  const walk = (/** @type {number} */ i) => {
    nodes[i].row = line;
    children[i].forEach((child, k) => {
      if (k) line++;
      walk(child);
    });
  };
  nodes.forEach((node, i) => {
    if (node.parent !== null) return;
    walk(i);
    line++;
  });
  const answer = nodes.find((node) => node.fate === "the answer");
  for (let node = answer; node; node = node.parent === null ? undefined : nodes[node.parent]) node.chosen = true;
  return nodes;
}

/** @param {Node[]} nodes @param {Node} end */
function sentence(nodes, end) {
  const words = [];
  for (
    let node = /** @type {Node|undefined} */ (end);
    node;
    node = node.parent === null ? undefined : nodes[node.parent]
  )
    words.unshift(word(node.text));
  return words.flatMap((one, i) => (i ? [" ", one] : [one]));
}

/** @param {string} text */
function cut(text) {
  const characters = Array.from(text);
  return characters.length > 12 ? `${characters.slice(0, 11).join("")}…` : text;
}
