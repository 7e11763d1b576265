// @ts-check
/** How much the loss at each word depends on the state at each word before it: |dL/dh|, and how it fades. */
import { chart } from "./chart.js";
import { choice, h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { matrix } from "./matrix.js";
import { tell } from "./notice.js";
import { hangs } from "./saliency.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Gradients} Gradients */

/**
 * The names of the states that a gradient can be taken at, one vector a place; or, in a file, was taken at.
 * @param {import("./trace.js").Trace} trace
 */
export function differentiable(trace) {
  const { header } = trace;
  if (!trace.live) return (header.gradients ?? []).map((found) => found.name);
  if (header.fork || hangs(header)) return [];
  return header.tensors.filter((tensor) => tensor.axes.join() === "position,width").map((tensor) => tensor.name);
}

/** @param {Context} context */
export async function gradientsTab(context) {
  const { trace, selection } = context;
  const body = h("div", { class: "stack" });
  const draw = async () => {
    const names = differentiable(trace);
    const name = selection.now.tensor;
    const found = await trace.source.gradients(name !== null && names.includes(name) ? name : null);
    replace(body, card(context, found, names), ...fading(found));
  };
  await draw();
  context.onleave(
    selection.listen((changed) => {
      if ("tensor" in changed) draw().catch(tell);
    }),
  );
  return body;
}

/** @param {Context} context @param {Gradients} found @param {string[]} names */
function card(context, found, names) {
  const { trace, selection } = context;
  const numbers = Float64Array.from(found.norms.flat());
  const options = names.map((name) => ({ value: name, text: name }));
  return h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "row" },
      h("h2", {}, "Gradients"),
      choice("States", options, found.name, (tensor) => selection.set({ tensor })),
    ),
    h(
      "p",
      {},
      "A row is the loss of a word that was wanted; a column the state after a word that was read. The sentence is ",
      word(trace.header.text, "sentence source"),
      " with the answer as it was given.",
    ),
    matrix({
      title: `|dL/dh|, h = ${found.name}`,
      numbers,
      rows: found.rows.map(plain),
      columns: found.columns.map(plain),
      rowTitle: "loss",
      columnTitle: "state",
      ramp: "power",
      top: numbers.reduce((a, b) => Math.max(a, b), 0),
      roles: ["target", found.side === "source" ? "source" : "target"],
    }),
  );
}

/** @param {Gradients} found */
function fading({ decay: { distances, norms, rate } }) {
  const points = /** @type {[number, number][]} */ (distances.map((distance, i) => [distance, Math.log10(norms[i])]));
  const curve = chart("log₁₀ |dL/dh| against distance", [{ name: "mean", role: "attention", points }]);
  return [
    h("div", { class: "charts" }, curve),
    rate === null
      ? null
      : h("p", { class: "muted" }, `Each step further back multiplies the gradient by ${shown(rate)}.`),
  ];
}

/** A token without the mark that a word begins. @param {string} token */
function plain(token) {
  return token.replace(/^[ \u2581](?=.)/u, "");
}
