// @ts-check
/** The output: chosen tokens over their columns, and the probabilities of one of them; or those of labels. */
import { svg } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { stepPrediction } from "../trace/predictions.js";
import { softmax } from "../trace/probability.js";
import { middle } from "./layout.js";
import { shorten } from "./draw-band.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {import("./layout.js").PlacedRow} PlacedRow */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/** @typedef {{label: string, probability: number}} Bar */
/** @typedef {{column: number, title: string, bars: Bar[], chosen: string, probability: number, labels?: boolean, whole?: boolean}} Choice whole: its title says all */

/** Bars of one choice. */
const BARS = 5;

/** Tensors of labels: logits, and of a conditional random field what was decoded and the probability of each label. */
const LABELS = { logits: "logits", marginals: "label_marginals", decoded: "decoded_labels" };

/** The prediction at each column that has one. @param {ModelGraph} graph @returns {Promise<Choice[]>} */
export async function loadChoices(graph) {
  const { header } = graph.trace;
  if (header.steps.length)
    return header.steps.map((step, i) => {
      const read = header.sequences.read?.[graph.prompt + i];
      const { best, actual } = stepPrediction(step, read);
      const chosen = actual ?? { label: "", probability: 0 };
      const column = graph.prompt + i;
      return { column, title: `Step ${i + 1}`, bars: best, chosen: chosen.label, probability: chosen.probability };
    });
  if (header.predictions?.positions.length) return readChoices(graph);
  const names = [LABELS.logits, LABELS.marginals, LABELS.decoded];
  const [logits, ...field] = await Promise.all(
    names.map((name) => (graph.has(name) ? graph.trace.tensor(name) : null)),
  );
  if (!logits) return [];
  return field[0] && field[1] ? fieldChoices(graph, field[0], field[1]) : labelChoices(graph, logits);
}

/** Labels that a conditional random field decoded, as one sequence. @param {ModelGraph} graph @param {Tensor} marginals @param {Tensor} decoded @returns {Choice[]} */
function fieldChoices(graph, marginals, decoded) {
  const names = graph.trace.tokens(LABELS.marginals, "label")?.map(({ label }) => label) ?? [];
  return Array.from({ length: decoded.size("position") }, (_, position) => {
    const bars = Array.from(marginals.vector("label", { position }), (probability, i) => ({
      label: names[i] ?? String(i),
      probability,
    }));
    const { label: chosen, probability } = bars[decoded.at({ position })];
    bars.sort((a, b) => b.probability - a.probability);
    const title = `Token ${position + 1}: probability of each label in the sequence (CRF)`;
    return { column: position, title, bars, chosen, probability, labels: true, whole: true };
  });
}

/** Best candidates at each token of a text that was read, or at each mask. @param {ModelGraph} graph @returns {Choice[]} */
function readChoices(graph) {
  const { kind, positions } = /** @type {NonNullable<import("../core/types.js").Header["predictions"]>} */ (
    graph.trace.header.predictions
  );
  const masks = graph.tokens("source").flatMap(({ token }, i) => (token === "[MASK]" ? [i] : []));
  return positions.map(({ best }, i) => ({
    column: kind === "mask" ? (masks[i] ?? i) : i,
    title: kind === "mask" ? `Mask ${i + 1}` : `After token ${i + 1}`,
    bars: best,
    chosen: best[0]?.label ?? "",
    probability: best[0]?.probability ?? 0,
  }));
}

/** Labels of a text, or of each of its words. @param {ModelGraph} graph @param {Tensor} logits @returns {Choice[]} */
function labelChoices(graph, logits) {
  const axis = logits.axes.find((name) => name === "label" || name === "vocabulary");
  if (!axis) return [];
  const names = graph.trace.tokens("logits", axis)?.map(({ label }) => label) ?? null;
  const place = logits.axes.find((name) => name === "position");
  return Array.from({ length: place ? logits.size(place) : 1 }, (_, column) => {
    const p = softmax(logits.vector(axis, place ? { [place]: column } : {}));
    const bars = Array.from(p, (probability, i) => ({ label: names?.[i] ?? String(i), probability }));
    bars.sort((a, b) => b.probability - a.probability);
    const title = place ? `Token ${column + 1}` : "Answer";
    return {
      column: place ? column : -1,
      title,
      bars,
      chosen: bars[0].label,
      probability: bars[0].probability,
      labels: true,
    };
  });
}

/** The choice that is shown with its bars: at a column, or the last before it. @param {Choice[]} all @param {number|null} column */
export function choiceAt(all, column) {
  if (column === null) return all.find(({ column }) => column < 0) ?? all[0] ?? null;
  return all.findLast((choice) => choice.column <= column) ?? all[0] ?? null;
}

/** @param {PlacedRow} placed @param {Choice[]} all @param {Choice|null} shown */
export function output(placed, all, shown) {
  const { stack, x, y, width } = placed;
  const group = svg("g", { class: "scene-output" });
  const single = all.length === 1 && all[0].column < 0;
  if (!single) {
    for (const choice of all) {
      const at = middle(stack, choice.column);
      const room = (stack.cell - 2) / 6.6;
      const fits = stack.cell >= 20 || Array.from(choice.chosen).length <= room;
      const label = fits ? shorten(choice.chosen, room) : "·";
      const kind = `scene-chosen${choice === shown ? " shown" : ""}`;
      group.append(svg("text", { x: at, y: y + placed.height - 4, class: kind, "text-anchor": "middle" }, label));
    }
  }
  if (shown) group.append(bars(shown, x, y + 2, width, single ? placed.height - 8 : placed.height - 28));
  return group;
}

/** The best candidates as bars. @param {Choice} choice @param {number} x @param {number} y @param {number} width @param {number} height @param {number} [most] */
export function bars(choice, x, y, width, height, most = BARS) {
  const shown = choice.bars.slice(0, most);
  const step = Math.min(20, (height - 18) / most);
  const [words, room] = [Math.min(110, width * 0.32), Math.min(360, width) - Math.min(110, width * 0.32) - 56];
  const title = svg(
    "text",
    { x, y: y + 11, class: "scene-title" },
    choice.whole ? choice.title : `${choice.title}: softmax over the ${choice.labels ? "labels" : "vocabulary"}`,
  );
  const lines = shown.flatMap(({ label, probability }, i) => {
    const top = y + 20 + i * step;
    const kind = label === choice.chosen ? "scene-bar chosen" : "scene-bar";
    const length = Math.max(1, room * probability);
    return [
      svg(
        "text",
        { x: x + words - 6, y: top + step * 0.68, class: "scene-word", "text-anchor": "end" },
        shorten(label, words / 7),
      ),
      svg("rect", { x: x + words, y: top + 1, width: length, height: Math.max(2, step - 5), rx: 2, class: kind }),
      svg(
        "text",
        { x: x + words + length + 5, y: top + step * 0.68, class: "scene-number" },
        formatNumber(probability),
      ),
    ];
  });
  return svg("g", { class: "scene-bars" }, title, ...lines);
}
