// @ts-check
/** Drawing contexts of canvases; where a browser has none, pictures stay empty and the rest of the page works. */
import { h } from "./dom.js";

/** Width of a letter of the page's font, where it cannot be measured. */
const LETTER = 7.5;

/** What is called on a context that draws nothing and has a result. */
const RESULTS = /** @type {Record<string, Function>} */ ({
  measureText: (/** @type {string} */ text) => ({ width: LETTER * Array.from(text).length }),
  createImageData: (/** @type {number} */ width, /** @type {number} */ height) => ({
    width,
    height,
    data: new Uint8ClampedArray(4 * width * height),
  }),
});
const NOTHING = new Proxy({}, { get: (_, name) => RESULTS[String(name)] ?? (() => {}), set: () => true });

/** The 2d context of a canvas, or one that draws nothing. @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2DSettings} [options] */
export function drawingContext(canvas, options) {
  return canvas.getContext("2d", options) ?? /** @type {CanvasRenderingContext2D} */ (NOTHING);
}

/** Whether this browser draws on canvases. */
export function hasCanvas() {
  return document.createElement("canvas").getContext("2d") !== null;
}

/** Says what is missing in a browser without canvases; null: nothing is. */
export function canvasNote() {
  if (hasCanvas()) return null;
  const text =
    "This browser does not draw on canvases, so colored pictures stay empty. All numbers can be read in their tables and in the tab Numbers.";
  return h("p", { class: "page-note", role: "note" }, text);
}
