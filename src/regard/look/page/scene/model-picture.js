// @ts-check
/** The picture of a model or of one of its layers, with the numbers under the pointer. */
import { svg } from "../core/dom.js";
import { band, queryLines, shorten } from "./draw-band.js";
import { cells, stateBox } from "./draw-cells.js";
import { columnLines, layerFrames, memoryLines, previousLines, residualLines, skipLines } from "./draw-links.js";
import { featureMaps, imageTiles, mapTiles, patchGrid } from "./draw-maps.js";
import { choiceAt, output } from "./draw-output.js";
import { spotlight } from "./draw-spotlight.js";
import { longStrip, strips, stripGap, unitAt } from "./draw-strips.js";
import { computedBefore } from "./frames.js";
import { middle, placeStacks } from "./layout.js";
import { RowValues } from "./row-values.js";
import { layerRows, modelRows } from "./rows.js";

/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("./layout.js").PlacedStack} PlacedStack */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/** @typedef {import("./row-values.js").PickedNumber} PickedNumber */
/** @typedef {import("./frames.js").Moment} Moment */
/** @typedef {{placed: PlacedRow, column: number, picked: PickedNumber|null}} Hit */

/** Most tokens whose text is written level. */
const MIN_TEXT = 24;

export class ModelPicture {
  /**
   * @param {ModelGraph} graph @param {string|null} layer one layer only
   * @param {{zoom: (to: string) => void}} actions
   */
  constructor(graph, layer, actions) {
    this.graph = graph;
    this.layer = layer;
    this.actions = actions;
    this.values = new RowValues(graph);
    this.plan = graph.stacks
      .map((stack) => ({ stack, rows: layer === null ? modelRows(graph, stack) : layerRows(graph, stack, layer) }))
      .filter(({ rows }) => rows.some(({ form, layer: own }) => form !== "tokens" && (layer === null || own === layer)))
      .map(({ stack, rows }) => ({ stack: rows.some(perToken) ? stack : { ...stack, tokens: [] }, rows }));
    this.width = 0;
    this.height = 0;
    /** @type {PlacedRow[]} */
    this.rows = [];
    this.overlay = svg("g", { class: "scene-overlay" });
    this.veil = svg("g", { class: "scene-veil" });
    this.spot = svg("g", { class: "scene-spot" });
    this.results = svg("g", {});
    /** @type {Map<PlacedRow, SVGElement>} */
    this.bands = new Map();
    /** @type {Set<number>|null} columns whose prediction is made; null: all */
    this.made = null;
  }

  async load() {
    await this.values.load(this.plan.flatMap(({ rows }) => rows));
  }

  /** Draws everything. @param {number} available width @returns {SVGElement} */
  draw(available) {
    this.layout = placeStacks(this.plan, available);
    ({ width: this.width, height: this.height } = this.layout);
    this.rows = this.layout.stacks.flatMap(({ rows }) => rows);
    this.bands.clear();
    const { stacks } = this.layout;
    const root = svg("svg", {
      class: "scene-picture",
      width: this.width,
      height: this.height,
      viewBox: `0 0 ${this.width} ${this.height}`,
      "aria-hidden": "true",
    });
    for (const stack of stacks) {
      root.append(
        this.ground(stack),
        layerFrames(this.graph, stack, this.layout.narrow, (layer) => this.actions.zoom(layer)),
        columnLines(stack),
      );
    }
    root.append(
      ...[memoryLines, residualLines, skipLines, previousLines].map((lines) =>
        lines(this.graph, /** @type {import("./layout.js").Layout} */ (this.layout)),
      ),
    );
    for (const placed of this.rows) root.append(this.drawRow(placed));
    root.append(this.results, this.veil, this.spot, this.overlay);
    return root;
  }

  /** Ground and title of a stack. @param {PlacedStack} stack */
  ground(stack) {
    const { x, y, width, height, title, side } = stack;
    return svg(
      "g",
      { class: "scene-stack" },
      svg("rect", { x, y, width, height, rx: 12 }),
      title ? svg("text", { x: x + 14, y: y + 22, class: `scene-name ${side}` }, title) : null,
    );
  }

