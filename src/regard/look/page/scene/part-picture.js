// @ts-check
/** The picture of one part at one token: what it reads, what is inside, and what it gives; of attention all its heads. */
import { svg } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { band } from "./draw-band.js";
import { describeMaps, featureMaps, imageTiles, patchGrid } from "./draw-maps.js";
import { bars, choiceAt, loadChoices } from "./draw-output.js";
import { LINE, LinePicture, TITLE } from "./line-picture.js";
import { own } from "./rows.js";

/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {{title: string, name: string, index: Index, where: string, sign: string}} Operand */

/** What the tensors of a part are, by the last part of their names. */
const TITLES = /** @type {Record<string, string>} */ ({
  embedding: "embedding",
  scaled_embedding: "times the root of its width",
  preactivations: "hidden units before the activation function",
  linear: "what the gate multiplies",
  activations: "hidden units after the activation function",
  output: "output",
  cell: "cell state",
  hidden: "hidden state",
  candidate: "candidate",
  normalized: "after",
  start: "initial state",
  start_cell: "initial cell state",
});
/** What a part calls its input. */
const INPUT = /** @type {Record<string, string>} */ ({
  norm: "before",
  "self-attention": "input",
  "cross-attention": "input of the queries",
});
/** Least width of a head's tile. */
const TILE = 190;

export class PartPicture extends LinePicture {
  /** @param {ModelGraph} graph @param {GraphNode} node @param {number} column @param {{zoom: (to: string) => void, set: (changes: any) => void}} actions */
  constructor(graph, node, column, actions) {
    super(graph, node, column);
    this.actions = actions;
    this.weights = node.kind.endsWith("attention") ? own(graph, node, "weights") : null;
    /** @type {import("./draw-output.js").Choice[]} */
    this.choices = [];
    this.isMap = !!node.tensor && graph.has(node.tensor) && graph.trace.describe(node.tensor).axes.includes("channel");
  }

  /** Number of heads; 0: not attention. */
  get heads() {
    if (!this.weights) return 0;
    const { axes, shape } = this.graph.trace.describe(this.weights);
    return axes.includes("head") ? shape[axes.indexOf("head")] : 1;
  }

  async load() {
    const names = this.operands().map(({ name }) => name);
    await this.loadTensors([
      ...names,
      ...(this.weights ? [this.weights] : []),
      ...(this.isMap && this.node.tensor ? [this.mapTensor] : []),
    ]);
    if (this.node.kind === "output") this.choices = await loadChoices(this.graph);
  }

  /** What is drawn of images and feature maps: the patches of an image where they are in it. */
  get mapTensor() {
    return this.node.kind === "patches" && this.graph.has("pixels") ? "pixels" : (this.node.tensor ?? "");
  }

  /** Vectors of this part at the selected token, in the order of computation. @returns {Operand[]} */
  operands() {
    const { node, graph } = this;
    if (this.isMap) return [];
    const inputs = graph.inputs(node.id).flatMap(({ from, kind }, i) => {
      const other = /** @type {GraphNode} */ (graph.nodes.get(from));
      const back = kind === "previous" ? -1 : 0;
      const same = other.side === node.side || node.kind === "output";
      const first = node.direction === "backward" ? this.stack.tokens.length - 1 : 0;
      if (kind === "start" && this.column !== first) return [];
      if (!other.tensor || kind === "memory" || !same || !graph.has(other.tensor)) return [];
      const title =
        kind === "residual"
          ? `${other.title}, past the sublayer`
          : kind === "previous"
            ? `${other.title}, step before`
            : `${INPUT[node.kind] ?? "input"}: ${other.title.toLowerCase()}`;
      return this.entry(other.tensor, title, back, node.kind === "sum" && i ? "+" : "");
    });
    const before = node.kind === "recurrent" ? this.previousState() : [];
    const inside = node.kind === "output" ? [] : node.tensors.flatMap((name) => this.inner(name));
    return [...inputs, ...before, ...inside];
  }

