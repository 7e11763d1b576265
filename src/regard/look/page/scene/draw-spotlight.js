// @ts-check
/** Spotlight: some rows of the picture are framed, everything else is dimmed. */
import { svg } from "../core/dom.js";

/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */

/** Space around a row, and between rows that share a frame. */
const [EDGE, NEAR] = [6, 40];

/** @param {PlacedRow[]} rows @param {number} width of the picture @param {number} height @returns {SVGElement[]} */
export function spotlight(rows, width, height) {
  if (!rows.length) return [];
  const boxes = joined(rows.map(rowBox));
  const holes = boxes.map((box) => `M${box.x} ${box.y}h${box.width}v${box.height}h${-box.width}z`).join("");
  return [
    svg("path", { d: `M0 0h${width}v${height}h${-width}z${holes}`, "fill-rule": "evenodd", class: "scene-dim" }),
    ...boxes.map((box) => svg("rect", { ...box, rx: 6, class: "scene-framed" })),
  ];
}

/** A row with its title. @param {PlacedRow} row @returns {Box} */
function rowBox({ stack, y, height, row }) {
  const above = row.form === "tokens" ? 0 : 4;
  return { x: stack.x + 3, y: y - EDGE - above, width: stack.width - 6, height: height + 2 * EDGE + above };
}

/** Rows of a stack that follow each other have one frame. @param {Box[]} boxes @returns {Box[]} */
function joined(boxes) {
  const sorted = [...boxes].sort((a, b) => a.x - b.x || a.y - b.y);
  /** @type {Box[]} */
  const found = [];
  for (const box of sorted) {
    const last = found[found.length - 1];
    if (last && last.x === box.x && box.y <= last.y + last.height + NEAR)
      last.height = Math.max(last.height, box.y + box.height - last.y);
    else found.push({ ...box });
  }
  return found;
}
