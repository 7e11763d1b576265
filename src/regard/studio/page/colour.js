// @ts-check
/** Colours of numbers: one purple ramp for weights, blue - white - orange for signed values, powers of ten by lightness. */

/** @typedef {"weight"|"signed"|"power"} Ramp */

const ENDS = {
  light: { page: [255, 255, 255], weight: [107, 63, 160], low: [11, 98, 184], high: [179, 89, 0] },
  dark: { page: [13, 17, 23], weight: [199, 166, 255], low: [108, 182, 255], high: [255, 180, 84] },
};

/** From little to much, the same on every page: lightness grows all the way. */
const POWERS = [
  [42, 26, 94],
  [43, 76, 140],
  [31, 122, 140],
  [47, 163, 107],
  [156, 203, 59],
  [251, 227, 77],
];
/** How many powers of ten a ramp spans. */
export const DECADES = 6;

export function dark() {
  return document.documentElement.dataset.theme === "dark";
}

/** @param {number[]} from @param {number[]} to @param {number} share */
function mixed(from, to, share) {
  return from.map((value, i) => Math.round(value + (to[i] - value) * share));
}

/**
 * Red, green and blue of a number; `top` has the strongest colour.
 * @param {number} value @param {number} top @param {Ramp} ramp
 */
export function rgb(value, top, ramp) {
  const ends = dark() ? ENDS.dark : ENDS.light;
  if (Number.isNaN(value)) return dark() ? [22, 27, 34] : [246, 248, 250];
  if (ramp === "power") return powered(value, top);
  const share = top > 0 ? Math.max(-1, Math.min(1, value / top)) : 0;
  if (ramp === "weight") return mixed(ends.page, ends.weight, Math.max(0, share));
  return mixed(ends.page, share < 0 ? ends.low : ends.high, Math.abs(share));
}

/** @param {number} value @param {number} top */
function powered(value, top) {
  if (!(value > 0)) return dark() ? [22, 27, 34] : [246, 248, 250];
  const at = Math.max(0, Math.min(1, 1 + Math.log10(value / top) / DECADES)) * (POWERS.length - 1);
  const i = Math.min(POWERS.length - 2, Math.floor(at));
  return mixed(POWERS[i], POWERS[i + 1], at - i);
}

/** @param {number[]} colour */
export function css(colour) {
  return `rgb(${colour[0]},${colour[1]},${colour[2]})`;
}

const STEPS = 512;

/** The colours of a ramp from its lowest to its highest, three bytes each. @param {Ramp} ramp */
function table(ramp) {
  const found = new Uint8ClampedArray(STEPS * 3);
  for (let k = 0; k < STEPS; k++) {
    const share = k / (STEPS - 1);
    const value = ramp === "signed" ? 2 * share - 1 : ramp === "power" ? 10 ** (DECADES * (share - 1)) : share;
    found.set(rgb(value, 1, ramp), 3 * k);
  }
  return found;
}

/**
 * Many numbers as a picture of one pixel each: thousands of cells are drawn as fast as one.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns @param {number} top @param {Ramp} ramp
 */
export function picture(numbers, rows, columns, top, ramp) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(columns, rows);
  const [colours, missing] = [table(ramp), rgb(NaN, 1, ramp)];
  for (let i = 0; i < rows * columns; i++) {
    const value = numbers[i];
    const share = top > 0 ? value / top : 0;
    const at = ramp === "signed" ? (share + 1) / 2 : ramp === "power" ? 1 + Math.log10(share) / DECADES : share;
    const there = !Number.isNaN(value) && !(ramp === "power" && value <= 0);
    const k = 3 * Math.round(Math.max(0, Math.min(1, at)) * (STEPS - 1));
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = there ? colours[k + c] : missing[c];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * The same, so small that many fit on a screen.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns @param {number} top @param {Ramp} ramp
 * @param {number} width @param {number} height
 */
export function thumbnail(numbers, rows, columns, top, ramp, width, height) {
  const canvas = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.imageSmoothingEnabled = columns > canvas.width || rows > canvas.height;
  context.drawImage(picture(numbers, rows, columns, top, ramp), 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** Black or white, whichever is easier to read on a colour. @param {number[]} colour */
export function ink(colour) {
  const [r, g, b] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

/** The colour of a role, such as "muted". @param {string} role */
export function role(role) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
}
