// @ts-check
/** Around the picture: legend of its colors, list of its parts, and places of numbers in the address. */
import { thumbnail } from "../core/color.js";
import { h } from "../core/dom.js";
import { FORECAST } from "../core/route.js";

/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("./row-values.js").PickedNumber} PickedNumber */

/** A number in the address: its tensor, its place along each axis, "mean" for a mean of heads. @param {PickedNumber} picked @param {Trace} trace */
export function formatPlace({ name, index, mean }, trace) {
  const { axes } = trace.describe(name);
  return `${name}[${axes.map((axis) => (mean && axis === "head" ? "mean" : (index[axis] ?? 0))).join(",")}]`;
}

/** @param {string} text @param {Trace} trace @returns {{name: string, index: Index, mean: boolean}|null} null: no number of this trace */
export function parsePlace(text, trace) {
  const found = /^([^[\]]+)\[([\w,]+)\]$/.exec(text);
  if (!found || !trace.has(found[1])) return null;
  const { axes, shape } = trace.describe(found[1]);
  const parts = found[2].split(",");
  const valid = parts.length === axes.length && parts.every((part, i) => part === "mean" || Number(part) < shape[i]);
  if (!valid) return null;
  const index = Object.fromEntries(axes.map((axis, i) => [axis, parts[i] === "mean" ? 0 : Number(parts[i])]));
  return { name: found[1], index, mean: parts.includes("mean") };
}

/** What a column of the picture is; null: it has no columns. @param {import("./model-graph.js").ModelGraph} graph */
function columnName({ trace, nodes, stacks }) {
  const [source, target] = stacks;
  const kinds = new Set([...nodes.values()].map(({ kind }) => kind));
  if (trace.header.kind === FORECAST) return "a row of the series";
  if (!source.tokens.length) return null;
  if (kinds.has("patches")) return "a patch of the image";
  if (trace.has("pixels") && !target) return kinds.has("recurrent") ? "a frame of the clip" : null;
  if (source.tokens.length === 1 && source.tokens[0].token === "row") return "the row of numbers that was read";
  return "a token";
}

/** How the picture of a whole model is read, in two or three sentences. @param {import("./model-graph.js").ModelGraph} graph */
export function pictureLead(graph) {
  const [source, target] = graph.stacks;
  const column = columnName(graph);
  const what = column
    ? `each column is ${column}, each strip of colors the vector that a layer computed for it`
    : "each row is what a layer computed";
  const memory = graph.edges.some(({ kind }) => kind === "memory");
  const handed = memory ? "what it computed is read by the decoder," : "its last state starts the decoder,";
  const pair = target
    ? ` The ${source.title.toLowerCase()} reads the ${graph.trace.has("pixels") ? "image" : column ? "source" : "input"}; ${handed} which writes the answer step by step.`
    : "";
  return h("p", { class: "scene-lead" }, `Read it from the bottom up: ${what}; the answer is at the top.${pair}`);
}

/** What the colors mean. @param {unknown} _picture */
export function colorLegend(_picture) {
  const ramp = (/** @type {"signed"|"weight"} */ kind) => {
    const values = Array.from({ length: 64 }, (_, i) => (kind === "signed" ? i / 31.5 - 1 : i / 63));
    const canvas = thumbnail(values, 1, 64, 1, kind, 96, 10);
    canvas.setAttribute("aria-hidden", "true");
    return canvas;
  };
  return h(
    "p",
    { class: "scene-legend" },
    h(
      "span",
      {},
      "−",
      ramp("signed"),
      "+ numbers of a vector; each row has its own scale, 98 % of its numbers are within it",
    ),
    h("span", {}, "0", ramp("weight"), "1 attention weights and gates"),
    h("span", {}, "Point at a strip for its number, click to explain it; click a title to open it."),
  );
}

/**
 * The parts of a picture as a list, for keyboards and screen readers.
 * @param {{rows: {row: {title: string, tensor: string|null, zoom: string, layer?: string|null}}[]}} picture
 * @param {(to: string) => void} zoom @param {number} heads @param {(head: number) => void} onhead
 */
export function partList(picture, zoom, heads, onhead) {
  const items = picture.rows
    .filter(({ row }) => row.tensor !== null && row.zoom)
    .map(({ row }) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "link", onclick: () => zoom(row.zoom) },
          [row.layer, row.title].filter(Boolean).join(": "),
        ),
        " ",
        h("code", {}, row.tensor),
      ),
    );
  for (let head = 0; head < heads; head++) {
    const onclick = () => onhead(head);
    items.push(h("li", {}, h("button", { type: "button", class: "link", onclick }, `Head ${head}`)));
  }
  return items.length
    ? h("details", { class: "scene-parts" }, h("summary", {}, "Parts of this picture"), h("ul", {}, ...items))
    : null;
}
