// @ts-check
/** Formulas as the server describes them: lists of a name, attributes, and texts or lists. Only names of MathML count. */
import { math } from "./dom.js";
import { root } from "./formula.js";

const NAMES = new Set("math mrow mi mo mn mtext mfrac msub msup msubsup munder mover munderover mspace".split(" "));

/** @param {any} tree @param {boolean} [block] on a line of its own @returns {Element} */
export function markup(tree, block = false) {
  const [name, attributes, ...parts] = tree;
  const children = parts.map((/** @type {any} */ part) => (Array.isArray(part) ? markup(part) : String(part)));
  if (name === "msqrt") return root(math("mrow", {}, ...children));
  const props = name === "math" && block ? { display: "block" } : {};
  for (const key of ["accent", "width"])
    if (typeof attributes[key] === "string") Object.assign(props, { [key]: attributes[key] });
  return math(NAMES.has(name) ? name : "mtext", props, ...children);
}
