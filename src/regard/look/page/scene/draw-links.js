// @ts-check
/** Lines between rows: columns of tokens, residual connections, and the keys and values that flow to cross-attention. */
import { svg } from "../core/dom.js";
import { LAYER_TITLE, isCross, middle } from "./layout.js";

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("./layout.js").PlacedStack} PlacedStack */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */

/** Forms with one place per token. */
const PER_TOKEN = ["tokens", "strips", "band", "cells"];

/** Distance of the lanes beside the strips in which lines run past other rows, and of the first one. */
const [LANE, FIRST_LANE, LANES] = [4, 7, 3];

/** What parts are called that are not drawn at this level. */
const HIDDEN = /** @type {Record<string, string>} */ ({ sum: "sum", norm: "norm" });

/** The row that shows the output of a part; the last one. @param {Layout} layout @param {string} id */
export function rowOf(layout, id) {
  for (const stack of layout.stacks) {
    const found = stack.rows.findLast(({ row }) => row.node.id === id);
    if (found) return found;
  }
  return null;
}

/** Vertical lines along which each token goes up. @param {PlacedStack} stack */
export function columnLines(stack) {
  const rows = stack.rows.filter(({ row }) => PER_TOKEN.includes(row.form));
  if (rows.length < 2) return svg("g", {});
  const [bottom, top] = [rows[0].y, rows[rows.length - 1].y];
  const d = stack.tokens.map((_, i) => `M${middle(stack, i).toFixed(1)} ${bottom}V${top}`).join("");
  return svg("path", { d, class: "scene-column" });
}

/** Residual connections at the left of the strips: past a sublayer to its sum. @param {ModelGraph} graph @param {Layout} layout */
export function residualLines(graph, layout) {
  const group = svg("g", { class: "scene-residual" });
  for (const { from, to, kind } of graph.edges) {
    if (kind !== "residual") continue;
    const [start, end] = [rowOf(layout, from), rowOf(layout, to)];
    if (!start || !end || start.stack !== end.stack || start.y <= end.y) continue;
    const x = start.stack.left;
    const [low, high] = [start.y + start.height / 2, end.y + end.height / 2];
    const bend = x - 16;
    group.append(
      svg("path", {
        d: `M${x} ${low}C${bend} ${low} ${bend} ${low} ${bend} ${low - 10}V${high + 10}Q${bend} ${high} ${x - 9} ${high}`,
      }),
      svg("circle", { cx: x - 5, cy: high, r: 5 }),
      svg("path", { d: `M${x - 8} ${high}h6M${x - 5} ${high - 3}v6` }),
    );
  }
  return group;
}

/**
 * Lines of values that go past other rows of their stack, such as an embedding that is read by two layers, or a start
 * state; at the right of the strips, so that residual connections have the left.
 * @param {ModelGraph} graph @param {Layout} layout
 */
export function skipLines(graph, layout) {
  const group = svg("g", { class: "scene-skip" });
  for (const stack of layout.stacks) {
    /** @type {number[]} end of the lines in each lane */
    const lanes = [];
    for (const { start, end, kind } of skips(graph, layout, stack)) {
      const lane = Math.min(LANES - 1, freeLane(lanes, start.y));
      lanes[lane] = end.y;
      const x = right(start);
      const out = Math.max(x, right(end)) + FIRST_LANE + lane * LANE;
      const [low, high] = [start.y + start.height * 0.35, end.y + end.height * 0.65];
      const to = right(end);
      group.append(
        svg("path", {
          d: `M${x} ${low}H${out}V${high}H${to}M${to + 4} ${high - 3}L${to} ${high}L${to + 4} ${high + 3}`,
          class: kind === "start" ? "start" : "flow",
        }),
      );
    }
  }
  return group;
}

/** Right end of what is drawn in a row. @param {PlacedRow} placed */
function right({ stack, row, x, width }) {
  return PER_TOKEN.includes(row.form) ? stack.left + stack.tokens.length * stack.cell - 2 : x + Math.min(width, 128);
}

/** The first lane that is free below a place. @param {number[]} lanes @param {number} y */
function freeLane(lanes, y) {
  const found = lanes.findIndex((end) => end >= y);
  return found < 0 ? lanes.length : found;
}

/** Edges between rows that do not follow each other, from the lowest. @param {ModelGraph} graph @param {Layout} layout @param {PlacedStack} stack */
function skips(graph, layout, stack) {
  const rows = stack.rows;
  return graph.edges
    .filter(({ kind }) => kind === "flow" || kind === "start")
    .flatMap(({ from, to, kind }) => {
      const [start, end] = [rowOf(layout, from), rowOf(layout, to)];
      if (!start || !end || start.stack !== stack || end.stack !== stack || end.row.form === "output") return [];
      const between = rows.indexOf(end) - rows.indexOf(start);
      return between > 1 && start.row.form !== "tokens" ? [{ start, end, kind }] : [];
    })
    .sort((a, b) => b.start.y - a.start.y || b.end.y - a.end.y);
}

