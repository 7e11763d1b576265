// @ts-check
/** Recurrent layers unrolled in time: a cell per token with its gates and state inside, and arrows along time. */
import { svg } from "../core/dom.js";
import { middle } from "./layout.js";
import { numberImage, strips, stripGap } from "./draw-strips.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */

/** Width of a column from which gates are drawn. */
const MIN_GATES = 30;
const INSET = 3;

/** Place of the state inside a cell, below it the gates. @param {PlacedRow} placed @param {number} gates */
export function stateBox({ stack, y, height }, gates) {
  const width = stack.cell - stripGap(stack.cell) - 2 * INSET;
  const own = gates && stack.cell >= MIN_GATES ? Math.round((height - 2 * INSET) * 0.42) : height - 2 * INSET;
  return { left: stack.left + stripGap(stack.cell) / 2 + INSET, width, y: y + INSET, height: own };
}

/**
 * @param {PlacedRow} placed @param {(column: number) => Float64Array|null} states
 * @param {{numbers: Tensor, count: number}|null} gates @param {(column: number) => number} entry @param {number} top
 */
export function cells(placed, states, gates, entry, top) {
  const { stack, y, height } = placed;
  const box = stateBox(placed, gates?.count ?? 0);
  const width = stack.cell - stripGap(stack.cell);
  const inner = { ...placed, y: box.y, height: box.height };
  const group = svg("g", { class: "scene-cells" });
  if (stack.cell >= 14) {
    const d = stack.tokens
      .map((_, i) =>
        states(i) ? rounded(stack.left + stripGap(stack.cell) / 2 + i * stack.cell, y, width, height) : "",
      )
      .join("");
    group.append(svg("path", { d, class: "scene-cell" }));
    group.append(timeArrows(placed, width, states));
  }
  group.append(
    stack.cell >= 14 ? cellStrips(placed, box, states, top, "signed") : strips(inner, states, top, "signed"),
  );
  if (gates && stack.cell >= MIN_GATES) group.append(gateStrips(placed, box, gates, entry));
  return group;
}

/**
 * One image for the cells of a row, a strip in each.
 * @param {PlacedRow} placed @param {{left: number, width: number, y: number, height: number}} box
 * @param {(column: number) => Float64Array|null} vectors @param {number} top @param {import("../core/color.js").Ramp} ramp
 */
function cellStrips({ stack }, box, vectors, top, ramp) {
  const pixels = Math.round(2 * stack.cell);
  const inside = Math.round(2 * box.width);
  const numbers = new Float64Array(pixels * stack.tokens.length).fill(NaN);
  stack.tokens.forEach((_, i) => {
    const vector = vectors(i);
    for (let p = 0; vector && p < inside; p++)
      numbers[i * pixels + p] = vector[Math.floor((p / inside) * vector.length)];
  });
  const place = { x: box.left, y: box.y, width: stack.cell * stack.tokens.length, height: box.height };
  return numberImage(numbers, 1, numbers.length, top, ramp, place);
}

/**
 * Gates as thin strips, one below the other; a candidate has a sign.
 * @param {PlacedRow} placed @param {{left: number, width: number, y: number, height: number}} box
 * @param {{numbers: Tensor, count: number}} gates @param {(column: number) => number} entry
 */
function gateStrips(placed, box, { numbers, count }, entry) {
  const [from, to] = [box.y + box.height + 2, placed.y + placed.height - INSET];
  const step = (to - from) / count;
  const group = svg("g", { class: "scene-gates" });
  for (let gate = 0; gate < count; gate++) {
    const vectors = (/** @type {number} */ column) => {
      const position = entry(column);
      return position < 0 ? null : numbers.vector("width", { position, gate });
    };
    const signed = placed.stack.tokens.some((_, i) => vectors(i)?.some((value) => value < 0));
    const own = { ...box, y: from + gate * step, height: step - 1 };
    group.append(cellStrips(placed, own, vectors, 1, signed ? "signed" : "weight"));
  }
  return group;
}

/** Arrows from each cell to the next in time. @param {PlacedRow} placed @param {number} width @param {(column: number) => Float64Array|null} states */
function timeArrows({ stack, y, height, row }, width, states) {
  const at = y + Math.min(height / 2, 14);
  const back = row.node.direction === "backward";
  const d = stack.tokens
    .map((_, i) => {
      if (!i || !states(i) || !states(i - 1)) return "";
      const [from, to] = [middle(stack, i - 1) + width / 2, middle(stack, i) - width / 2];
      const [start, end] = back ? [to, from] : [from, to];
      const tip = Math.min(3.5, Math.abs(end - start) * 0.8) * (back ? -1 : 1);
      return `M${start} ${at}H${end}M${end - tip} ${at - 3}L${end} ${at}L${end - tip} ${at + 3}`;
    })
    .join("");
  return svg("path", { d, class: "scene-time" });
}

/** @param {number} x @param {number} y @param {number} width @param {number} height */
function rounded(x, y, width, height) {
  const r = Math.min(5, width / 4);
  return `M${x + r} ${y}h${width - 2 * r}q${r} 0 ${r} ${r}v${height - 2 * r}q0 ${r} ${-r} ${r}h${-(width - 2 * r)}q${-r} 0 ${-r} ${-r}v${-(height - 2 * r)}q0 ${-r} ${r} ${-r}z`;
}