  /** @param {PlacedRow} placed */
  drawRow(placed) {
    const { row } = placed;
    const group = svg("g", { class: `scene-row ${row.form}`, "data-node": row.node.id, "data-tensor": row.tensor });
    group.append(this.caption(placed));
    const drawn = this.drawForm(placed);
    if (drawn) group.append(drawn);
    return group;
  }

  /** Title of a row: at its left, or above it on a narrow page. @param {PlacedRow} placed */
  caption({ row, stack, x, y, height }) {
    const narrow = this.layout?.narrow;
    if (row.form === "output" && narrow) return svg("g", {});
    const arrow = row.form === "cells" ? (row.node.direction === "backward" ? " ←" : " →") : "";
    const title = `${row.title}${arrow}`;
    const place = narrow
      ? { x, y: row.form === "tokens" ? y - 2 : y - 4 }
      : { x: stack.x + 14, y: y + Math.min(height / 2, 40) + 4 };
    if (row.form === "tokens" && narrow) return svg("g", {});
    const kind = `scene-title ${row.node.kind}`;
    const text = svg(
      "text",
      { ...place, class: kind },
      narrow ? title : shorten(title, 21),
      svg("title", {}, `Open ${title}`),
    );
    text.addEventListener("click", () => this.actions.zoom(row.zoom));
    return text;
  }

  /** @param {PlacedRow} placed @returns {SVGElement|null} */
  drawForm(placed) {
    const { row } = placed;
    const { values, graph } = this;
    const name = row.tensor ?? "";
    const tensor = values.tensor(row.tensor);
    const vectors = (/** @type {number} */ column) => values.vector(name, column);
    if (row.form === "tokens") return this.tokens(placed);
    if (row.form === "output" || !tensor) return null;
    if (row.form === "strips") return strips(placed, vectors, values.top(name), "signed");
    if (row.form === "cells")
      return cells(placed, vectors, values.gates(row.node), (column) => graph.entry(name, column), values.top(name));
    if (row.form === "band") {
      const group = svg("g", { "data-done": "" });
      this.bands.set(placed, group);
      return group;
    }
    if (row.form === "maps") return featureMaps(tensor, placed);
    if (row.form === "image") return imageTiles(tensor, placed, null);
    if (row.form === "patches") return imageTiles(tensor, placed, patchGrid(graph.trace, row.node.tensor ?? ""));
    const only = tensor.vector(tensor.axes[tensor.axes.length - 1], {});
    return longStrip(
      { ...box(placed), width: Math.min(placed.width, 8 * only.length) },
      only,
      values.top(name),
      "signed",
    );
  }

  /** @param {PlacedRow} placed */
  tokens({ stack, y, height, row }) {
    const room = stack.cell / 7.2;
    const marks = stack.tokens.map((token, i) => {
      const x = middle(stack, i);
      if (stack.cell < MIN_TEXT && Array.from(token.label).length > room)
        return svg("circle", {
          cx: x,
          cy: y + height / 2,
          r: Math.min(3, stack.cell / 3),
          class: `scene-dot ${row.node.side}`,
        });
      return svg(
        "text",
        { x, y: y + height - 6, class: `scene-token ${stack.side}`, "text-anchor": "middle" },
        shorten(token.label, room),
        svg("title", {}, token.label),
      );
    });
    return svg("g", {}, ...marks);
  }

  /** Shows the prediction at a column; of a computation that goes on, those made so far. @param {number|null} column @param {Set<number>|null} [done] */
  showChoice(column, done = null) {
    const placed = this.rows.find(({ row }) => row.form === "output");
    const made = this.values.choices.filter((choice) => !done || done.has(Math.max(0, choice.column)));
    this.results.replaceChildren();
    if (placed) this.results.append(output(placed, made, choiceAt(made, column)));
  }

  /** What is at a point. @param {number} x @param {number} y @returns {Hit|null} */
  hit(x, y) {
    const placed = this.rows.find(
      (one) => y >= one.y - 3 && y <= one.y + one.height + 3 && x >= one.stack.x && x <= one.stack.x + one.stack.width,
    );
    if (!placed) return null;
    const { stack, row } = placed;
    const column = Math.floor((x - stack.left) / stack.cell);
    if (row.form === "maps") return { placed, column: -1, picked: this.pickMap(placed, x, y) };
    if (row.form === "vector") return { placed, column: -1, picked: this.pickVector(placed, x) };
    if (column < 0 || column >= stack.tokens.length) return { placed, column: -1, picked: null };
    return {
      placed,
      column,
      picked: this.pickAt(placed, column, x - stack.left - column * stack.cell - stripGap(stack.cell) / 2, y),
    };
  }

