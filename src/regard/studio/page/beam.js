// @ts-check
/** The beam as a tree: a column a step, bold what became the answer, grey what was left behind and why. */
import { h, svg } from "./dom.js";
import { shown } from "./format.js";
import { scrolled } from "./table.js";

/** @typedef {import("./types.js").BeamNode} BeamNode */

const [WIDE, TALL] = [112, 40];

/** @param {BeamNode[]} nodes */
export function beamTree(nodes) {
  const left = nodes.filter((node) => node.state === "left");
  const reasons = left
    .slice(0, 100)
    .map((node) => h("li", {}, `step ${node.step}, `, h("bdi", { dir: "auto" }, node.shown), `: ${reason(node)}`));
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "The beam"),
    h(
      "p",
      { class: "muted" },
      "A column a step; under each word the log-probability of the sentence so far. Bold became the answer, dashed was left behind.",
    ),
    scrolled("Beam tree", picture(nodes, left.length)),
    left.length
      ? h("details", {}, h("summary", {}, `Why ${left.length} were left behind`), h("ul", {}, ...reasons))
      : null,
  );
}

/** @param {BeamNode[]} nodes @param {number} left */
function picture(nodes, left) {
  /** @type {Map<number, number>} */
  const filled = new Map();
  const at = nodes.map((node) => {
    const row = filled.get(node.step) ?? 0;
    filled.set(node.step, row + 1);
    return { x: 8 + (node.step - 1) * WIDE, y: 8 + row * TALL };
  });
  const lines = nodes.flatMap((node, i) => {
    if (node.parent === null) return [];
    const [from, to] = [at[node.parent], at[i]];
    const ends = { x1: from.x + WIDE - 24, y1: from.y + 16, x2: to.x, y2: to.y + 16 };
    return [svg("line", { ...ends, class: node.chosen ? "branch chosen" : "branch" })];
  });
  return svg(
    "svg",
    {
      width: 16 + Math.max(...nodes.map((node) => node.step)) * WIDE,
      height: 16 + Math.max(...filled.values()) * TALL,
      role: "img",
      "aria-label": `Beam tree with ${nodes.length} hypotheses, ${left} left behind`,
    },
    ...lines,
    ...nodes.map((node, i) => box(node, at[i])),
  );
}

/** @param {BeamNode} node @param {{x: number, y: number}} at */
function box(node, at) {
  return svg(
    "g",
    { transform: `translate(${at.x} ${at.y})`, class: `node ${node.state}${node.chosen ? " chosen" : ""}` },
    svg("title", {}, reason(node)),
    svg("rect", { width: WIDE - 24, height: 32, rx: 4 }),
    svg("text", { x: 8, y: 13, "dominant-baseline": "middle", "unicode-bidi": "isolate" }, cut(node.shown)),
    svg("text", { x: 8, y: 25, class: "small", "dominant-baseline": "middle" }, shown(node.score)),
  );
}

/** @param {BeamNode} node */
function reason(node) {
  if (node.state === "left")
    return `its best way on had ${shown(node.best ?? NaN)}, the last that stayed ${shown(node.worst ?? NaN)}`;
  if (node.state === "ended")
    return `its best way on was to end, with ${shown(node.best ?? NaN)}: it did, or a rule of the search forbade it`;
  if (node.state === "open") return "the search was over before it went on";
  return node.chosen ? "part of the answer" : "went on";
}

/** @param {string} text */
function cut(text) {
  const characters = Array.from(text);
  return characters.length > 11 ? `${characters.slice(0, 10).join("")}…` : text;
}
