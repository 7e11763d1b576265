// @ts-check
/** Recorded numbers of a row: its vectors per token, its colors, and the number at a place. */
import { formatNumber } from "../core/format.js";
import { colorTop } from "./draw-strips.js";
import { loadChoices } from "./draw-output.js";
import { own } from "./rows.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/**
 * @typedef {{name: string, index: Index, value: number, place: string, mean: boolean}} PickedNumber
 * mean: over all heads
 */

export class RowValues {
  /** @param {ModelGraph} graph */
  constructor(graph) {
    this.graph = graph;
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
    /** @type {Map<string, number>} */
    this.tops = new Map();
    /** @type {import("./draw-output.js").Choice[]} */
    this.choices = [];
  }

  /** @param {import("./rows.js").Row[]} rows */
  async load(rows) {
    const names = new Set(rows.flatMap((row) => this.names(row)));
    await Promise.all(
      [...names].map(async (name) => {
        const tensor = await this.graph.trace.tensor(name);
        this.tensors.set(name, tensor);
        if (name.endsWith(".weights") && tensor.axes.includes("head"))
          this.tensors.set(`${name} mean`, tensor.mean("head"));
      }),
    );
    if (rows.some(({ form }) => form === "output")) this.choices = await loadChoices(this.graph);
  }

  /** Tensors that a row shows. @param {import("./rows.js").Row} row @returns {string[]} */
  names({ form, node, tensor }) {
    if (form === "output") return [];
    const gates = form === "cells" ? own(this.graph, node, "gates") : null;
    return [...(tensor ? [tensor] : []), ...(gates ? [gates] : [])];
  }

  /** @param {string|null} name @returns {Tensor|null} */
  tensor(name) {
    return (name && this.tensors.get(name)) || null;
  }

  /** Weights of attention, mean of heads. @param {string} name */
  meanWeights(name) {
    return this.tensor(`${name} mean`) ?? this.tensor(name);
  }

  /** The number with the strongest color of a tensor. @param {string} name */
  top(name) {
    let top = this.tops.get(name);
    if (top === undefined) {
      top = colorTop(this.tensor(name)?.data ?? []);
      this.tops.set(name, top);
    }
    return top;
  }

  /** Gates of a recurrent layer. @param {GraphNode} node */
  gates(node) {
    const name = own(this.graph, node, "gates");
    const numbers = this.tensor(name);
    return name && numbers ? { name, numbers, count: numbers.size("gate") } : null;
  }

  /** Place of a token in a tensor. @param {string} name @param {number} column @returns {Index|null} */
  index(name, column) {
    const at = this.graph.entry(name, column);
    if (at < 0) return null;
    const place = this.graph.place(name);
    return place === null ? {} : { [place]: at };
  }

  /** Vector of a token; null: there is none. @param {string} name @param {number} column @returns {Float64Array|null} */
  vector(name, column) {
    const [numbers, index] = [this.tensor(name), this.index(name, column)];
    return numbers && index ? numbers.vector("width", index) : null;
  }

  /** The number of a vector at a token. @param {PlacedRow} placed @param {number} column @param {number} unit @returns {PickedNumber|null} */
  pickUnit({ row, stack }, column, unit) {
    const name = row.tensor;
    const [numbers, index] = [this.tensor(name), name ? this.index(name, column) : null];
    if (!name || !numbers || !index || unit < 0 || unit >= numbers.size("width")) return null;
    const whole = { ...index, width: unit };
    const token = row.form === "vector" ? "" : `“${stack.tokens[column]?.label ?? column}”, `;
    return { name, index: whole, value: numbers.at(whole), place: `${token}unit ${unit}`, mean: false };
  }

  /** A gate of a recurrent layer. @param {PlacedRow} placed @param {number} column @param {number} gate @param {number} unit @returns {PickedNumber|null} */
  pickGate({ row, stack }, column, gate, unit) {
    const gates = this.gates(row.node);
    const index = gates && this.index(gates.name, column);
    if (!gates || !index) return null;
    const whole = { ...index, gate, width: unit };
    const title = this.graph.trace.tokens(gates.name, "gate")?.[gate]?.label ?? `gate ${gate}`;
    const place = `“${stack.tokens[column]?.label ?? column}”, ${title} gate, unit ${unit}`;
    return { name: gates.name, index: whole, value: gates.numbers.at(whole), place, mean: false };
  }

  /** A weight of attention, mean of heads; without a key, the largest. @param {PlacedRow} placed @param {number} column @param {number|null} [key] @returns {PickedNumber|null} */
  pickWeight({ row, stack }, column, key = null) {
    const name = row.tensor;
    const weights = name && this.meanWeights(name);
    const query = name ? this.graph.entry(name, column) : -1;
    if (!name || !weights || query < 0) return null;
    const all = weights.vector("key", { query });
    const at = key ?? all.reduce((best, value, i) => (value > all[best] ? i : best), 0);
    const keys = this.graph.trace.tokens(name, "key");
    const place = `“${stack.tokens[column]?.label ?? column}” to “${keys?.[at]?.label ?? at}”`;
    const heads = this.tensor(name)?.size("head") ?? 1;
    const mean = heads > 1;
    return {
      name,
      index: { query, key: at, head: 0 },
      value: all[at],
      place: mean ? `${place}, mean of ${heads} heads` : place,
      mean,
    };
  }
}

/** A picked number in words. @param {string} title @param {PickedNumber} picked */
export function describePicked(title, picked) {
  return `${title}, ${picked.place}: ${formatNumber(picked.value)}`;
}
