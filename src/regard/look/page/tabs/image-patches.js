// @ts-check
/** A Vision Transformer: attention over the image and rollout, patches, similarity of position embeddings. */
import { h, replace, selectField } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { legend } from "../widgets/matrix.js";
import { figure, largest, lightUp, numberPicture, picture } from "../widgets/picture.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../widgets/picture.js").Pixels} Pixels */

const [WIDTH, SMALL, PATCH_WIDTH] = [168, 112, 28];
/** Patches of a row up to which the similarity of all positions is drawn. */
const MOST = 16;

/** Rollout, and attention of each head of a layer, over the image. @param {Context} context @param {Pixels} pixels */
export async function attentionCard(context, pixels) {
  const { trace } = context;
  if (!trace.has("rollout")) return null;
  const rollout = await trace.tensor("rollout");
  const layers = trace.header.tensors.filter(({ name }) => /layers\.\d+\.attention\.weights$/u.test(name));
  const heads = h("div", {});
  const [rows, columns] = rollout.shape;
  const draw = async (/** @type {string} */ name) => {
    const weights = await trace.tensor(name, "query:0");
    const tiles = Array.from({ length: weights.size("head") }, (_, head) => {
      const row = weights.vector("key", { head }).subarray(-rows * columns);
      const image = lightUp(pixels, row, rows, columns, largest(row));
      return figure(
        picture(image, SMALL, `head ${head} over the image`),
        `head ${head}, up to ${formatNumber(largest(row))}`,
      );
    });
    const options = layers.map((tensor, i) => ({ value: tensor.name, text: `layer ${i}` }));
    replace(
      heads,
      selectField("Layer of the heads", options, name, (value) => draw(value).catch(showError)),
      h("div", { class: "tiles" }, ...tiles),
    );
  };
  await draw(layers[layers.length - 1].name);
  const top = largest(rollout.data);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Attention over the image"),
    h(
      "div",
      { class: "row wrap top" },
      figure(
        picture(lightUp(pixels, rollout.data, rows, columns, top), WIDTH, "rollout over the image"),
        "rollout over the image",
      ),
      figure(numberPicture(rollout.data, rows, columns, top, "weight", WIDTH, "rollout"), "rollout of each patch"),
    ),
    legend({ ramp: "weight", top, numbers: rollout.data }),
    h(
      "p",
      { class: "muted" },
      "Attention rollout (Abnar and Zuidema 2020): the product over all layers of (mean of the heads + identity) / 2. Below, what [CLS] attends to in each head, each on its own scale.",
    ),
    heads,
  );
}

/** The image in patches. @param {Trace} trace @param {Pixels} pixels */
export async function patchesCard(trace, pixels) {
  const description = trace.header.tensors.find(({ name }) => name.endsWith("patches"));
  if (!description) return null;
  const [rows, columns, , height, width] = description.shape;
  const grid = h("div", { class: "patch-grid", role: "img", "aria-label": `${rows} × ${columns} patches` });
  const side = Math.max(8, Math.min(PATCH_WIDTH, Math.floor(336 / columns)));
  grid.style.gridTemplateColumns = `repeat(${columns}, ${side}px)`;
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) grid.append(patch(pixels, r * height, c * width, height, width, side));
  }
  const size = `${rows} × ${columns} patches of ${height} × ${width} pixels, read row by row after [CLS]`;
  return h("section", { class: "card" }, h("h2", {}, "Patches"), grid, h("p", { class: "muted" }, size));
}

/** @param {Pixels} pixels @param {number} top @param {number} left @param {number} height @param {number} width @param {number} side */
function patch(pixels, top, left, height, width, side) {
  const data = new Float64Array(3 * height * width);
  for (let y = 0; y < height; y++) {
    const from = 3 * ((top + y) * pixels.width + left);
    for (let k = 0; k < 3 * width; k++) data[3 * y * width + k] = pixels.data[from + k];
  }
  const canvas = picture({ width, height, data }, side, "");
  canvas.setAttribute("aria-hidden", "true");
  canvas.removeAttribute("role");
  return canvas;
}

/** Similarity of position embeddings, a tile per patch. @param {Trace} trace */
export async function positionsCard(trace) {
  if (!trace.has("position_similarity")) return null;
  const similarity = await trace.tensor("position_similarity");
  const [rows, columns] = similarity.shape;
  const step = Math.ceil(Math.max(rows, columns) / MOST);
  const grid = h("div", {
    class: "patch-grid wide-gap",
    role: "img",
    "aria-label": "similarity of position embeddings",
  });
  const across = Math.ceil(columns / step);
  const side = Math.max(16, Math.min(48, Math.floor(336 / across)));
  grid.style.gridTemplateColumns = `repeat(${across}, ${side}px)`;
  for (let r = 0; r < rows; r += step) {
    for (let c = 0; c < columns; c += step) {
      const numbers = similarity.plane("row", "column", { patch_row: r, patch_column: c });
      const canvas = numberPicture(numbers, rows, columns, 1, "signed", side, "");
      canvas.removeAttribute("role");
      canvas.setAttribute("aria-hidden", "true");
      grid.append(canvas);
    }
  }
  const note = step > 1 ? ` Every ${step}th row and column of patches is drawn.` : "";
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Similarity of positions"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Similarity of positions" }, grid),
    legend({ ramp: "signed", top: 1, numbers: similarity.data }),
    h(
      "p",
      { class: "muted" },
      `A tile per patch, in its place: the cosine similarity of its position embedding with that of every patch.${note}`,
    ),
  );
}
