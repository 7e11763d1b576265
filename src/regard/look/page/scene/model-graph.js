// @ts-check
/** The graph of a recorded model: its parts, the stacks that they form, and the tokens along them. */
import { FORECAST } from "../core/route.js";
import { promptLength } from "../trace/predictions.js";

/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("../core/types.js").GraphEdge} GraphEdge */
/** @typedef {import("../core/types.js").Token} Token */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {{name: string, title: string, side: "source"|"target", nodes: GraphNode[], tokens: Token[]}} Stack */

/** Axes along which a tensor has one entry per token, and the one along which a vector runs. */
const PLACES = ["position", "query", "step"];

export class ModelGraph {
  /** @param {Trace} trace with a graph in its header */
  constructor(trace) {
    const graph = trace.header.graph ?? { nodes: [], edges: [] };
    this.trace = trace;
    const isPair = new Set(graph.nodes.map(({ stack }) => stack).filter(Boolean)).size > 1;
    const nodes = graph.nodes.map((node) => ({ ...node, title: this.title(node, isPair) }));
    /** @type {Map<string, GraphNode>} */
    this.nodes = new Map(nodes.map((node) => [node.id, node]));
    this.edges = graph.edges.filter(({ from, to }) => this.nodes.has(from) && this.nodes.has(to));
    this.prompt = promptLength(trace);
    this.stacks = this.findStacks(nodes);
  }

  /** Title of a part, by what the model reads. @param {GraphNode} node @param {boolean} isPair */
  title({ kind, title, tensor }, isPair) {
    if (kind === "tokens" && !isPair)
      return this.trace.header.kind === FORECAST ? "Rows of the series" : "Input tokens";
    const isClip = kind === "image" && tensor && this.has(tensor) && this.trace.describe(tensor).axes.includes("frame");
    return isClip ? "First frame" : title;
  }

  /** Encoder and decoder, or one stack; what has none of its own stands on top of the last. @param {GraphNode[]} nodes */
  findStacks(nodes) {
    const names = [...new Set(nodes.map(({ stack }) => stack))].filter(Boolean);
    if (!names.length) names.push("");
    names.sort((a, b) => rank(a, nodes) - rank(b, nodes));
    const last = names[names.length - 1];
    return names.map((name) => {
      const own = nodes.filter((node) => node.stack === name || (!node.stack && name === last));
      const side = own.find((node) => node.kind !== "bridge")?.side ?? "source";
      const tokens = own.filter((node) => node.kind === "tokens");
      const rest = own.filter((node) => node.kind !== "tokens");
      const title = names.length > 1 ? capitalize(name) : "";
      const read = this.tokens(side);
      return { name, title, side, nodes: [...tokens, ...rest], tokens: read.length ? read : this.numbered(own) };
    });
  }

  /** What is read along a side. @param {"source"|"target"} side @returns {Token[]} */
  tokens(side) {
    const { sequences } = this.trace.header;
    return (side === "source" ? sequences.source : (sequences.read ?? sequences.target)) ?? [];
  }

  /** Numbers in place of tokens, as of the parts of a series. @param {GraphNode[]} nodes @returns {Token[]} */
  numbered(nodes) {
    const sizes = nodes.map(({ tensor }) => {
      if (!tensor || !this.has(tensor)) return 0;
      const { axes, shape } = this.trace.describe(tensor);
      return axes.includes("position") ? shape[axes.indexOf("position")] : 0;
    });
    const count = Math.max(0, ...sizes);
    const numbers = Array.from({ length: count }, (_, i) => ({ token: String(i + 1), label: String(i + 1) }));
    return this.trace.seriesRows(count) ?? numbers;
  }

  /** Edges into a node. @param {string} id */
  inputs(id) {
    return this.edges.filter(({ to }) => to === id);
  }

  /** Layers of a stack, from the first to the last. @param {Stack} stack @returns {string[]} */
  layers(stack) {
    return [...new Set(stack.nodes.map(({ layer }) => layer ?? ""))].filter(Boolean);
  }

  /** Whether a tensor is in this trace; a single file may leave large ones out. @param {string|undefined} name */
  has(name) {
    return name !== undefined && this.trace.has(name);
  }

  /** The axis of a tensor that runs over tokens; null: it has one entry for all. @param {string} name */
  place(name) {
    return this.trace.describe(name).axes.find((axis) => PLACES.includes(axis)) ?? null;
  }

  /** Number of a token's entry in a tensor, -1 if it has none. @param {string} name @param {number} column */
  entry(name, column) {
    const place = this.place(name);
    if (place === null) return 0;
    const { axes, shape } = this.trace.describe(name);
    const size = shape[axes.indexOf(place)];
    const at = place === "step" ? column - this.prompt : column;
    return at >= 0 && at < size ? at : -1;
  }

  /** Title of a layer, such as "Layer 0". @param {string} layer */
  layerTitle(layer) {
    const numbers = layer.match(/\d+(?:\.\d+)*$/)?.[0];
    if (numbers === undefined) return layer.endsWith(".first") ? "First layer" : "Layer";
    return `${layer.includes("stages") ? "Stage" : "Layer"} ${numbers}`;
  }

  /** The layer or part of an address; null: there is none. @param {string|null} at */
  find(at) {
    if (at === null) return null;
    const node = this.nodes.get(at);
    if (node) return { layer: node.layer ?? null, node };
    return [...this.nodes.values()].some(({ layer }) => layer === at) ? { layer: at, node: null } : null;
  }
}

/** Encoders first. @param {string} name @param {GraphNode[]} nodes */
function rank(name, nodes) {
  return nodes.find(({ stack, kind }) => stack === name && kind !== "bridge")?.side === "source" ? 0 : 1;
}

/** @param {string} text */
function capitalize(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
