// @ts-check
/** Moments of the computation, in its order: which row is computed, and at which tokens. */

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/** @typedef {{placed: PlacedRow, from: number, to: number, step: number|null}} Moment tokens from - to - 1 */

/** @param {ModelGraph} graph @param {Layout} layout @returns {Moment[]} */
export function moments(graph, layout) {
  const steps = graph.trace.header.steps.length;
  return layout.stacks.flatMap((stack) => {
    const count = Math.max(1, stack.tokens.length); // an image has no tokens
    if (stack.side === "source" || !steps) return stack.rows.flatMap((row) => pass(row, 0, count, null));
    return Array.from({ length: steps }, (_, step) => {
      const from = step ? graph.prompt + step : 0;
      const to = Math.min(count, graph.prompt + step + 1);
      const rows = stack.rows.filter(({ row }) => step === 0 || row.node.kind !== "bridge");
      return rows.flatMap((row) => pass(row, from, Math.max(from + 1, to), step));
    }).flat();
  });
}

/** One row: all tokens at once, or one after the other where a layer is recurrent. @param {PlacedRow} placed @param {number} from @param {number} to @param {number|null} step @returns {Moment[]} */
function pass(placed, from, to, step) {
  if (placed.row.form !== "cells") return [{ placed, from, to, step }];
  const columns = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
  if (placed.row.node.direction === "backward") columns.reverse();
  return columns.map((column) => ({ placed, from: column, to: column + 1, step }));
}

/** Tokens of each row that are computed before a moment. @param {Moment[]} all @param {number} now @returns {Map<PlacedRow, Set<number>>} */
export function computedBefore(all, now) {
  /** @type {Map<PlacedRow, Set<number>>} */
  const done = new Map();
  for (const { placed, from, to } of all.slice(0, now)) {
    const columns = done.get(placed) ?? new Set();
    for (let i = from; i < to; i++) columns.add(i);
    done.set(placed, columns);
  }
  return done;
}

/** A moment in words. @param {ModelGraph} graph @param {Moment} moment */
export function describeMoment(graph, { placed, from, to, step }) {
  const { row, stack } = placed;
  const where = row.layer ? `${graph.layerTitle(row.layer).toLowerCase()}, ` : "";
  const title = stack.title ? `${stack.title}, ` : "";
  const tokens = to - from === 1 ? `, “${stack.tokens[from]?.label ?? from}”` : "";
  return `${step === null ? "" : `Step ${step + 1}: `}${title}${where}${row.title.toLowerCase()}${tokens}`;
}
