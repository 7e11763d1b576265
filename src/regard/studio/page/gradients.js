// @ts-check
/** How much the loss at each word depends on the state at each word before it: |dL/dh|, and how it fades. */
import { get } from "./api.js";
import { chart } from "./chart.js";
import { choice, h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { matrix } from "./matrix.js";
import { tell } from "./notice.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {{name: string, side: string, rows: string[], columns: string[], norms: number[][], decay: {distances: number[], norms: number[], rate?: number}}} Gradients */

/** States that a gradient can be taken at: one vector a place. @param {import("./types.js").Header} header */
export function differentiable(header) {
  return header.fork ? [] : header.tensors.filter((tensor) => tensor.axes.join() === "position,width");
}

/** @param {Context} context */
export async function gradientsTab(context) {
  const { trace, selection } = context;
  const names = differentiable(trace.header).map((tensor) => tensor.name);
  const body = h("div", { class: "stack" });

  async function draw() {
    const wanted = names.includes(selection.now.tensor ?? "")
      ? `?name=${encodeURIComponent(selection.now.tensor ?? "")}`
      : "";
    /** @type {Gradients} */
    const found = await get(`traces/${encodeURIComponent(trace.header.id)}/gradients${wanted}`);
    const numbers = Float64Array.from(found.norms.flat());
    const { distances, norms, rate } = found.decay;
    const points = /** @type {[number, number][]} */ (distances.map((distance, i) => [distance, Math.log10(norms[i])]));
    replace(
      body,
      h(
        "section",
        { class: "card" },
        h(
          "div",
          { class: "row" },
          h("h2", {}, "Gradients"),
          choice(
            "States",
            names.map((name) => ({ value: name, text: name })),
            found.name,
            (tensor) => selection.set({ tensor }),
          ),
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
      ),
      h(
        "div",
        { class: "charts" },
        chart("log₁₀ |dL/dh| against distance", [{ name: "mean", role: "attention", points }]),
      ),
      rate === undefined
        ? null
        : h("p", { class: "muted" }, `Each step further back multiplies the gradient by ${shown(rate)}.`),
    );
  }
  await draw();
  context.onleave(
    selection.listen((changed) => {
      if ("tensor" in changed) draw().catch(tell);
    }),
  );
  return body;
}

/** A token without the mark that a word begins. @param {string} token */
function plain(token) {
  return token.replace(/^[ \u2581](?=.)/u, "");
}
