// @ts-check
/** Words of a caption over the image: where the decoder looked when it wrote each of them. */
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { largest, lightUp, picture } from "../widgets/picture.js";
import { crossTensor } from "./attention.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../widgets/picture.js").Pixels} Pixels */

const WIDTH = 112;

/** The image once per word, lit up by the mean of the heads of the last cross-attention. @param {Trace} trace @param {Pixels} pixels */
export async function wordsCard(trace, pixels) {
  const description = crossTensor(trace.header);
  if (!description) return null;
  const weights = (await trace.tensor(description.name)).mean("head");
  const grid = cellGrid(weights.size("key"), pixels);
  const tokens = trace.tokens(description.name, "query") ?? [];
  if (!grid) return null;
  const tiles = tokens.map(({ label }, query) => {
    const row = weights.vector("key", { query }).subarray(-grid.rows * grid.columns);
    const image = lightUp(pixels, row, grid.rows, grid.columns, largest(row));
    const canvas = picture(image, WIDTH, `${label} over the image`);
    const note = h("small", { class: "muted" }, ` up to ${formatNumber(largest(row))}`);
    return h("figure", { class: "tile" }, canvas, h("figcaption", {}, word(label), note));
  });
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Where each word looked"),
    h("p", { class: "muted" }, h("code", {}, description.name), " mean of its heads, each word on its own scale"),
    h("div", { class: "tiles" }, ...tiles),
  );
}

/** Rows and columns of the cells that keys are, after at most one token such as [CLS]. @param {number} keys @param {Pixels} pixels */
function cellGrid(keys, { width, height }) {
  for (const cells of [keys, keys - 1]) {
    const rows = Math.round(Math.sqrt((cells * height) / width));
    const columns = rows > 0 ? cells / rows : 0;
    if (Number.isInteger(columns) && columns > 0 && Math.abs(columns * height - rows * width) < Math.max(height, width))
      return { rows, columns };
  }
  return null;
}
