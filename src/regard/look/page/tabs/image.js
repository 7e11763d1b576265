// @ts-check
/** Image tab: the image and its labels, saliency, filters, feature maps; patches and attention of a Vision Transformer. */
import { ApiError } from "../core/api-error.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { softmax } from "../trace/probability.js";
import { legend } from "../widgets/matrix.js";
import { figure, largest, numberPicture, picture } from "../widgets/picture.js";
import { table } from "../widgets/table.js";
import { filtersCard, mapsCard, normCard } from "./image-layers.js";
import { wordsCard } from "./image-words.js";
import { attentionCard, patchesCard, positionsCard } from "./image-patches.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").PixelSaliency} PixelSaliency */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../widgets/picture.js").Pixels} Pixels */

/** Width of the image on the page, and labels that are listed. */
const [WIDTH, LABELS, BAR] = [224, 10, 120];
const METHOD =
  "Gradient times input, summed over the channels: about how much the label's log-odds would fall if the pixel had the mean color of the training images.";

/** Whether a trace is about an image. @param {Trace} trace */
export function isImage(trace) {
  return trace.has("pixels");
}

/** @param {Context} context */
export async function imageTab(context) {
  const { trace } = context;
  const pixels = await loadPixels(trace);
  const saliency = h("section", { class: "card" }, h("h2", {}, "Saliency"), h("p", { class: "muted" }, "computing"));
  const classifies = trace.has("logits") && trace.describe("logits").axes.join() === "label";
  if (classifies && (trace.live ? !trace.header.fork : trace.header.saliency)) fillSaliency(context, saliency, pixels);
  else saliency.hidden = true;
  const cards = [
    classifies ? await predictionCard(trace, pixels) : captionCard(trace, pixels),
    classifies ? null : await wordsCard(trace, pixels),
    saliency,
    await attentionCard(context, pixels),
    await patchesCard(trace, pixels),
    await positionsCard(trace),
    await filtersCard(trace),
    await mapsCard(context),
    await normCard(context),
  ];
  return h("div", { class: "stack image-tab" }, ...cards);
}

/** The pixels that were read. @param {Trace} trace @returns {Promise<Pixels>} */
export async function loadPixels(trace) {
  const { shape, data } = await trace.tensor("pixels");
  return { height: shape[0], width: shape[1], data };
}

/** The image, and the most probable labels. @param {Trace} trace @param {Pixels} pixels */
async function predictionCard(trace, pixels) {
  const logits = await trace.tensor("logits");
  const probabilities = softmax(logits.data);
  const names = trace.tokens("logits", "label") ?? [];
  const order = Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
  const rows = order.slice(0, LABELS).map((i) => {
    const bar = h("span", { class: "meter positive" });
    bar.style.width = `${BAR * probabilities[i]}px`;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, word(names[i]?.label ?? String(i))),
      h("td", {}, formatNumber(probabilities[i])),
      h("td", { "aria-hidden": "true" }, bar),
      h("td", {}, formatNumber(logits.data[i])),
    );
  });
  const size = `${pixels.height} × ${pixels.width} pixels, as the model reads them`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Image and labels"),
    h(
      "div",
      { class: "row wrap top" },
      figure(picture(pixels, WIDTH, `the image, ${size}`), size),
      table("Labels", ["label", "probability", "", "logit"], rows, { kind: "numbers candidates" }),
    ),
  );
}

/** The image, and the text about it. @param {Trace} trace @param {Pixels} pixels */
function captionCard(trace, pixels) {
  const size = `${pixels.height} × ${pixels.width} pixels, as the model reads them`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Image and caption"),
    h("p", {}, word(trace.header.answer, "sentence target")),
    figure(picture(pixels, WIDTH, `the image, ${size}`), size),
  );
}

/** Adds the saliency, which the server computes by another pass. @param {Context} context @param {HTMLElement} card @param {Pixels} pixels */
async function fillSaliency(context, card, pixels) {
  try {
    const found = /** @type {unknown} */ (await context.trace.source.saliency());
    const { title, scores } = /** @type {PixelSaliency} */ (found);
    const [height, width] = [scores[0].length, scores[0][0].length];
    const sums = new Float64Array(height * width);
    for (const channel of scores) channel.flat().forEach((value, i) => (sums[i] += value));
    const top = largest(sums);
    const label = `saliency of ${height} × ${width} pixels`;
    replace(
      card,
      h("div", { class: "row wrap" }, h("h2", {}, "Saliency"), word(title, "sentence target")),
      h(
        "div",
        { class: "row wrap top" },
        figure(picture(pixels, WIDTH, "the image"), "image"),
        figure(numberPicture(sums, height, width, top, "signed", WIDTH, label), "gradient × input"),
      ),
      legend({ ramp: "signed", top, numbers: sums }),
      h("p", { class: "muted" }, METHOD),
    );
  } catch (error) {
    const message = error instanceof ApiError ? `${error.message} ${error.hint}` : String(error);
    replace(card, h("h2", {}, "Saliency"), h("p", { class: "empty", role: "alert" }, message));
  }
}
