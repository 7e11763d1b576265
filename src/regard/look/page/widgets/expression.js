// @ts-check
/** Drawing of an explanation: its formula with names and with numbers, its vectors as strips, its largest products. */
import { h } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import {
  dotTerms,
  formula,
  fraction,
  mi,
  mn,
  mo,
  mrow,
  mtext,
  parenthesize,
  power,
  sqrt,
  subscript,
  sum,
} from "./formula.js";
import { strip } from "./strip.js";
import { table, tableRow } from "./table.js";

/** @typedef {import("../core/types.js").Place} Place */
/** @typedef {import("../core/types.js").Expression} Expression */
/** @typedef {import("../core/types.js").Vector} Vector */
/**
 * What a drawing needs to know: how places are called, and what happens when one is clicked.
 * @typedef {{label: (name: string, axis: string, at: number) => string, open: (place: Place) => void,
 *   matrix: ((name: string, index: Record<string, number>) => void)|null}} Links
 */

/** Products that are listed at first. */
const LARGEST = 6;
/** Order of operators: those that bind more strongly need no parentheses. */
const BINDING = { "+": 1, "−": 1, "×": 2, "÷": 3, "^": 3, max: 3, min: 3 };

/** @param {Expression} expression @param {Links} links @returns {HTMLElement[]} */
export function drawExpression(expression, links) {
  const lines = [formula(symbols(expression)), formula(mo("="), values(expression))];
  if (expression.op !== "number") lines.push(formula(mo("="), mn(expression.value)));
  const box = h("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "Formula" }, ...lines);
  return [box, ...numberList(leaves(expression), links), ...vectorSections(expression, links)];
}

/** Name of a place in a formula: the last part of its name. @param {{kind: string, name: string}} place */
function symbol(place) {
  if (place.kind === "constant") return mtext("constant");
  const parts = place.name.split(".");
  const last = parts[parts.length - 1];
  return mtext(place.kind === "weight" && parts.length > 1 ? parts.slice(-2).join(".") : last);
}

/** The expression with names. @param {Expression} expression @returns {Element} */
function symbols(expression) {
  return render(expression, (leaf) => (leaf.place.kind === "constant" ? mn(leaf.value) : symbol(leaf.place)), true);
}

/** The expression with numbers. @param {Expression} expression @returns {Element} */
function values(expression) {
  if (expression.op === "dot") return dotTerms(expression.left.numbers, expression.right.numbers);
  return render(expression, (leaf) => parenthesize(leaf.value), false);
}

/**
 * @param {Expression} expression @param {(leaf: import("../core/types.js").NumberExpression) => Element} leaf
 * @param {boolean} named whether vectors are named; otherwise their numbers are written out
 * @returns {Element}
 */
function render(expression, leaf, named) {
  const inner = (/** @type {Expression} */ part) => render(part, leaf, named);
  switch (expression.op) {
    case "number":
      return leaf(expression);
    case "call":
      return call(expression.function, inner(expression.argument));
    case "dot":
      return named
        ? mrow(
            sum("i"),
            subscript(symbol(expression.left), mi("i")),
            mo("·"),
            subscript(symbol(expression.right), mi("i")),
          )
        : parenthesize(expression.value);
    case "reduction":
      return named ? mrow(mtext(expression.name), mo("("), symbol(expression.vector), mo(")")) : mn(expression.value);
    case "softmax":
      return softmax(expression, leaf, named);
    default:
      return combination(expression, inner);
  }
}

/** @param {import("../core/types.js").CombinationExpression} expression @param {(part: Expression) => Element} inner */
function combination({ operator, terms }, inner) {
  if (operator === "÷") return fraction(inner(terms[0]), inner(terms[1]));
  if (operator === "^") return power(mrow(mo("("), inner(terms[0]), mo(")")), inner(terms[1]));
  if (operator === "max" || operator === "min")
    return mrow(mi(operator), mo("("), inner(terms[0]), mo(","), inner(terms[1]), mo(")"));
  const parts = terms.flatMap((term, i) => {
    const loose =
      term.op === "combination" &&
      (BINDING[term.operator] < BINDING[operator] || (i > 0 && operator === "−" && BINDING[term.operator] === 1));
    const drawn = loose || (operator === "×" && term.op === "dot") ? mrow(mo("("), inner(term), mo(")")) : inner(term);
    return i ? [mo(operator === "×" ? "·" : operator), drawn] : [drawn];
  });
  return mrow(...parts);
}

/** @param {string} name @param {Element} argument */
function call(name, argument) {
  if (name === "sqrt") return sqrt(argument);
  if (name === "exp") return power(mi("e"), argument);
  if (name === "negative") return mrow(mo("−"), argument);
  return mrow(name === "sigmoid" ? mi("σ") : mtext(name), mo("("), argument, mo(")"));
}

/** @param {import("../core/types.js").SoftmaxExpression} expression @param {(leaf: any) => Element} leaf @param {boolean} named */
function softmax({ number, vector }, leaf, named) {
  const name = symbol(vector);
  if (named) {
    const below = mrow(sum("j"), power(mi("e"), subscript(name, mi("j"))));
    return fraction(power(mi("e"), subscript(symbol(vector), mi("i"))), below);
  }
  const top = Math.max(...vector.numbers, -Infinity);
  const shift = Math.abs(top) > 80 ? top : 0; // a sum of such exponentials cannot be written out
  const total = vector.numbers.reduce((sum, x) => sum + Math.exp(x - shift), 0);
  return fraction(power(mi("e"), shift ? mn(number.value - shift) : render(number, leaf, false)), mn(total));
}

/** All single numbers of an expression, each place once. @param {Expression} expression @returns {import("../core/types.js").NumberExpression[]} */
export function leaves(expression) {
  const found = new Map();
  const visit = (/** @type {Expression} */ part) => {
    if (part.op === "number") {
      if (part.place.kind !== "constant") found.set(`${part.place.name}${part.place.ref}`, part);
    } else if (part.op === "combination") part.terms.forEach(visit);
    else if (part.op === "call") visit(part.argument);
    else if (part.op === "softmax") visit(part.number);
  };
  visit(expression);
  return [...found.values()];
}

/** @param {ReturnType<typeof leaves>} numbers @param {Links} links @returns {HTMLElement[]} */
function numberList(numbers, links) {
  if (!numbers.length) return [];
  const rows = numbers.map(({ place, value }) =>
    tableRow(placeTitle(place, links), [numberButton(value, place, links)]),
  );
  return [table("Numbers of the formula", ["", "value"], rows, { kind: "numbers operands" })];
}

/** Name and index of a place. @param {Place} place @param {Links} links */
function placeTitle(place, links) {
  const at = Object.entries(place.index)
    .filter(([axis]) => !axis.startsWith("axis "))
    .map(([axis, i]) => `${axis} ${links.label(place.name, axis, i)}`);
  return h(
    "span",
    {},
    h("code", {}, place.name),
    at.length ? h("span", { class: "muted" }, ` ${at.join(", ")}`) : null,
  );
}

/** @param {number} value @param {Place} place @param {Links} links */
function numberButton(value, place, links) {
  const text = formatNumber(value);
  if (place.kind === "constant") return text;
  const label = `${place.name}: ${text}. Explain`;
  return h("button", { type: "button", class: "cell", "aria-label": label, onclick: () => links.open(place) }, text);
}

/** Place of one number of a vector. @param {Vector} vector @param {number} i @returns {Place} */
function placeOf(vector, i) {
  const own = vector.places[i];
  if (!Array.isArray(own)) return own;
  const index = { ...vector.index, ...Object.fromEntries(vector.along.map((axis, k) => [axis, own[k]])) };
  return {
    kind: vector.kind === "mixed" ? "computed" : vector.kind,
    name: vector.name,
    index,
    ref: vector.refs[i] ?? "",
  };
}

/** What distinguishes one number of a vector. @param {Vector} vector @param {number} i @param {Links} links */
function entryName(vector, i, links) {
  const own = vector.places[i];
  if (!Array.isArray(own)) return String(i);
  const named = vector.along.map((axis, k) => links.label(vector.name, axis, own[k]));
  return named.join(", ") || String(i);
}

/** @param {Expression} expression @param {Links} links @returns {HTMLElement[]} */
function vectorSections(expression, links) {
  if (expression.op === "dot") return [dotSection(expression, links)];
  if (expression.op === "combination") {
    const found = expression.terms.flatMap((term) => vectorSections(term, links));
    return found.filter((section, i) => found.findIndex((other) => other.dataset.of === section.dataset.of) === i);
  }
  if (expression.op === "call") return vectorSections(expression.argument, links);
  if (expression.op === "softmax" || expression.op === "reduction") return [vectorSection(expression.vector, links)];
  return [];
}

/** @param {Vector} vector @param {Links} links */
function vectorTitle(vector, links) {
  const at = Object.entries(vector.index).map(([axis, i]) => `${axis} ${links.label(vector.name, axis, i)}`);
  const title = h(
    "span",
    { class: "vector-title" },
    h("code", {}, vector.name),
    at.length ? ` ${at.join(", ")}` : null,
  );
  if (vector.kind !== "weight" || !links.matrix) return title;
  const first = placeOf(vector, 0);
  const open = () => links.matrix?.(vector.name, vector.along.length === 1 ? { ...vector.index } : first.index);
  return h("span", {}, title, " ", h("button", { type: "button", class: "link", onclick: open }, "Open matrix"));
}

/** @param {Vector} vector @param {Links} links */
function vectorStrip(vector, links) {
  const numbers = Float64Array.from(vector.numbers);
  const finite = vector.numbers.filter(Number.isFinite).map(Math.abs);
  return strip({
    numbers,
    top: Math.max(1e-12, ...finite),
    ramp: vector.name.endsWith("weights") ? "weight" : "signed",
    label: vector.name,
    names: vector.numbers.map((_, i) => entryName(vector, i, links)),
    onpick: (i) => links.open(placeOf(vector, i)),
  });
}

/** @param {Vector} vector @param {Links} links */
function vectorSection(vector, links) {
  const rows = listed(
    vector.numbers.map((_, i) => i),
    vector.numbers,
    (i) => tableRow(entryName(vector, i, links), [numberButton(vector.numbers[i], placeOf(vector, i), links)]),
  );
  const note = vector.size > vector.numbers.length ? restNote(vector) : null;
  return h(
    "section",
    { class: "operand", "data-of": JSON.stringify([vector.name, vector.index]) },
    h("h3", {}, vectorTitle(vector, links)),
    vectorStrip(vector, links),
    moreTable("Numbers of the vector", ["", "value"], rows),
    note,
  );
}

/** @param {import("../core/types.js").DotExpression} dot @param {Links} links */
function dotSection({ left, right, rest, value }, links) {
  const products = left.numbers.map((a, i) => a * right.numbers[i]);
  const named = left.along.length ? left : right;
  const rows = listed(
    products.map((_, i) => i),
    products,
    (i) =>
      tableRow(entryName(named, i, links), [
        numberButton(left.numbers[i], placeOf(left, i), links),
        numberButton(right.numbers[i], placeOf(right, i), links),
        formatNumber(products[i]),
      ]),
  );
  const others = left.size - left.numbers.length;
  const more = others ? ` ${others.toLocaleString("en")} smaller products sum to ${formatNumber(rest)}.` : "";
  return h(
    "section",
    { class: "operand", "data-of": JSON.stringify([left.name, right.name, left.index, right.index]) },
    h("h3", {}, vectorTitle(left, links)),
    vectorStrip(left, links),
    h("h3", {}, "times ", vectorTitle(right, links)),
    vectorStrip(right, links),
    h("p", { class: "muted" }, `${left.size.toLocaleString("en")} products sum to ${formatNumber(value)}.${more}`),
    moreTable("Products, the largest first", ["", symbolText(left), symbolText(right), "product"], rows),
  );
}

/** @param {Vector} vector */
function symbolText(vector) {
  return vector.name.split(".").slice(-1)[0];
}

/** @param {Vector} vector */
function restNote(vector) {
  const left = (vector.size - vector.numbers.length).toLocaleString("en");
  return h("p", { class: "muted" }, `${left} smaller numbers are not listed.`);
}

/**
 * Rows by the size of their numbers, the largest first; made when they are needed.
 * @param {number[]} order @param {number[]} sizes @param {(i: number) => HTMLElement} row
 */
function listed(order, sizes, row) {
  const size = (/** @type {number} */ i) => (Number.isFinite(sizes[i]) ? Math.abs(sizes[i]) : -1);
  order.sort((a, b) => size(b) - size(a));
  return {
    count: order.length,
    make: (/** @type {number} */ from, /** @type {number} */ to) => order.slice(from, to).map(row),
  };
}

/** A table of the first rows, with a button for all. @param {string} label @param {string[]} columns @param {ReturnType<typeof listed>} rows */
function moreTable(label, columns, rows) {
  const box = table(label, columns, rows.make(0, LARGEST), { kind: "numbers operands" });
  if (rows.count <= LARGEST) return box;
  const all = h("button", { type: "button", class: "link" }, `Show all ${rows.count.toLocaleString("en")}`);
  all.addEventListener("click", () => {
    box.querySelector("tbody")?.append(...rows.make(LARGEST, rows.count));
    all.remove();
  });
  return h("div", {}, box, all);
}
