// @ts-check
/** Pictures on a canvas: pixels in their colors, numbers on a colormap, and weights over an image. */
import { drawingContext } from "../core/canvas.js";
import { thumbnail } from "../core/color.js";
import { h } from "../core/dom.js";

/** @typedef {import("../core/color.js").Ramp} Ramp */
/** @typedef {{width: number, height: number, data: ArrayLike<number>}} Pixels three numbers from 0 to 255 each */

/**
 * A canvas of one pixel per pixel, shown at a width without smoothing.
 * @param {Pixels} pixels @param {number} width @param {string} label for screen readers
 */
export function picture(pixels, width, label) {
  const canvas = h("canvas", { class: "picture", role: "img", "aria-label": label });
  [canvas.width, canvas.height] = [pixels.width, pixels.height];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${(width * pixels.height) / pixels.width}px`];
  const context = drawingContext(canvas);
  const image = context.createImageData(pixels.width, pixels.height);
  for (let i = 0; i < pixels.width * pixels.height; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = pixels.data[3 * i + c];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Numbers as a picture of a given width.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns @param {number} top @param {Ramp} ramp
 * @param {number} width @param {string} label
 */
export function numberPicture(numbers, rows, columns, top, ramp, width, label) {
  const canvas = thumbnail(numbers, rows, columns, top, ramp, width, (width * rows) / columns);
  canvas.className = "picture";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  return canvas;
}

/**
 * An image that is dark where a weight is small, and as it is where the weight is largest.
 * @param {Pixels} pixels @param {ArrayLike<number>} weights @param {number} rows @param {number} columns @param {number} top
 */
export function lightUp(pixels, weights, rows, columns, top) {
  const data = new Float64Array(3 * pixels.width * pixels.height);
  for (let y = 0; y < pixels.height; y++) {
    for (let x = 0; x < pixels.width; x++) {
      const cell = Math.floor((y * rows) / pixels.height) * columns + Math.floor((x * columns) / pixels.width);
      const share = top > 0 ? Math.max(0, weights[cell] / top) : 0;
      const at = 3 * (y * pixels.width + x);
      // the warm tint shows weights on black pixels too
      for (let c = 0; c < 3; c++) {
        data[at + c] = pixels.data[at + c] * (0.25 + 0.75 * share) * (1 - 0.45 * share) + TINT[c] * 0.45 * share;
      }
    }
  }
  return { width: pixels.width, height: pixels.height, data };
}

const TINT = [255, 140, 0];

/** Largest absolute value. @param {ArrayLike<number>} numbers */
export function largest(numbers) {
  let top = 0;
  for (let i = 0; i < numbers.length; i++) top = Math.max(top, Math.abs(numbers[i]));
  return top;
}

/** A picture with its caption. @param {HTMLElement} canvas @param {string} caption */
export function figure(canvas, caption) {
  return h("figure", { class: "tile" }, canvas, h("figcaption", { class: "muted" }, caption));
}
