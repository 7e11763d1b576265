// @ts-check
/** Vectors as color strips, one per token: a row is one image, whose pixels are recorded numbers. */
import { heatImage } from "../core/color.js";
import { svg } from "../core/dom.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("../core/color.js").Ramp} Ramp */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */

/** Share of the absolute values that lies within the colors: beyond it, the color is the strongest. */
const COVERED = 0.98;
const SAMPLED = 5000;

/** The number with the strongest color: most absolute values are below it. @param {ArrayLike<number>} numbers */
export function colorTop(numbers) {
  const step = Math.max(1, Math.floor(numbers.length / SAMPLED));
  const sizes = new Float32Array(Math.ceil(numbers.length / step));
  let count = 0;
  for (let i = 0; i < numbers.length; i += step) if (Number.isFinite(numbers[i])) sizes[count++] = Math.abs(numbers[i]);
  const sorted = sizes.subarray(0, count).sort();
  return count ? sorted[Math.min(count - 1, Math.floor(count * COVERED))] || sorted[count - 1] : 0;
}

/** Whether a strip of this size runs from left to right. @param {number} width @param {number} height */
export function isWide(width, height) {
  return width >= height;
}

/** Number of the unit at a point of a strip. @param {number} x @param {number} y @param {number} width @param {number} height @param {number} size */
export function unitAt(x, y, width, height, size) {
  const share = isWide(width, height) ? x / width : y / height;
  return Math.max(0, Math.min(size - 1, Math.floor(share * size)));
}

/**
 * An image element. The pixels are numbers on a colormap; where there is none, it is transparent.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns @param {number} top @param {Ramp} ramp
 * @param {{x: number, y: number, width: number, height: number}} box
 */
export function numberImage(numbers, rows, columns, top, ramp, box) {
  return svg("image", {
    ...box,
    href: heatImage(numbers, rows, columns, top, ramp, true).toDataURL(),
    preserveAspectRatio: "none",
    "image-rendering": "pixelated",
  });
}

/** Gap between the strips of two tokens. @param {number} cell */
export function stripGap(cell) {
  return cell >= 40 ? 8 : cell >= 20 ? 4 : cell >= 12 ? 2 : 1;
}

/**
 * One strip per token. `vectors` gives the numbers of a column, or null where there are none.
 * @param {PlacedRow} placed @param {(column: number) => Float64Array|null} vectors @param {number} top @param {Ramp} ramp
 */
export function strips(placed, vectors, top, ramp) {
  const { stack, y, height } = placed;
  const [cell, count] = [stack.cell, stack.tokens.length];
  if (!count) return svg("g", {});
  const width = cell - stripGap(cell);
  const wide = isWide(width, height);
  const pixels = Math.max(2, Math.round(2 * (wide ? width : height)));
  const across = wide ? Math.round(pixels * (cell / width)) : 4;
  const [rows, columns] = wide ? [1, across * count] : [pixels, across * count];
  const numbers = new Float64Array(rows * columns).fill(NaN);
  for (let column = 0; column < count; column++) {
    const vector = vectors(column);
    if (!vector?.length) continue;
    for (let p = 0; p < pixels; p++) {
      const value = vector[Math.min(vector.length - 1, Math.floor((p / pixels) * vector.length))];
      if (wide) numbers[column * across + p] = value;
      else for (let k = 0; k < (cell < 12 ? 4 : 3); k++) numbers[p * columns + column * across + k] = value;
    }
  }
  const left = stack.left + stripGap(cell) / 2;
  return svg(
    "g",
    {},
    numberImage(numbers, rows, columns, top, ramp, { x: left, y, width: cell * count, height }),
    cell >= 12 ? frames(placed, vectors, left, width) : null,
  );
}

/** Thin borders of the strips, in one path. @param {PlacedRow} placed @param {(column: number) => Float64Array|null} vectors @param {number} left @param {number} width */
function frames({ stack, y, height }, vectors, left, width) {
  const parts = stack.tokens
    .map((_, i) => (vectors(i)?.length ? `M${left + i * stack.cell} ${y}h${width}v${height}h${-width}z` : ""))
    .join("");
  return svg("path", { d: parts, class: "scene-frame" });
}

/**
 * One vector over the whole width.
 * @param {{x: number, y: number, width: number, height: number}} box @param {Float64Array} vector @param {number} top @param {Ramp} ramp
 */
export function longStrip(box, vector, top, ramp) {
  return svg(
    "g",
    {},
    numberImage(vector, 1, vector.length, top, ramp, box),
    svg("rect", { ...box, class: "scene-frame" }),
  );
}
