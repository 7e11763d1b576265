// @ts-check
/** What a tour is made from: parts of the graph, and the words and numbers of the trace. */
import { h, word } from "../core/dom.js";
import { formatExact, formatNumber } from "../core/format.js";
import { own } from "../scene/rows.js";
import { formatPlace } from "../scene/scene-parts.js";

/** @typedef {import("../core/dom.js").Child} Child */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("../core/types.js").Token} Token */
/** @typedef {import("../scene/model-graph.js").ModelGraph} ModelGraph */
/** @typedef {import("../scene/model-graph.js").Stack} Stack */
/**
 * @typedef {{name: string, title: string, lit: string[], lesson: string, text: () => Promise<Child[]>, at?: string|null,
 *   head?: number, position?: number, column?: number, optional?: boolean}} Stop
 * lit: parts that it is about; at, head, position: the level of the picture; column: a token that is lit at the level
 * of the model; optional: left out first of a tour that is too long
 */

/** A token that is no part of a text. */
const SPECIAL = /^(?:<[^>]*>|\[[A-Z]+\])$/;
/** Tokens that are listed. */
const LISTED = 12;

export class Guide {
  /** @param {ModelGraph} graph @param {(place: string) => void} explain opens a number */
  constructor(graph, explain) {
    this.graph = graph;
    this.trace = graph.trace;
    this.explain = explain;
    this.source = graph.stacks[0];
    this.target = graph.stacks[graph.stacks.length - 1];
    /** Whether an encoder and a decoder are drawn. */
    this.isPair = graph.stacks.length > 1;
    /** Whether a series of numbers is read in place of a text. */
    this.isSeries = !graph.tokens(this.source.side).length;
    /** The decoding step that is looked at, and the token of the first stack. */
    this.step = longest(this.trace.header.steps.map(({ chosen }) => chosen));
    this.column = longest(this.source.tokens);
  }

  /** The token of a stack that is looked at. @param {Stack} stack */
  focus(stack) {
    return stack === this.source ? this.column : Math.min(this.graph.prompt + this.step, stack.tokens.length - 1);
  }

  /** Parts of a kind, in the order of computation. @param {string} kind @param {Stack} [stack] */
  nodes(kind, stack = this.source) {
    return stack.nodes.filter((node) => node.kind === kind && (kind === "tokens" || this.graph.has(node.tensor)));
  }

  /** The first part of a kind. @param {string} kind @param {Stack} [stack] @returns {GraphNode|null} */
  node(kind, stack = this.source) {
    return this.nodes(kind, stack)[0] ?? null;
  }

  /** What a part reads, without what comes from an encoder. @param {GraphNode} node */
  inputs(node) {
    return this.graph
      .inputs(node.id)
      .filter(({ kind }) => kind !== "memory")
      .map(({ from, kind }) => ({ node: /** @type {GraphNode} */ (this.graph.nodes.get(from)), kind }))
      .filter(({ node }) => this.graph.has(node.tensor));
  }

  /** A recorded tensor of a part. @param {GraphNode} node @param {string} last part of its name */
  own(node, last) {
    return own(this.graph, node, last);
  }

  /** @param {string} name @param {string} axis */
  size(name, axis) {
    const { axes, shape } = this.trace.describe(name);
    return axes.includes(axis) ? shape[axes.indexOf(axis)] : 1;
  }

  /** Place of a token in a tensor. @param {string} name @param {number} column @returns {Index|null} */
  index(name, column) {
    const [at, place] = [this.graph.entry(name, column), this.graph.place(name)];
    return at < 0 ? null : place === null ? {} : { [place]: at };
  }

  /** A token in quotation marks. @param {Token|undefined} token */
  quote(token) {
    return h("span", {}, "“", word(token?.label ?? ""), "”");
  }

  /** Tokens one after the other. @param {Token[]} tokens @returns {Child[]} */
  list(tokens) {
    const shown = tokens.slice(0, LISTED).flatMap((token) => [this.quote(token), " "]);
    return tokens.length > LISTED ? [...shown, "…"] : shown.slice(0, -1);
  }

  /** A recorded number, which can be explained. @param {string} name @param {Index} index @param {boolean} [mean] of all heads @returns {Promise<HTMLElement>} */
  async number(name, index, mean = false) {
    const tensor = await this.trace.tensor(name);
    const isMean = mean && tensor.size("head") > 1;
    return this.value(name, index, (isMean ? tensor.mean("head") : tensor).at(index), isMean);
  }

  /** A number of a place that is known. @param {string} name @param {Index} index @param {number} value @param {boolean} [mean] */
  value(name, index, value, mean = false) {
    const place = formatPlace({ name, index, value, place: "", mean }, this.trace);
    return h(
      "button",
      {
        type: "button",
        class: "link tour-number",
        title: `Explain ${place}`,
        "data-number": place,
        "data-exact": formatExact(value),
        onclick: () => this.explain(place),
      },
      formatNumber(value),
    );
  }

  /** A number that is computed from recorded ones. @param {number} value @param {string} [text] */
  derived(value, text = formatNumber(value)) {
    return h("b", { class: "tour-derived", "data-exact": String(value) }, text);
  }

  /** Vector of a token. @param {string} name @param {number} column @returns {Promise<Float64Array>} */
  async vector(name, column) {
    const index = this.index(name, column);
    return index ? (await this.trace.tensor(name)).vector("width", index) : new Float64Array();
  }

  /** The first numbers of a vector. @param {string} name @param {number} column @returns {Promise<Child[]>} */
  async beginning(name, column) {
    const index = this.index(name, column);
    if (!index) return [];
    const count = Math.min(3, this.size(name, "width"));
    const units = Array.from({ length: count }, (_, width) => this.number(name, { ...index, width }));
    return (await Promise.all(units)).flatMap((number) => [number, ", "]);
  }

  /** Unit 0 of what a part gives at a token. @param {GraphNode} node @param {number} column */
  unit({ tensor }, column) {
    const name = /** @type {string} */ (tensor);
    return this.number(name, { ...this.index(name, column), width: 0 });
  }

  /** A template for text (a tag of a template literal), whose numbers may still be read. @param {TemplateStringsArray} parts @param {...(Child|Child[]|Promise<Child|Child[]>)} values @returns {Promise<Child[]>} */
  async textTemplate(parts, ...values) {
    const found = await Promise.all(values);
    return parts.flatMap((part, i) => (i < found.length ? [part, ...[found[i]].flat()] : [part]));
  }
}

/** Whether a token is a mark and no part of a text. @param {Token|undefined} token */
export function isMark(token) {
  return SPECIAL.test(token?.token ?? "");
}

/** Place of the longest word, the last of them; marks such as <EOS> only if there is nothing else. @param {Token[]} tokens */
function longest(tokens) {
  const size = (/** @type {Token} */ token) => (isMark(token) ? 0 : Array.from(token.label).length);
  return tokens.reduce((best, token, i) => (size(token) >= size(tokens[best]) && size(token) ? i : best), 0);
}

/** Mean and standard deviation. @param {Float64Array} numbers */
export function moments(numbers) {
  const mean = numbers.reduce((a, b) => a + b, 0) / numbers.length;
  const deviation = Math.sqrt(numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / numbers.length);
  return { mean, deviation };
}

/** Place of the largest number. @param {ArrayLike<number>} numbers */
export function largest(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i++) if (numbers[i] > numbers[best]) best = i;
  return best;
}