  /** @param {string} name @param {string} title @param {number} shift @param {string} sign @returns {Operand[]} */
  entry(name, title, shift, sign) {
    const { graph } = this;
    const { axes, shape } = graph.trace.describe(name);
    const at = graph.entry(name, this.column + shift);
    const place = graph.place(name);
    const others = axes.filter((axis, i) => axis !== "width" && axis !== place && shape[i] > 1);
    if (at < 0 || !axes.includes("width") || others.length) return [];
    const where = place === null ? "" : `“${this.stack.tokens[this.column + shift]?.label ?? ""}”`;
    return [{ title, name, index: place === null ? {} : { [place]: at }, where, sign }];
  }

  /** State of a recurrent layer after the token read before. @returns {Operand[]} */
  previousState() {
    const { node, graph } = this;
    const by = node.direction === "backward" ? 1 : -1;
    const [hidden, start] = [own(graph, node, "hidden"), own(graph, node, "start")];
    const found = hidden ? this.entry(hidden, "state before", by, "") : [];
    if (found.length || !start) return found;
    return this.entry(start, "initial state", 0, "");
  }

  /** A tensor of the part itself: one vector, or one per gate. @param {string} name @returns {Operand[]} */
  inner(name) {
    const { graph, node } = this;
    const last = name.split(".").pop() ?? name;
    if (!graph.has(name) || (node.kind.endsWith("attention") && last !== "output")) return [];
    if (last.startsWith("start")) return [];
    const { axes } = graph.trace.describe(name);
    const sign = node.kind === "sum" && name === node.tensor ? "=" : "";
    if (!axes.includes("gate"))
      return name === node.tensor || TITLES[last] ? this.entry(name, TITLES[last] ?? node.title, 0, sign) : [];
    const at = graph.entry(name, this.column);
    if (at < 0) return [];
    const where = `“${this.stack.tokens[this.column]?.label ?? ""}”`;
    const gates = graph.trace.tokens(name, "gate") ?? [];
    return gates.map(({ label }, gate) => ({
      title: label === "candidate" ? label : `${label} gate`,
      name,
      index: { position: at, gate },
      where,
      sign: "",
    }));
  }

  /** @param {number} available @returns {SVGElement} */
  draw(available) {
    this.width = available;
    this.rows = [];
    const lines = this.operands();
    const root = svg("g", {});
    const perToken =
      !this.isMap &&
      (this.weights || this.node.kind === "output" || lines.some(({ index }) => Object.keys(index).length));
    let y =
      perToken && this.stack.tokens.length > 1
        ? this.addTokens(root, 6, (column) => this.actions.set({ position: column }))
        : 8;
    if (this.weights) y = this.addHeads(root, y);
    if (this.isMap) y = this.maps(root, y);
    for (const line of lines) y = this.line(root, line, y);
    if (this.node.kind === "output") y = this.candidates(root, y);
    if (this.node.kind === "norm") y = this.statistics(root, lines, y);
    const picture = this.root(y + 8);
    picture.append(
      svg("rect", { x: 0.5, y: 0.5, width: this.width - 1, height: y + 7, rx: 12, class: "scene-ground" }),
      root,
      this.overlay,
    );
    return picture;
  }

  /** @param {SVGElement} root @param {Operand} line @param {number} y */
  line(root, { title, name, index, where, sign }, y) {
    const left = 34;
    if (sign) this.addText(root, 12, y + TITLE + LINE - 7, sign, "scene-sign");
    this.addText(root, left, y + 12, where ? `${title}, ${where}` : title);
    const axis = this.graph.trace.describe(name).axes.includes("width")
      ? "width"
      : (this.graph.trace.describe(name).axes.at(-1) ?? "width");
    this.addStrip(
      root,
      title,
      name,
      index,
      { x: left, y: y + TITLE, width: this.width - left - 12, height: LINE },
      { where, axis, ramp: index.gate !== undefined && !title.startsWith("cand") ? "weight" : "signed" },
    );
    return y + TITLE + LINE + 12;
  }

