// @ts-check
/** Attention as lines from the keys at the bottom to the queries at the top, as dark and thick as their weights. */
import { svg } from "../core/dom.js";
import { isCross, middle } from "./layout.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("../core/types.js").Token} Token */

/** Steps of opacity; lines of one step are one path. */
const STEPS = 12;
/** Weights below this one, and below most of a uniform one, are not drawn; and at most so many lines per band. */
const [LEAST, MOST, FEW] = [0.04, 700, 60];
const SAMPLED = 20_011;
/** Width of a source token from which it is written. */
const MIN_LABEL = 26;

/** Middle of a key's place at the bottom of a band. @param {PlacedRow} placed @param {number} key @param {number} keys */
export function keyX(placed, key, keys) {
  if (!isCross(placed.row)) return middle(placed.stack, key);
  return placed.x + (key + 0.5) * Math.min(placed.stack.cell * 1.6, placed.width / Math.max(1, keys));
}

/** Bottom and top of the lines. @param {PlacedRow} placed @returns {[number, number]} */
function ends(placed) {
  return [placed.y + placed.height - (isCross(placed.row) ? 18 : 3), placed.y + 3];
}

/** @param {PlacedRow} placed @param {number} key @param {number} keys @param {number} query */
function line(placed, key, keys, query) {
  const [bottom, top] = ends(placed);
  const [from, to] = [keyX(placed, key, keys), middle(placed.stack, query)];
  const bend = (bottom - top) * 0.55;
  return `M${from.toFixed(1)} ${bottom}C${from.toFixed(1)} ${bottom - bend} ${to.toFixed(1)} ${top + bend} ${to.toFixed(1)} ${top}`;
}

/**
 * All lines of a band, mean of heads or one head.
 * @param {PlacedRow} placed @param {Tensor} weights (query, key) @param {Token[]} keys @param {(column: number) => number} entry
 */
export function band(placed, weights, keys, entry) {
  const lines = strongest(placed, weights, entry);
  const group = svg("g", { class: "scene-lines" });
  const light = Math.min(1, Math.sqrt(FEW / Math.max(1, lines.length))); // many lines lie on each other
  for (let step = 1; step <= STEPS; step++) {
    const d = lines
      .filter(({ weight }) => Math.min(STEPS, Math.max(1, Math.ceil(weight * STEPS))) === step)
      .map(({ key, query }) => line(placed, key, weights.size("key"), query))
      .join("");
    if (!d) continue;
    const share = step / STEPS;
    group.append(
      svg("path", {
        d,
        "stroke-opacity": (0.95 * share + (0.1 - 0.1 * share) * light).toFixed(3),
        "stroke-width": (0.5 + 3.2 * share).toFixed(2),
      }),
    );
  }
  if (isCross(placed.row)) group.append(keyLabels(placed, keys));
  return group;
}

/** Lines with the largest weights. @param {PlacedRow} placed @param {Tensor} weights @param {(column: number) => number} entry */
function strongest(placed, weights, entry) {
  const [keys, down, right] = [weights.size("key"), weights.stride("query"), weights.stride("key")];
  const rows = placed.stack.tokens.map((_, query) => entry(query));
  const least = Math.max(Math.min(LEAST, 0.9 / keys), cutoff(weights, rows));
  const lines = [];
  for (let query = 0; query < rows.length; query++) {
    if (rows[query] < 0) continue;
    for (let key = 0; key < keys; key++) {
      const weight = weights.data[rows[query] * down + key * right];
      if (weight >= least) lines.push({ query, key, weight });
    }
  }
  return lines.length <= MOST ? lines : lines.sort((a, b) => b.weight - a.weight).slice(0, MOST);
}

/** A weight that about as many weights exceed as there may be lines, by a sample; 0: all may be drawn. @param {Tensor} weights @param {number[]} rows */
function cutoff(weights, rows) {
  const [keys, down, right] = [weights.size("key"), weights.stride("query"), weights.stride("key")];
  const count = rows.length * keys;
  if (count <= 4 * MOST) return 0;
  const step = Math.max(1, Math.floor(count / SAMPLED));
  const sample = [];
  for (let i = 0; i < count; i += step) {
    const row = rows[Math.floor(i / keys)];
    if (row >= 0) sample.push(weights.data[row * down + (i % keys) * right]);
  }
  const sorted = Float32Array.from(sample).sort();
  return sorted[Math.max(0, sorted.length - Math.ceil((1.5 * MOST) / step) - 1)] ?? 0;
}

/** Lines of one query only, with all their weights. @param {PlacedRow} placed @param {Tensor} weights @param {number} query @param {number} row */
export function queryLines(placed, weights, query, row) {
  const all = weights.vector("key", { query: row });
  const paths = Array.from(all, (weight, key) =>
    weight < 0.01
      ? null
      : svg("path", {
          d: line(placed, key, all.length, query),
          "stroke-opacity": Math.min(1, 0.2 + weight).toFixed(2),
          "stroke-width": (0.8 + 4 * weight).toFixed(2),
        }),
  );
  return svg("g", { class: "scene-lines picked" }, ...paths);
}

/** The source's tokens below cross-attention. @param {PlacedRow} placed @param {Token[]} keys */
function keyLabels(placed, keys) {
  const step = keys.length > 1 ? keyX(placed, 1, keys.length) - keyX(placed, 0, keys.length) : placed.width;
  const y = placed.y + placed.height - 3;
  const marks = keys.map((token, key) => {
    const x = keyX(placed, key, keys.length);
    if (step < MIN_LABEL) return svg("circle", { cx: x, cy: y - 6, r: Math.min(2.5, step / 3), class: "scene-key" });
    return svg("text", { x, y, class: "scene-key-label", "text-anchor": "middle" }, shorten(token.label, step / 6.2));
  });
  return svg("g", {}, ...marks);
}

/** A label with at most so many characters. @param {string} label @param {number} most */
export function shorten(label, most) {
  const letters = Array.from(label);
  return letters.length <= Math.max(1, most)
    ? label
    : `${letters.slice(0, Math.max(1, Math.floor(most) - 1)).join("")}…`;
}
