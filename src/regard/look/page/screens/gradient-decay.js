// @ts-check
/** Gradient decay with distance for several models: the norm of dL/dh on a logarithmic axis. */
import { ApiError } from "../core/api-error.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { onVisible } from "../core/schedule.js";
import { gradientTensors } from "../tabs/gradients.js";
import { curves } from "../widgets/chart.js";
import { table, tableRow } from "../widgets/table.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {{name: string, decay: import("../core/types.js").Decay}} ModelDecay */

/** Null if no model has gradients; they are computed once the card becomes visible. @param {Trace[]} traces */
export function gradientDecay(traces) {
  const usable = traces.filter((trace) => gradientTensors(trace).length);
  if (!usable.length) return null;
  const body = h("div", {}, h("p", { class: "muted" }, "…"));
  const node = h("section", { class: "card gradient-decay" }, h("h2", {}, "Gradient decay with distance"), body);
  onVisible(node, () => load(usable).then((loaded) => replace(body, ...content(loaded))));
  return node;
}

/** @param {Trace[]} traces */
async function load(traces) {
  /** @type {ModelDecay[]} */
  const decays = [];
  /** @type {string[]} */
  const errors = [];
  for (const trace of traces) {
    const { name } = trace.header.model;
    try {
      decays.push({ name, decay: (await trace.source.gradients(null)).decay });
    } catch (error) {
      errors.push(`${name}: ${error instanceof ApiError ? error.message : String(error)}`);
    }
  }
  return { decays: decays.filter(({ decay }) => decay.norms.length), errors };
}

/** @param {{decays: ModelDecay[], errors: string[]}} loaded */
function content({ decays, errors }) {
  const messages = errors.map((text) => h("p", { class: "muted" }, text));
  if (!decays.length) return [h("p", { class: "muted" }, "No model has gradients for this sentence."), ...messages];
  const distances = [...new Set(decays.flatMap(({ decay }) => decay.distances))].sort((a, b) => a - b);
  const rows = decays.map(({ decay }) => {
    const norms = new Map(decay.distances.map((distance, i) => [distance, decay.norms[i]]));
    return distances.map((distance) => norms.get(distance) ?? NaN);
  });
  const names = decays.map(({ name }) => name);
  const labels = { model: names, distance: distances.map(String) };
  const rates = decays.map(({ name, decay }) =>
    tableRow(word(name), [decay.rate === null ? "–" : formatNumber(decay.rate)]),
  );
  const relative = decays.some(({ decay }) => decay.relative)
    ? h("p", { class: "muted" }, "The gradient of each word's loss is divided by its own at distance 0.")
    : null;
  return [
    curves({ sign: "|dL/dh|", axes: ["model", "distance"], labels, data: rows, look: "log" }),
    relative,
    table("Factor of the gradient per step back", ["model", "per step"], rates),
    ...messages,
  ];
}
