// @ts-check
/** The tour of a recorded model: its stops, from the input to the answer, as far as its graph has them. */
import { answerStops, bridgeStops } from "./answer-stops.js";
import { attentionStops } from "./attention-stops.js";
import { Guide } from "./guide.js";
import { inputStops } from "./input-stops.js";
import { convolutionStops, recurrentStops } from "./recurrent-stops.js";

/** @typedef {import("./guide.js").Stop} Stop */
/** @typedef {import("../scene/model-graph.js").ModelGraph} ModelGraph */
/** @typedef {import("../scene/model-graph.js").Stack} Stack */

/** Most stops of a tour. */
const MOST = 16;

/** @param {ModelGraph} graph @param {(place: string) => void} explain opens a number @returns {Promise<Stop[]>} */
export async function tourStops(graph, explain) {
  const guide = new Guide(graph, explain);
  const body = await bodyStops(guide, guide.source);
  // of a decoder that is built otherwise than its encoder
  const other = guide.isPair && kindOf(guide, guide.target) !== kindOf(guide, guide.source);
  const all = [
    ...inputStops(guide),
    ...body,
    ...(await bridgeStops(guide)),
    ...(other ? (await bodyStops(guide, guide.target)).filter((stop) => stop?.name !== "layers") : []),
    ...answerStops(guide),
  ].filter((stop) => stop !== null);
  const stops = all.filter(({ name }, i) => all.findIndex((stop) => stop.name === name) === i);
  const surplus = stops.filter(({ optional }) => optional).slice(0, Math.max(0, stops.length - MOST));
  return stops.filter((stop) => !surplus.includes(stop));
}

/** @param {Guide} guide @param {Stack} stack */
function kindOf(guide, stack) {
  return guide.node("self-attention", stack) ? "attention" : guide.node("recurrent", stack) ? "recurrent" : "other";
}

/** @param {Guide} guide @param {Stack} stack @returns {Promise<(Stop|null)[]>} */
async function bodyStops(guide, stack) {
  return [...convolutionStops(guide, stack), ...(await attentionStops(guide, stack)), ...recurrentStops(guide, stack)];
}