  /** @param {PlacedRow} placed @param {number} column @param {number} inside from the left of the strip @param {number} y @returns {PickedNumber|null} */
  pickAt(placed, column, inside, y) {
    const { row, stack } = placed;
    const size = this.values.tensor(row.tensor)?.size("width") ?? 1;
    const width = stack.cell - stripGap(stack.cell);
    if (row.form === "band") return this.values.pickWeight(placed, column);
    if (row.form === "strips")
      return this.values.pickUnit(placed, column, unitAt(inside, y - placed.y, width, placed.height, size));
    if (row.form !== "cells") return null;
    const gates = this.values.gates(row.node);
    const state = stateBox(placed, gates?.count ?? 0);
    const across = inside - (width - state.width) / 2;
    if (gates && y > state.y + state.height) {
      const rest = placed.y + placed.height - state.y - state.height - 4;
      const gate = Math.max(
        0,
        Math.min(gates.count - 1, Math.floor(((y - state.y - state.height - 2) / rest) * gates.count)),
      );
      return this.values.pickGate(placed, column, gate, unitAt(across, 0, state.width, 1, size));
    }
    return this.values.pickUnit(placed, column, unitAt(across, y - state.y, state.width, state.height, size));
  }

  /** @param {PlacedRow} placed @param {number} x @returns {PickedNumber|null} */
  pickVector(placed, x) {
    const size = this.values.tensor(placed.row.tensor)?.size("width") ?? 0;
    const width = Math.min(placed.width, 8 * size);
    return x < placed.x || x > placed.x + width
      ? null
      : this.values.pickUnit(placed, 0, Math.min(size - 1, Math.floor(((x - placed.x) / width) * size)));
  }

  /** @param {PlacedRow} placed @param {number} x @param {number} y @returns {PickedNumber|null} */
  pickMap(placed, x, y) {
    const name = placed.row.tensor ?? "";
    const maps = this.values.tensor(name);
    const tile = maps && mapTiles(maps, placed).find((one) => x >= one.x && x < one.x + one.width);
    if (!maps || !tile) return null;
    const row = Math.max(
      0,
      Math.min(maps.size("row") - 1, Math.floor(((y - tile.y) / tile.height) * maps.size("row"))),
    );
    const column = Math.min(maps.size("column") - 1, Math.floor(((x - tile.x) / tile.width) * maps.size("column")));
    const index = { channel: tile.channel, row, column };
    return {
      name,
      index,
      value: maps.at(index),
      place: `channel ${tile.channel}, row ${row}, column ${column}`,
      mean: false,
    };
  }

  /** The next token or row. @param {Hit|null} from @param {number} up @param {number} right @returns {Hit|null} */
  move(from, up, right) {
    const rows = this.rows.filter(({ row }) => row.form !== "tokens");
    if (!rows.length) return null;
    const at = from ? Math.max(0, Math.min(rows.length - 1, rows.indexOf(from.placed) + up)) : 0;
    const placed = rows[at];
    const column = Math.max(0, Math.min(placed.stack.tokens.length - 1, (from?.column ?? 0) + (from ? right : 0)));
    const size = this.values.tensor(placed.row.tensor)?.size("width") ?? 1;
    const picked =
      placed.row.form === "band"
        ? this.values.pickWeight(placed, column)
        : ["strips", "cells", "vector"].includes(placed.row.form)
          ? this.values.pickUnit(placed, column, Math.min(size - 1, 0))
          : null;
    return { placed, column, picked };
  }

