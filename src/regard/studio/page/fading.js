// @ts-check
/** How gradients fade with distance in several models, in one picture: the norm of dL/dh, the axis logarithmic. */
import { curves } from "./curves.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { differentiable } from "./gradients.js";
import { whenSeen } from "./patience.js";
import { Refused } from "./refused.js";
import { line, table } from "./table.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {{name: string, decay: import("./types.js").Decay}} Curve */

/** Nothing where no model has gradients; they are asked for once somebody is about to see them. @param {Trace[]} traces */
export function fading(traces) {
  const able = traces.filter((trace) => differentiable(trace).length);
  if (!able.length) return null;
  const body = h("div", {}, h("p", { class: "muted" }, "…"));
  const node = h("section", { class: "card fading" }, h("h2", {}, "How gradients fade with distance"), body);
  whenSeen(node, () => load(able).then((found) => replace(body, ...drawn(found))));
  return node;
}

/** @param {Trace[]} traces */
async function load(traces) {
  /** @type {Curve[]} */
  const found = [];
  /** @type {string[]} */
  const refused = [];
  for (const trace of traces) {
    const { name } = trace.header.model;
    try {
      found.push({ name, decay: (await trace.source.gradients(null)).decay });
    } catch (error) {
      refused.push(`${name}: ${error instanceof Refused ? error.message : String(error)}`);
    }
  }
  return { found: found.filter(({ decay }) => decay.norms.length), refused };
}

/** @param {{found: Curve[], refused: string[]}} loaded */
function drawn({ found, refused }) {
  const told = refused.map((text) => h("p", { class: "muted" }, text));
  if (!found.length) return [h("p", { class: "muted" }, "No model has a gradient here."), ...told];
  const distances = [...new Set(found.flatMap(({ decay }) => decay.distances))].sort((a, b) => a - b);
  const rows = found.map(({ decay }) => {
    const norms = new Map(decay.distances.map((distance, i) => [distance, decay.norms[i]]));
    return distances.map((distance) => norms.get(distance) ?? NaN);
  });
  const names = found.map(({ name }) => name);
  const labels = { model: names, distance: distances.map(String) };
  const rates = found.map(({ name, decay }) => line(word(name), [decay.rate === null ? "–" : shown(decay.rate)]));
  return [
    curves({ sign: "|dL/dh|", axes: ["model", "distance"], labels, data: rows, look: "log" }),
    table("What one step further back multiplies the gradient by", ["model", "per step"], rates),
    ...told,
  ];
}
