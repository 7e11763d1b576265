// @ts-check
/** The picture of one attention head at one query: its query, each key, the products, scores and weights, and the values. */
import { svg } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { shorten } from "./draw-band.js";
import { LINE, LinePicture, TITLE } from "./line-picture.js";
import { own } from "./rows.js";

/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */

const KINDS = /** @type {const} */ (["queries", "keys", "products", "scores", "weights", "values", "context"]);
/** Keys that are drawn, the strongest. */
const MOST = 24;
const ROW = 25;

export class HeadPicture extends LinePicture {
  /** @param {ModelGraph} graph @param {GraphNode} node @param {number} head @param {number} column @param {{set: (changes: any) => void}} actions */
  constructor(graph, node, head, column, actions) {
    super(graph, node, column);
    this.actions = actions;
    const found = KINDS.map((kind) => [kind, own(graph, node, kind)]);
    /** @type {Record<typeof KINDS[number], string|null>} */
    this.names = Object.fromEntries(found);
    this.heads = this.names.weights ? this.size(this.names.weights, "head") : 1;
    this.head = Math.max(0, Math.min(this.heads - 1, head));
  }

  /** @param {string} name @param {string} axis */
  size(name, axis) {
    const { axes, shape } = this.graph.trace.describe(name);
    return axes.includes(axis) ? shape[axes.indexOf(axis)] : 1;
  }

  async load() {
    await this.loadTensors(Object.values(this.names).flatMap((name) => name ?? []));
  }

  /** Numbers of a kind at the selected query, one per key. @param {"products"|"scores"|"weights"} kind */
  perKey(kind) {
    const name = this.names[kind];
    const tensor = name ? this.tensors.get(name) : null;
    return tensor ? tensor.vector("key", { head: this.head, query: this.query }) : null;
  }

  get query() {
    return Math.max(0, this.graph.entry(this.names.weights ?? "", this.column));
  }

  /** @param {number} available @returns {SVGElement} */
  draw(available) {
    this.width = available;
    this.rows = [];
    const root = svg("g", {});
    let y = this.addTokens(root, 6, (position) => this.actions.set({ position }));
    const [head, query, label] = [this.head, this.query, this.stack.tokens[this.column]?.label ?? ""];
    if (this.names.queries)
      y = this.vector(root, y, `Query of “${label}”`, this.names.queries, { head, query }, "query");
    y = this.keyRows(root, y);
    if (this.names.context)
      y = this.vector(
        root,
        y,
        `Context of “${label}”: the values, weighted and added`,
        this.names.context,
        { head, query },
        "context",
      );
    const picture = this.root(y + 8);
    picture.append(
      svg("rect", { x: 0.5, y: 0.5, width: this.width - 1, height: y + 7, rx: 12, class: "scene-ground" }),
      root,
      this.overlay,
    );
    return picture;
  }

  /** @param {SVGElement} root @param {number} y @param {string} title @param {string} name @param {Record<string, number>} index @param {string} kind */
  vector(root, y, title, name, index, kind) {
    this.addText(root, 12, y + 12, title, `scene-title plain ${kind}`);
    this.addStrip(root, title, name, index, { x: 12, y: y + TITLE, width: this.width - 24, height: LINE }, {});
    return y + TITLE + LINE + 14;
  }

  /** A line per key. @param {SVGElement} root @param {number} y */
  keyRows(root, y) {
    const weights = this.perKey("weights");
    if (!weights) return y;
    const tokens = this.graph.trace.tokens(this.names.weights ?? "", "key") ?? [];
    const order = Array.from(weights.keys());
    const shown =
      order.length > MOST
        ? order
            .sort((a, b) => weights[b] - weights[a])
            .slice(0, MOST)
            .sort((a, b) => a - b)
        : order;
    const places = this.columns();
    for (const { x, title, kind } of places) this.addText(root, x, y + 12, title, `scene-title plain ${kind}`);
    shown.forEach((key, i) =>
      this.keyRow(root, y + 18 + i * ROW, key, tokens[key]?.label ?? String(key), weights, places),
    );
    const end = y + 18 + shown.length * ROW;
    if (shown.length < weights.length)
      this.addText(root, 12, end + 12, `and ${weights.length - shown.length} keys with smaller weights`);
    return end + (shown.length < weights.length ? 24 : 10);
  }