  /** Lights a token: its column, and what it attends to. @param {Hit|null} hit */
  light(hit) {
    this.overlay.replaceChildren();
    if (!hit || hit.column < 0 || !this.layout) return;
    const { stack } = hit.placed;
    if (stack.rows.some(({ row }) => row.form === "output")) this.showChoice(hit.column, this.made);
    const [first, last] = [stack.rows[0], stack.rows[stack.rows.length - 1]];
    const top = last.row.form === "output" ? last.y + last.height - 20 : last.y;
    const x = stack.left + hit.column * stack.cell;
    this.overlay.append(
      svg("rect", {
        x,
        y: top,
        width: stack.cell,
        height: first.y + first.height - top,
        rx: 4,
        class: "scene-lit-column",
      }),
    );
    const { row } = hit.placed;
    const weights = row.form === "band" && row.tensor ? this.values.meanWeights(row.tensor) : null;
    const at = row.tensor ? this.graph.entry(row.tensor, hit.column) : -1;
    if (weights && at >= 0) this.overlay.append(queryLines(hit.placed, weights, hit.column, at));
  }

  /** Lights some parts, and a token in them; all else is dimmed. @param {string[]} ids none: nothing is dimmed @param {number|null} column */
  spotlight(ids, column) {
    const lit = this.rows.filter(({ row }) => ids.includes(row.node.id));
    this.spot.replaceChildren(...spotlight(lit, this.width, this.height));
    const first = lit.find(({ row }) => row.form === "band") ?? lit[0];
    this.light(first && column !== null ? { placed: first, column, picked: null } : null);
  }

  /** Shows the state at a moment; null: everything is computed. @param {Moment[]} all @param {number|null} now */
  showMoment(all, now) {
    const moment = now === null ? null : (all[now] ?? null);
    const done = computedBefore(all, moment ? (now ?? 0) + 1 : all.length);
    this.veil.replaceChildren();
    for (const placed of this.rows) this.cover(placed, done.get(placed) ?? new Set());
    this.made = null;
    if (!moment) return this.showChoice(null);
    this.veil.append(svg("rect", { ...litBox(moment), rx: 4, class: "scene-lit" }));
    const results = this.rows.find(({ row }) => row.form === "output");
    const made = (results && done.get(results)) ?? new Set();
    this.made = made;
    this.showChoice(made.size ? Math.max(...made) : null, made);
  }

  /** Covers what is not computed yet. @param {PlacedRow} placed @param {Set<number>} done */
  cover(placed, done) {
    const { stack, row } = placed;
    if (row.form === "band") return this.drawLines(placed, done);
    if (!["strips", "cells", "tokens"].includes(row.form)) {
      if (!done.size && row.form !== "output") this.veil.append(svg("rect", { ...box(placed), class: "scene-cover" }));
      return;
    }
    let start = -1;
    for (let i = 0; i <= stack.tokens.length; i++) {
      const hidden = i < stack.tokens.length && !done.has(i);
      if (hidden && start < 0) start = i;
      if (hidden || start < 0) continue;
      const place = { x: stack.left + start * stack.cell, y: placed.y - 1, width: (i - start) * stack.cell };
      this.veil.append(svg("rect", { ...place, height: placed.height + 2, class: "scene-cover" }));
      start = -1;
    }
  }

  /** Attention lines of the queries that are computed. @param {PlacedRow} placed @param {Set<number>} done */
  drawLines(placed, done) {
    const name = placed.row.tensor ?? "";
    const [weights, group] = [this.values.meanWeights(name), this.bands.get(placed)];
    if (!weights || !group || group.dataset.done === String(done.size)) return;
    group.dataset.done = String(done.size);
    const entry = (/** @type {number} */ column) => (done.has(column) ? this.graph.entry(name, column) : -1);
    group.replaceChildren(band(placed, weights, this.graph.trace.tokens(name, "key") ?? [], entry));
  }
}

/** @param {PlacedRow} placed */
function box({ x, y, width, height }) {
  return { x, y, width, height };
}

/** @param {Moment} moment */
function litBox({ placed, from, to }) {
  const { stack, row } = placed;
  if (!["strips", "cells", "tokens", "band"].includes(row.form))
    return { x: placed.x - 3, y: placed.y - 3, width: placed.width + 6, height: placed.height + 6 };
  const last = Math.min(to, stack.tokens.length);
  return {
    x: stack.left + from * stack.cell,
    y: placed.y - 3,
    width: (last - from) * stack.cell,
    height: placed.height + 6,
  };
}

/** Whether a row has a place for each token. @param {import("./rows.js").Row} row */
function perToken({ form, tensor, node }) {
  return (
    ["strips", "cells", "band", "tokens"].includes(form) ||
    (form === "output" && node.side === "target" && tensor !== null)
  );
}
