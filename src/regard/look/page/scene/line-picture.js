// @ts-check
/** A picture of vectors one below the other: long strips with a title, whose numbers can be pointed at. */
import { svg } from "../core/dom.js";
import { rgb, textColor } from "../core/color.js";
import { shorten } from "./draw-band.js";
import { colorTop, longStrip } from "./draw-strips.js";

/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("../core/types.js").Token} Token */
/** @typedef {import("../core/color.js").Ramp} Ramp */
/** @typedef {import("./row-values.js").PickedNumber} PickedNumber */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/**
 * @typedef {{row: {title: string, form: string, zoom: string, tensor: string|null}, box: Box, vector: Float64Array,
 *   axis: string, index: Index, where: string}} StripLine
 * A drawn vector: where it comes from, and its place in the tensor
 * @typedef {{placed: StripLine, column: number, picked: PickedNumber|null}} LineHit
 */

/** Widths of a number from which it is written, and with more digits. */
const [SHORT, LONG] = [26, 40];
export const LINE = 24;
export const TITLE = 17;
/** Widest number. */
const MAX_UNIT = 56;

export class LinePicture {
  /** @param {import("./model-graph.js").ModelGraph} graph @param {GraphNode} node @param {number} column selected token */
  constructor(graph, node, column) {
    this.graph = graph;
    this.node = node;
    this.stack = graph.stacks.find(({ nodes }) => nodes.includes(node)) ?? graph.stacks[0];
    this.column = Math.max(0, Math.min(this.stack.tokens.length - 1, column));
    /** @type {Map<string, import("../trace/tensor.js").Tensor>} */
    this.tensors = new Map();
    /** @type {StripLine[]} */
    this.rows = [];
    this.overlay = svg("g", { class: "scene-overlay" });
    this.width = 0;
  }

  /** @param {string[]} names */
  async loadTensors(names) {
    const known = [...new Set(names)].filter((name) => this.graph.has(name));
    const found = await Promise.all(known.map((name) => this.graph.trace.tensor(name)));
    known.forEach((name, i) => this.tensors.set(name, found[i]));
  }

  /** An empty picture of a height. @param {number} height */
  root(height) {
    return svg("svg", {
      class: "scene-picture",
      width: this.width,
      height: Math.ceil(height),
      viewBox: `0 0 ${this.width} ${Math.ceil(height)}`,
      "aria-hidden": "true",
    });
  }

  /**
   * A vector of a tensor as a strip at a place.
   * @param {SVGElement} root @param {string} title @param {string} name @param {Index} index @param {Box} place
   * @param {{ramp?: Ramp, axis?: string, where?: string, zoom?: string}} [options]
   */
  addStrip(root, title, name, index, place, options = {}) {
    const tensor = this.tensors.get(name);
    const axis = options.axis ?? "width";
    if (!tensor) return null;
    const vector = tensor.vector(axis, index);
    const ramp = options.ramp ?? "signed";
    const top = ramp === "weight" ? 1 : colorTop(tensor.data);
    const box = { ...place, width: Math.min(place.width, MAX_UNIT * vector.length) };
    const row = { title, form: "line", zoom: options.zoom ?? "", tensor: name };
    this.rows.push({ row, box, vector, axis, index, where: options.where ?? "" });
    root.append(longStrip(box, vector, top, ramp));
    if (box.width / vector.length >= SHORT) root.append(numbersInside(vector, box, top, ramp));
    return vector;
  }

  /** The tokens of the sequence, of which one is selected. @param {SVGElement} root @param {number} y @param {(column: number) => void} onpick */
  addTokens(root, y, onpick) {
    const { tokens, side } = this.stack;
    let x = 4;
    let line = y;
    tokens.forEach((token, i) => {
      const label = shorten(token.label, 18);
      const width = 14 + 8 * Array.from(label).length;
      if (x + width > this.width) [x, line] = [4, line + 28];
      const chosen = i === this.column;
      const group = svg(
        "g",
        { class: `scene-link scene-chip ${side}${chosen ? " picked" : ""}` },
        svg("rect", { x, y: line, width, height: 23, rx: 6 }),
        svg("text", { x: x + width / 2, y: line + 16, "text-anchor": "middle" }, label),
      );
      group.addEventListener("click", () => onpick(i));
      root.append(group);
      x += width + 4;
    });
    return line + 36;
  }

  /** @param {SVGElement} root @param {number} x @param {number} y @param {string} text @param {string} [kind] */
  addText(root, x, y, text, kind = "scene-title plain") {
    root.append(svg("text", { x, y, class: kind }, text));
  }

  /** @param {StripLine} line @param {number} unit @returns {PickedNumber} */
  pick(line, unit) {
    if (line.axis === "only")
      return { name: line.row.tensor ?? "", index: line.index, value: line.vector[0], place: line.where, mean: false };
    const index = { ...line.index, [line.axis]: unit };
    const unitName = line.axis === "width" ? `unit ${unit}` : `${line.axis} ${unit}`;
    const place = [line.where, unitName].filter(Boolean).join(", ");
    return { name: line.row.tensor ?? "", index, value: line.vector[unit], place, mean: false };
  }

  /** @param {number} x @param {number} y @returns {LineHit|null} */
  hit(x, y) {
    const inside = (/** @type {StripLine} */ { box }) =>
      y >= box.y && y <= box.y + box.height && x >= box.x && x < box.x + box.width;
    const line = this.rows.find(inside);
    if (!line) return null;
    const unit = Math.min(line.vector.length - 1, Math.floor(((x - line.box.x) / line.box.width) * line.vector.length));
    return { placed: line, column: unit, picked: this.pick(line, unit) };
  }

  /** Marks a unit in all vectors of its length. @param {LineHit|null} hit */
  light(hit) {
    this.overlay.replaceChildren();
    if (!hit) return;
    for (const { box, vector } of this.rows) {
      if (vector.length !== hit.placed.vector.length || box.width !== hit.placed.box.width) continue;
      const width = box.width / vector.length;
      const place = {
        x: box.x + hit.column * width - 1,
        y: box.y - 1,
        width: Math.max(3, width + 2),
        height: box.height + 2,
      };
      this.overlay.append(svg("rect", { ...place, class: "scene-lit-unit" }));
    }
  }

  /** The next number. @param {LineHit|null} from @param {number} up @param {number} right @returns {LineHit|null} */
  move(from, up, right) {
    if (!this.rows.length) return null;
    const at = from ? Math.max(0, Math.min(this.rows.length - 1, this.rows.indexOf(from.placed) - up)) : 0;
    const placed = this.rows[at];
    const column = Math.max(0, Math.min(placed.vector.length - 1, (from?.column ?? 0) + (from ? right : 0)));
    return { placed, column, picked: this.pick(placed, column) };
  }
}

/** Numbers written into a strip. @param {Float64Array} vector @param {Box} box @param {number} top @param {Ramp} ramp */
function numbersInside(vector, box, top, ramp) {
  const width = box.width / vector.length;
  const digits = width >= LONG ? 2 : 1;
  return svg(
    "g",
    { class: "scene-inside", "text-anchor": "middle" },
    ...Array.from(vector, (value, i) =>
      svg(
        "text",
        { x: box.x + (i + 0.5) * width, y: box.y + box.height / 2 + 3.5, fill: textColor(rgb(value, top, ramp)) },
        Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–",
      ),
    ),
  );
}
