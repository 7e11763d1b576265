// @ts-check
/** Colormaps: purple for weights, blue - white - orange for signed values, and a logarithmic one of growing lightness. */
import { drawingContext } from "./canvas.js";

/** @typedef {"weight"|"signed"|"log"} Ramp */

const ENDS = {
  light: { page: [255, 255, 255], weight: [107, 63, 160], low: [11, 98, 184], high: [179, 89, 0] },
  dark: { page: [13, 17, 23], weight: [199, 166, 255], low: [108, 182, 255], high: [255, 180, 84] },
};

/** From small to large, the same in both themes. */
const LOG_COLORS = [
  [42, 26, 94],
  [43, 76, 140],
  [31, 122, 140],
  [47, 163, 107],
  [156, 203, 59],
  [251, 227, 77],
];
/** Powers of ten that the logarithmic colormap spans. */
export const DECADES = 6;

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** @param {number[]} from @param {number[]} to @param {number} share */
function mix(from, to, share) {
  return from.map((value, i) => Math.round(value + (to[i] - value) * share));
}

/**
 * Red, green and blue of a number; `top` gets the strongest color.
 * @param {number} value @param {number} top @param {Ramp} ramp
 */
export function rgb(value, top, ramp) {
  const ends = isDark() ? ENDS.dark : ENDS.light;
  if (Number.isNaN(value)) return isDark() ? [22, 27, 34] : [246, 248, 250];
  if (ramp === "log") return logColor(value, top);
  const share = top > 0 ? Math.max(-1, Math.min(1, value / top)) : 0;
  if (ramp === "weight") return mix(ends.page, ends.weight, Math.max(0, share));
  return mix(ends.page, share < 0 ? ends.low : ends.high, Math.abs(share));
}

/** @param {number} value @param {number} top */
function logColor(value, top) {
  if (!(value > 0)) return isDark() ? [22, 27, 34] : [246, 248, 250];
  const at = Math.max(0, Math.min(1, 1 + Math.log10(value / top) / DECADES)) * (LOG_COLORS.length - 1);
  const i = Math.min(LOG_COLORS.length - 2, Math.floor(at));
  return mix(LOG_COLORS[i], LOG_COLORS[i + 1], at - i);
}

/** @param {number[]} color */
export function css(color) {
  return `rgb(${color[0]},${color[1]},${color[2]})`;
}

const STEPS = 512;

/** Colors of a colormap from lowest to highest, three bytes each. @param {Ramp} ramp */
function colorTable(ramp) {
  const colors = new Uint8ClampedArray(STEPS * 3);
  for (let k = 0; k < STEPS; k++) {
    const share = k / (STEPS - 1);
    const value = ramp === "signed" ? 2 * share - 1 : ramp === "log" ? 10 ** (DECADES * (share - 1)) : share;
    colors.set(rgb(value, 1, ramp), 3 * k);
  }
  return colors;
}

/**
 * An image with one pixel per number: thousands of cells are drawn as fast as one.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns @param {number} top @param {Ramp} ramp
 * @param {boolean} [clear] whether pixels without a number are transparent
 */
export function heatImage(numbers, rows, columns, top, ramp, clear = false) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const options = { willReadFrequently: true }; // in memory: pixels are written by hand, and often read again
  const context = drawingContext(canvas, options);
  const image = context.createImageData(columns, rows);
  const [colors, missing] = [colorTable(ramp), rgb(NaN, 1, ramp)];
  for (let i = 0; i < rows * columns; i++) {
    const value = numbers[i];
    const share = top > 0 ? value / top : 0;
    const at = ramp === "signed" ? (share + 1) / 2 : ramp === "log" ? 1 + Math.log10(share) / DECADES : share;
    const valid = !Number.isNaN(value) && !(ramp === "log" && value <= 0);
    const k = 3 * Math.round(Math.max(0, Math.min(1, at)) * (STEPS - 1));
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = valid ? colors[k + c] : missing[c];
    image.data[4 * i + 3] = clear && Number.isNaN(value) ? 0 : 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * The same image scaled to a given size.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns @param {number} top @param {Ramp} ramp
 * @param {number} width @param {number} height
 */
export function thumbnail(numbers, rows, columns, top, ramp, width, height) {
  const canvas = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const context = drawingContext(canvas);
  context.imageSmoothingEnabled = columns > canvas.width || rows > canvas.height;
  context.drawImage(heatImage(numbers, rows, columns, top, ramp), 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** Black or white, whichever has more contrast on a color. @param {number[]} color */
export function textColor(color) {
  const [r, g, b] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

/** Colors an element by a number. @param {HTMLElement} node @param {number} value @param {number} top @param {Ramp} ramp */
export function colorize(node, value, top, ramp) {
  const color = rgb(value, top, ramp);
  node.style.background = css(color);
  node.style.color = textColor(color);
  return node;
}

/** Color of a CSS role, such as "muted". @param {string} role */
export function roleColor(role) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
}
