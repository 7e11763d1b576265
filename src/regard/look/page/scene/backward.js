// @ts-check
/** The backward pass through recurrent layers: norms of the gradients of one loss, time step by time step backward. */
import { ApiError } from "../core/api-error.js";
import { svg } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { own } from "./rows.js";

/** @typedef {import("../core/types.js").Gradients} Gradients */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/** @typedef {{placed: PlacedRow, column: number, norm: number, loss: string}} BackwardMoment */

/** Range of the opacity of a cell, from the smallest gradient to the largest. */
const [FAINT, STRONG] = [0.12, 0.8];

/** Gradients of the states of each recurrent layer, by part; those that are not recorded are left out. @param {ModelGraph} graph @returns {Promise<Map<string, Gradients>>} */
export async function loadBackward(graph) {
  /** @type {Map<string, Gradients>} */
  const found = new Map();
  for (const node of graph.nodes.values()) {
    const name = node.kind === "recurrent" ? own(graph, node, "hidden") : null;
    try {
      if (name) found.set(node.id, await graph.trace.source.gradients(name));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
  return found;
}

/** From the last computed cell to the first, for the loss of the last token. @param {PlacedRow[]} rows @param {Map<string, Gradients>} gradients @returns {BackwardMoment[]} */
export function backwardMoments(rows, gradients) {
  return rows
    .filter(({ row }) => row.form === "cells" && gradients.has(row.node.id))
    .reverse()
    .flatMap((placed) => {
      const { norms, rows: losses } = /** @type {Gradients} */ (gradients.get(placed.row.node.id));
      const last = norms.length - 1;
      const columns = Array.from(norms[last]?.keys() ?? []).filter(
        (i) => norms[last][i] > 0 && i < placed.stack.tokens.length,
      );
      if (placed.row.node.direction !== "backward") columns.reverse();
      return columns.map((column) => ({ placed, column, norm: norms[last][column], loss: losses[last] }));
    });
}

/** A moment in words. @param {ModelGraph} graph @param {BackwardMoment} moment */
export function describeBackward(graph, { placed, column, norm, loss }) {
  const { stack, row } = placed;
  const where = [stack.title, row.layer ? graph.layerTitle(row.layer) : row.title].filter(Boolean).join(", ");
  return `Loss of “${loss}” back at “${stack.tokens[column]?.label ?? column}” (${where.toLowerCase()}): ${formatNumber(norm)}`;
}

/** Colors the cells that the gradient has reached, by the logarithm of its norm. @param {Element} layer @param {BackwardMoment[]} all @param {number|null} now null: all */
export function drawBackward(layer, all, now) {
  const logs = all.map(({ norm }) => Math.log(norm));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const until = now === null ? all.length : Math.min(all.length, now + 1);
  all.slice(0, until).forEach(({ placed, column }, i) => {
    const share = high > low ? (logs[i] - low) / (high - low) : 1;
    const { stack, y, height } = placed;
    const box = { x: stack.left + column * stack.cell + 1, y: y - 1, width: stack.cell - 2, height: height + 2, rx: 5 };
    const opacity = (FAINT + (STRONG - FAINT) * share).toFixed(3);
    layer.append(svg("rect", { ...box, class: "scene-gradient", "fill-opacity": opacity }));
    if (i === now) layer.append(svg("rect", { ...box, class: "scene-lit" }));
  });
}