/** From the state after a token to what reads it at the next one. @param {ModelGraph} graph @param {Layout} layout */
export function previousLines(graph, layout) {
  const group = svg("g", { class: "scene-previous" });
  for (const { from, to, kind } of graph.edges) {
    if (kind !== "previous") continue;
    const [state, reader] = [rowOf(layout, from), rowOf(layout, to)];
    if (!state || !reader || state.stack !== reader.stack || state.y >= reader.y) continue;
    const { stack } = state;
    const [top, bottom] = [state.y + state.height, reader.y + 2];
    const d = stack.tokens
      .slice(1)
      .map((_, i) => `M${middle(stack, i) + 5} ${top}L${middle(stack, i + 1) - 4} ${bottom}`)
      .join("");
    group.append(svg("path", { d }, svg("title", {}, "The state after the token before is the query")));
  }
  return group;
}

/** From the encoder's output to each row that reads it. @param {ModelGraph} graph @param {Layout} layout */
export function memoryLines(graph, layout) {
  const group = svg("g", { class: "scene-memory" });
  const [encoder, decoder] = layout.stacks;
  if (!decoder) return group;
  const starts = graph.edges.filter(({ kind }) => kind === "memory").map(({ from }) => rowOf(layout, from));
  const start = starts.filter((row) => row?.stack === encoder).sort((a, b) => (a?.y ?? 0) - (b?.y ?? 0))[0];
  const readers = decoder.rows.filter(({ row }) => graph.inputs(row.node.id).some(({ kind }) => kind === "memory"));
  if (!start || !readers.length) return group;
  const low = start.y + start.height / 2;
  const trunk = layout.narrow ? 9 : encoder.x + encoder.width + (decoder.x - encoder.x - encoder.width) / 2;
  const out = layout.narrow ? start.x : encoder.x + encoder.width - 6;
  const ends = readers.map((reader) => reader.y + reader.height / 2);
  const [top, bottom] = [Math.min(low, ...ends), Math.max(low, ...ends)];
  const to = (/** @type {PlacedRow} */ reader) => (layout.narrow ? reader.x - 4 : decoder.x + 2);
  group.append(svg("path", { d: `M${out} ${low}H${trunk}M${trunk} ${bottom}V${top}` }));
  readers.forEach((reader, i) => {
    const end = to(reader);
    group.append(
      svg("path", {
        d: `M${trunk} ${ends[i]}H${end}M${end - 5} ${ends[i] - 4}L${end} ${ends[i]}L${end - 5} ${ends[i] + 4}`,
      }),
    );
    if (layout.narrow) return;
    const middleX = (trunk + end) / 2;
    const label = memoryLabels(reader.row);
    label.forEach(([text, kind], k) =>
      group.append(
        svg("text", { x: middleX - 8 + 11 * k, y: ends[i] - 6, class: kind, "text-anchor": "middle" }, text),
      ),
    );
  });
  return group;
}

/** What flows to a row: keys and values, or the states themselves. @param {import("./rows.js").Row} row @returns {[string, string][]} */
function memoryLabels(row) {
  if (!isCross(row)) return [];
  if (!row.node.tensors.some((name) => name.endsWith(".keys"))) return [["h", "scene-h"]];
  return [
    ["K", "scene-k"],
    ["V", "scene-v"],
  ];
}

/** Frames around the layers of a stack, with their titles. @param {ModelGraph} graph @param {PlacedStack} stack @param {boolean} narrow @param {(layer: string) => void} onopen */
export function layerFrames(graph, stack, narrow, onopen) {
  const group = svg("g", {});
  const layers = [...new Set(stack.rows.map(({ row }) => row.layer ?? ""))].filter(Boolean);
  for (const layer of layers) {
    const rows = stack.rows.filter(({ row }) => row.layer === layer);
    const thin = rows.every(({ row }) => row.thin);
    const edge = thin ? 4 : 9;
    const top = Math.min(...rows.map(({ y }) => y)) - edge - (thin ? 0 : LAYER_TITLE) - (narrow ? 15 : 0);
    const bottom = Math.max(...rows.map(({ y, height }) => y + height)) + edge;
    const x = stack.x + 5;
    const frame = svg(
      "g",
      { class: "scene-layer", "data-layer": layer },
      svg("rect", { x, y: top, width: stack.width - 10, height: bottom - top, rx: 8 }),
      thin ? null : layerTitle(graph, stack, layer, x + 9, top + 16),
      svg("title", {}, `Open ${graph.layerTitle(layer).toLowerCase()}`),
    );
    frame.addEventListener("click", () => onopen(layer));
    group.append(frame);
  }
  return group;
}

/** Title of a layer, and how many of its parts only its own level shows. @param {ModelGraph} graph @param {PlacedStack} stack @param {string} layer @param {number} x @param {number} y */
function layerTitle(graph, stack, layer, x, y) {
  const drawn = new Set(stack.rows.map(({ row }) => row.node.id));
  const hidden = [...graph.nodes.values()].filter((node) => node.layer === layer && !drawn.has(node.id));
  const names = hidden.map(({ kind }) => HIDDEN[kind] ?? "part");
  const more = [...new Set(names)].map((name) => {
    const count = names.filter((other) => other === name).length;
    return `${count} ${name}${count === 1 ? "" : "s"}`;
  });
  return svg(
    "text",
    { x, y, class: "scene-layer-title" },
    graph.layerTitle(layer),
    more.length ? svg("tspan", { dx: 8, class: "scene-more" }, `open for ${more.join(", ")}`) : null,
  );
}
