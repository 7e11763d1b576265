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

/** The row that shows the output of a part; the last one. @param {Layout} layout @param {string} id */
function rowOf(layout, id) {
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
    const label = isCross(reader.row)
      ? [
          ["K", "scene-k"],
          ["V", "scene-v"],
        ]
      : [];
    label.forEach(([text, kind], k) =>
      group.append(
        svg("text", { x: middleX - 8 + 11 * k, y: ends[i] - 6, class: kind, "text-anchor": "middle" }, text),
      ),
    );
  });
  return group;
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
      thin ? null : svg("text", { x: x + 9, y: top + 16, class: "scene-layer-title" }, graph.layerTitle(layer)),
      svg("title", {}, `Open ${graph.layerTitle(layer).toLowerCase()}`),
    );
    frame.addEventListener("click", () => onopen(layer));
    group.append(frame);
  }
  return group;
}