  /** Mean and deviation of what a norm reads. @param {SVGElement} root @param {Operand[]} lines @param {number} y */
  statistics(root, lines, y) {
    const texts = lines.map(({ name, index, title }) => {
      const vector = this.tensors.get(name)?.vector("width", index) ?? new Float64Array();
      const mean = vector.reduce((a, b) => a + b, 0) / vector.length;
      const deviation = Math.sqrt(vector.reduce((sum, value) => sum + (value - mean) ** 2, 0) / vector.length);
      return `${title}: mean ${formatNumber(mean)}, deviation ${formatNumber(deviation)}`;
    });
    texts.forEach((text, i) => this.addText(root, 34, y + 12 + 18 * i, text, "scene-word"));
    return y + 18 * texts.length + 8;
  }

  /** All heads as small pictures of lines. @param {SVGElement} root @param {number} y */
  addHeads(root, y) {
    const { weights } = this;
    const numbers = this.tensors.get(weights ?? "");
    if (!numbers || !weights) return y;
    const count = this.heads;
    const across = Math.max(1, Math.min(count, Math.floor((this.width - 12) / TILE)));
    const width = (this.width - 12) / across;
    const height = count === 1 ? 200 : 118;
    for (let head = 0; head < count; head++) {
      const [x, top] = [8 + (head % across) * width, y + Math.floor(head / across) * (height + 30)];
      root.append(this.headTile(numbers, head, { x, y: top, width: width - 8, height }));
    }
    return y + Math.ceil(count / across) * (height + 30) + 4;
  }

  /** @param {import("../trace/tensor.js").Tensor} numbers @param {number} head @param {{x: number, y: number, width: number, height: number}} place */
  headTile(numbers, head, place) {
    const { graph, node, stack, weights } = this;
    const cell = (place.width - 12) / Math.max(1, stack.tokens.length);
    const name = weights ?? "";
    const small = {
      ...stack,
      x: place.x,
      y: place.y,
      width: place.width,
      height: place.height,
      left: place.x + 6,
      cell,
      rows: [],
    };
    const row = {
      node,
      form: /** @type {const} */ ("band"),
      tensor: name,
      title: node.title,
      height: place.height,
      layer: null,
      zoom: node.id,
    };
    /** @type {PlacedRow} */
    const placed = {
      row,
      stack: small,
      x: place.x + 6,
      y: place.y + 22,
      width: place.width - 12,
      height: place.height - 4,
    };
    const own = numbers.axes.includes("head") ? numbers.slice(`head:${head}`) : numbers;
    const group = svg(
      "g",
      { class: "scene-link scene-tile", "data-head": head },
      svg("rect", { ...place, height: place.height + 24, rx: 8 }),
      svg(
        "text",
        { x: place.x + 8, y: place.y + 15, class: "scene-title" },
        numbers.size("head") > 1 ? `Head ${head}` : "Open",
      ),
      band(placed, own, graph.trace.tokens(name, "key") ?? [], (column) => graph.entry(name, column)),
    );
    group.addEventListener("click", () => this.actions.set({ head }));
    return group;
  }

  /** Feature maps, all that fit. @param {SVGElement} root @param {number} y */
  maps(root, y) {
    const tensor = this.tensors.get(this.mapTensor);
    if (!tensor) return y;
    const size = this.width < 600 ? 84 : 132;
    const box = { x: 12, y: y + 22, width: this.width - 24, height: size };
    const grid = this.mapTensor === "pixels" ? patchGrid(this.graph.trace, this.node.tensor ?? "") : null;
    const what = grid ? `${grid.rows} × ${grid.columns}, read row by row` : describeMaps(tensor, box);
    this.addText(root, 12, y + 12, `${this.node.title}: ${what}`);
    root.append(grid ? imageTiles(tensor, box, grid) : featureMaps(tensor, box));
    return y + size + 34;
  }

  /** Candidates of the selected token. @param {SVGElement} root @param {number} y */
  candidates(root, y) {
    const choice = choiceAt(this.choices, this.column);
    if (choice) root.append(bars(choice, 16, y, this.width - 32, 232, 10));
    return y + 240;
  }
}
