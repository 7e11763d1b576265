// @ts-check
/** Figure of a lesson: a graph of what is computed from what, with the numbers of its values as color cells. */
import { css, rgb } from "../core/color.js";
import { h, svg } from "../core/dom.js";

/** @typedef {{nodes: string[], labels: string[], edges: [number, number][]}} Figure */
/** @typedef {{name: string, data: any, axes: string[], look?: string}} Shown */
/** @typedef {{label: string, cells: number[][]|null, text: string, width: number, height: number, level: number, x: number, y: number}} Box */

const [CELL, MAX_ROWS, MAX_COLUMNS, LETTER, GAP, LINE] = [11, 6, 12, 7.6, 28, 18];
const MAX_LETTERS = 18;

/** @param {Figure} figure @param {Map<string, Shown>} values inputs and results of the lesson by name */
export function figure(figure, values) {
  if (!figure.nodes.length) return null;
  const boxes = figure.nodes.map((node, i) => box(figure.labels[i], values.get(node)));
  setLevels(boxes, figure.edges);
  const { width, height } = place(boxes);
  const spoken = figure.edges.map(([a, b]) => `${figure.labels[a]} to ${figure.labels[b]}`).join(", ");
  const drawing = svg(
    "svg",
    {
      class: "lesson-figure",
      role: "img",
      "aria-label": `Figure: ${spoken}`,
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
    },
    arrowHead(),
    ...figure.edges.map(([a, b]) => arrow(boxes[a], boxes[b], width)),
    ...boxes.map(draw),
  );
  const note =
    "Each arrow: what is computed from what. Cells are the lesson's numbers: orange above 0, blue below, the strongest color for the largest of a box; of a large one the first rows and columns.";
  return h(
    "section",
    { class: "card lesson-figure-card" },
    h("h2", {}, "Figure"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Figure" }, drawing),
    h("p", { class: "muted small" }, note),
  );
}

/** @param {string} label @param {Shown} [value] @returns {Box} */
function box(label, value) {
  const cells = value ? numbers(value) : null;
  const text = value ? words(value.data) : "";
  const longest = Math.max(label.length, text.length);
  const width = Math.max(longest * LETTER + 16, (cells?.[0].length ?? 0) * CELL + 16, 36);
  const height = LINE + 8 + (cells ? cells.length * CELL + 4 : text ? LINE : 0);
  return { label, cells, text, width, height, level: 0, x: 0, y: 0 };
}

/** Numbers of a vector or matrix that fit into a box. @param {Shown} value @returns {number[][]|null} */
function numbers(value) {
  const rows = value.axes.length === 2 ? value.data : value.axes.length === 1 ? [value.data] : [[value.data]];
  if (typeof rows[0]?.[0] !== "number") return null;
  return rows.slice(0, MAX_ROWS).map((/** @type {number[]} */ row) => row.slice(0, MAX_COLUMNS));
}

/** A text, or a list of words. @param {any} data */
function words(data) {
  const list = Array.isArray(data) ? data : [data];
  return list.every((item) => typeof item === "string") ? shorten(list.join(" ")) : "";
}

/** @param {string} text */
function shorten(text) {
  return text.length > MAX_LETTERS ? `${text.slice(0, MAX_LETTERS - 1)}…` : text;
}

/** The level of a node is the longest path to it. @param {Box[]} boxes @param {[number, number][]} edges */
function setLevels(boxes, edges) {
  for (let round = 0; round < boxes.length; round++)
    for (const [a, b] of edges) boxes[b].level = Math.min(boxes.length, Math.max(boxes[b].level, boxes[a].level + 1));
  // a node without arrows to it is drawn just above the first node that needs it
  boxes.forEach((one, i) => {
    const next = edges.filter(([a]) => a === i).map(([, b]) => boxes[b].level);
    if (next.length && !edges.some(([, b]) => b === i)) one.level = Math.min(...next) - 1;
  });
}

/** From top to bottom, each level centered. @param {Box[]} boxes */
function place(boxes) {
  const levels = [...new Set(boxes.map((one) => one.level))].sort((a, b) => a - b);
  const rows = levels.map((level) => boxes.filter((one) => one.level === level));
  const widths = rows.map((row) => row.reduce((sum, one) => sum + one.width, 0) + GAP * (row.length - 1));
  const width = Math.ceil(Math.max(...widths) + 2 * GAP);
  let y = 4;
  rows.forEach((row, i) => {
    const height = Math.max(...row.map((one) => one.height));
    let x = (width - widths[i]) / 2;
    for (const one of row) {
      [one.x, one.y] = [x, y + (height - one.height) / 2];
      x += one.width + GAP;
    }
    y += height + GAP;
  });
  return { width, height: Math.ceil(y - GAP + 4) };
}

function arrowHead() {
  const tip = svg("path", { d: "M0,0 L7,3.5 L0,7 z", class: "figure-tip" });
  const size = { markerWidth: 7, markerHeight: 7, refX: 6, refY: 3.5, orient: "auto" };
  return svg("defs", {}, svg("marker", { id: "figure-arrow", ...size }, tip));
}

/** @param {Box} from @param {Box} to @param {number} width of the figure */
function arrow(from, to, width) {
  const [x1, y1] = [from.x + from.width / 2, from.y + from.height];
  const [x2, y2] = [to.x + to.width / 2, to.y];
  const middle = (y1 + y2) / 2;
  let path = `M${x1},${y1} C${x1},${middle} ${x2},${middle} ${x2},${y2}`;
  if (to.level - from.level > 1) {
    // around the boxes in between
    const right = x1 >= width / 2 - 1;
    const side = right
      ? Math.min(width - 4, Math.max(from.x + from.width, to.x + to.width) + GAP)
      : Math.max(4, Math.min(from.x, to.x) - GAP);
    const [start, end] = right ? [from.x + from.width, to.x + to.width] : [from.x, to.x];
    const [top, bottom] = [from.y + from.height / 2, to.y + to.height / 2];
    path = `M${start},${top} C${side},${top} ${side},${top} ${side},${top + 14} L${side},${bottom - 14} C${side},${bottom} ${side},${bottom} ${end},${bottom}`;
  }
  return svg("path", { d: path, class: "figure-arrow", "marker-end": "url(#figure-arrow)" });
}

/** @param {Box} one */
function draw(one) {
  const operation = !one.cells && !one.text;
  const frame = { x: one.x, y: one.y, width: one.width, height: one.height, rx: operation ? one.height / 2 : 4 };
  const middle = one.x + one.width / 2;
  const parts = [
    svg("rect", { ...frame, class: operation ? "figure-operation" : "figure-value" }),
    svg("text", { x: middle, y: one.y + LINE, "text-anchor": "middle" }, one.label),
  ];
  if (one.text)
    parts.push(
      svg("text", { x: middle, y: one.y + 2 * LINE, "text-anchor": "middle", class: "figure-text" }, one.text),
    );
  if (one.cells) {
    const top = Math.max(1e-12, ...one.cells.flat().map(Math.abs));
    const left = middle - (one.cells[0].length * CELL) / 2;
    one.cells.forEach((row, i) =>
      row.forEach((number, j) =>
        parts.push(
          svg(
            "rect",
            {
              x: left + j * CELL,
              y: one.y + LINE + 6 + i * CELL,
              width: CELL - 1,
              height: CELL - 1,
              fill: css(rgb(number, top, "signed")),
              class: "figure-cell",
            },
            svg("title", {}, String(number)),
          ),
        ),
      ),
    );
  }
  return svg("g", {}, ...parts);
}
