// @ts-check
/** Formulas as MathML, with the numbers that went into them. */
import { math } from "./dom.js";
import { shown } from "./format.js";

/** @typedef {Element} M */

export const mi = (/** @type {string} */ text) => math("mi", {}, text);
export const mo = (/** @type {string} */ text) => math("mo", {}, text);
export const mn = (/** @type {number} */ value) => math("mn", {}, shown(value));
export const words = (/** @type {string} */ text) => math("mtext", {}, text);
export const row = (/** @type {(M|string)[]} */ ...parts) => math("mrow", {}, ...parts);
export const over = (/** @type {M} */ top, /** @type {M} */ bottom) => math("mfrac", {}, top, bottom);
/** Not msqrt: without a font made for formulas a browser draws it without its sign. */
export const root = (/** @type {M} */ of) =>
  row(math("mo", { stretchy: "false" }, "√"), math("mrow", { class: "rooted" }, of));
export const sub = (/** @type {M} */ base, /** @type {M} */ below) => math("msub", {}, base, below);
export const power = (/** @type {M} */ base, /** @type {M} */ above) => math("msup", {}, base, above);
export const sum = (/** @type {string} */ of) => math("munder", {}, mo("∑"), mi(of));

/** @param {...M} parts */
export function formula(...parts) {
  return math("math", { display: "block" }, row(...parts));
}

/**
 * a · b + c · d + ... , the first few written out.
 * @param {ArrayLike<number>} a @param {ArrayLike<number>} b @param {number} [most]
 */
export function products(a, b, most = 4) {
  const parts = [];
  for (let i = 0; i < Math.min(a.length, most); i++) {
    if (i) parts.push(mo("+"));
    parts.push(signed(a[i]), mo("·"), signed(b[i]));
  }
  if (a.length > most) parts.push(mo("+"), mo("…"));
  return row(...parts);
}

/** a + b + ..., the first few written out. @param {ArrayLike<number>} numbers @param {number} [most] */
export function total(numbers, most = 4) {
  const parts = [];
  for (let i = 0; i < Math.min(numbers.length, most); i++) parts.push(...(i ? [mo("+")] : []), signed(numbers[i]));
  if (numbers.length > most) parts.push(mo("+"), mo("…"));
  return row(...parts);
}

/** A number that may follow an operator. @param {number} value */
export function signed(value) {
  return value < 0 ? row(mo("("), mn(value), mo(")")) : mn(value);
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}
