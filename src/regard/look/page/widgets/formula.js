// @ts-check
/** Formulas as MathML: built from numbers, or from the trees that the server sends with a lesson. */
import { math } from "../core/dom.js";
import { formatNumber } from "../core/format.js";

/** @typedef {Element} M */

export const mi = (/** @type {string} */ text) => math("mi", {}, text);
export const mo = (/** @type {string} */ text) => math("mo", {}, text);
export const mn = (/** @type {number} */ value) => math("mn", {}, formatNumber(value));
export const mtext = (/** @type {string} */ text) => math("mtext", {}, text);
export const mrow = (/** @type {(M|string)[]} */ ...parts) => math("mrow", {}, ...parts);
export const fraction = (/** @type {M} */ top, /** @type {M} */ bottom) => math("mfrac", {}, top, bottom);
/** Not msqrt: without a math font a browser draws it without its sign. */
export const sqrt = (/** @type {M} */ of) =>
  mrow(math("mo", { stretchy: "false" }, "√"), math("mrow", { class: "sqrt" }, of));
export const subscript = (/** @type {M} */ base, /** @type {M} */ below) => math("msub", {}, base, below);
export const power = (/** @type {M} */ base, /** @type {M} */ above) => math("msup", {}, base, above);
export const sum = (/** @type {string} */ over) => math("munder", {}, mo("∑"), mi(over));

const MAX_TERMS = 4;
const TAGS = new Set("math mrow mi mo mn mtext mfrac msub msup msubsup munder mover munderover mspace".split(" "));

/** @param {...M} parts */
export function formula(...parts) {
  return math("math", { display: "block" }, mrow(...parts));
}

/** a · b + c · d + …, the first terms written out. @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dotTerms(a, b) {
  return terms(a, (i) => [parenthesize(a[i]), mo("·"), parenthesize(b[i])]);
}

/** a + b + …, the first terms written out. @param {ArrayLike<number>} numbers */
export function sumTerms(numbers) {
  return terms(numbers, (i) => [parenthesize(numbers[i])]);
}

/** @param {ArrayLike<number>} numbers @param {(i: number) => M[]} term */
function terms(numbers, term) {
  const parts = [];
  for (let i = 0; i < Math.min(numbers.length, MAX_TERMS); i++) parts.push(...(i ? [mo("+")] : []), ...term(i));
  if (numbers.length > MAX_TERMS) parts.push(mo("+"), mo("…"));
  return mrow(...parts);
}

/** A number in parentheses if it is negative, so that it can follow an operator. @param {number} value */
export function parenthesize(value) {
  return value < 0 ? mrow(mo("("), mn(value), mo(")")) : mn(value);
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

/** MathML from a tree of [tag, attributes, ...children]; unknown tags become text. @param {any} tree @param {boolean} [block] @returns {M} */
export function mathFromTree(tree, block = false) {
  const [tag, attributes, ...parts] = tree;
  const children = parts.map((/** @type {any} */ part) => (Array.isArray(part) ? mathFromTree(part) : String(part)));
  if (tag === "msqrt") return sqrt(mrow(...children));
  const props = tag === "math" && block ? { display: "block" } : {};
  for (const key of ["accent", "width"])
    if (typeof attributes[key] === "string") Object.assign(props, { [key]: attributes[key] });
  return math(TAGS.has(tag) ? tag : "mtext", props, ...children);
}