  /** Columns of the table that this head has. */
  columns() {
    const narrow = this.width < 620;
    const numbers = /** @type {const} */ (["products", "scores"]).filter(
      (kind) => this.names[kind] && !(narrow && kind === "products"),
    );
    const [label, number, bar] = narrow ? [62, 54, 62] : [110, 76, 150];
    const vectors = /** @type {const} */ (["keys", "values"]).filter((kind) => this.names[kind]);
    const room = this.width - 24 - label - number * numbers.length - bar;
    const wide = vectors.length ? room / vectors.length - 10 : 0;
    const titles = { keys: "key", products: "q · k", scores: "score", weights: "weight", values: "value" };
    let x = 12;
    const places = [{ name: "token", title: "token", kind: "", x, width: label }];
    x += label;
    for (const name of ["keys", "products", "scores", "weights", "values"]) {
      const isVector = name === "keys" || name === "values";
      if (!this.names[/** @type {typeof KINDS[number]} */ (name)] || (narrow && name === "products")) continue;
      const width = isVector ? wide : name === "weights" ? bar : number;
      const kind = { keys: "key", values: "value", weights: "weight" }[name] ?? "";
      places.push({ name, title: titles[/** @type {keyof typeof titles} */ (name)], kind, x, width });
      x += width + (isVector ? 10 : 0);
    }
    return places;
  }

  /** @param {SVGElement} root @param {number} y @param {number} key @param {string} label @param {Float64Array} weights @param {ReturnType<HeadPicture["columns"]>} places */
  keyRow(root, y, key, label, weights, places) {
    const { head } = this;
    for (const { name, x, width } of places) {
      const tensor = this.names[/** @type {typeof KINDS[number]} */ (name)];
      if (name === "token") this.addText(root, x, y + 15, shorten(label, width / 7.4), "scene-word strong");
      else if ((name === "keys" || name === "values") && tensor) {
        const place = { x, y: y + 2, width, height: ROW - 6 };
        this.addStrip(root, name === "keys" ? "Key" : "Value", tensor, { head, key }, place, { where: `“${label}”` });
      } else if (name === "weights") {
        const bar = Math.max(1, (width - 52) * weights[key]);
        root.append(svg("rect", { x, y: y + 5, width: bar, height: ROW - 12, rx: 2, class: "scene-bar" }));
        this.addText(root, x + bar + 4, y + 16, formatNumber(weights[key]), "scene-number");
        this.addCell(tensor ?? "", "Weight", key, label, { x, y, width, height: ROW });
      } else if (tensor) {
        const value = this.perKey(/** @type {"products"|"scores"} */ (name))?.[key] ?? NaN;
        this.addText(root, x, y + 16, formatNumber(value), "scene-number");
        this.addCell(tensor, name === "products" ? "Product" : "Score", key, label, { x, y, width, height: ROW });
      }
    }
  }

  /** A single number that can be pointed at. @param {string} name @param {string} title @param {number} key @param {string} label @param {{x: number, y: number, width: number, height: number}} box */
  addCell(name, title, key, label, box) {
    const tensor = this.tensors.get(name);
    if (!tensor) return;
    const index = { head: this.head, query: this.query, key };
    const vector = Float64Array.of(tensor.at(index));
    const row = { title, form: "line", zoom: "", tensor: name };
    this.rows.push({
      row,
      box,
      vector,
      axis: "only",
      index,
      where: `“${this.stack.tokens[this.column]?.label ?? ""}” to “${label}”`,
    });
  }
}
