// @ts-check
/** Image tab: the image or clip and its labels, saliency, filters, feature maps; patches and attention of a Vision Transformer. */
import { ApiError } from "../core/api-error.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { softmax } from "../trace/probability.js";
import { legend } from "../widgets/matrix.js";
import { figure, largest, numberPicture, picture } from "../widgets/picture.js";
import { table } from "../widgets/table.js";
import { clipStatesCard, frameRow, numberRow } from "./image-clip.js";
import { filtersCard, mapsCard, normCard } from "./image-layers.js";
import { numbersCard } from "./image-numbers.js";
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
const NUMBERS_METHOD =
  "Gradient times input, summed over the channels: about how much the number would fall if the pixel had the mean color of the training images.";

/** Whether a trace is about an image or a clip. @param {Trace} trace */
export function isImage(trace) {
  return trace.has("pixels");
}

/** @param {Context} context */
export async function imageTab(context) {
  const { trace } = context;
  const frames = await loadFrames(trace);
  const pixels = frames[0];
  const saliency = h("section", { class: "card" }, h("h2", {}, "Saliency"), h("p", { class: "muted" }, "computing"));
  const classifies = trace.has("logits") && trace.describe("logits").axes.join() === "label";
  const regresses = trace.has("prediction");
  if ((classifies || regresses) && (trace.live ? !trace.header.fork : trace.header.saliency))
    fillSaliency(context, saliency, frames);
  else saliency.hidden = true;
  const cards = [
    classifies
      ? await predictionCard(trace, frames)
      : regresses
        ? await numbersCard(trace, frames, inputPicture(frames))
        : captionCard(trace, pixels),
    classifies || regresses ? null : await wordsCard(trace, pixels),
    saliency,
    await clipStatesCard(trace, frames),
    await attentionCard(context, pixels),
    await patchesCard(trace, pixels),
    await positionsCard(trace),
    await filtersCard(trace),
    await mapsCard(context),
    await normCard(context),
  ];
  return h("div", { class: "stack image-tab" }, ...cards);
}

/** The pixels that were read: of an image, or of each frame of a clip. @param {Trace} trace @returns {Promise<Pixels[]>} */
export async function loadFrames(trace) {
  const tensor = await trace.tensor("pixels");
  const [height, width] = [tensor.size("row"), tensor.size("column")];
  const size = 3 * height * width;
  return Array.from({ length: tensor.size("frame") }, (_, i) => ({
    height,
    width,
    data: tensor.data.subarray(i * size, (i + 1) * size),
  }));
}

/** The image, or the frames of a clip, with its size. @param {Pixels[]} frames */
function inputPicture(frames) {
  const size = `${frames[0].height} × ${frames[0].width} pixels, as the model reads them`;
  if (frames.length === 1) return figure(picture(frames[0], WIDTH, `the image, ${size}`), size);
  const note = h("p", { class: "muted" }, `${frames.length} frames of ${size}`);
  return h("div", { class: "clip" }, frameRow(frames), note);
}

/** The image or clip, and the most probable labels. @param {Trace} trace @param {Pixels[]} frames */
async function predictionCard(trace, frames) {
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
  return h(
    "section",
    { class: "card" },
    h("h2", {}, frames.length > 1 ? "Clip and labels" : "Image and labels"),
    h(
      "div",
      { class: "row wrap top" },
      inputPicture(frames),
      table("Labels", ["label", "probability", "", "logit"], rows, { kind: "numbers candidates" }),
    ),
  );
}

/** The image, and the text about it. @param {Trace} trace @param {Pixels} pixels */
function captionCard(trace, pixels) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Image and caption"),
    h("p", {}, word(trace.header.answer, "sentence target")),
    inputPicture([pixels]),
  );
}

/** Adds the saliency, which the server computes by another pass. @param {Context} context @param {HTMLElement} card @param {Pixels[]} frames */
async function fillSaliency(context, card, frames) {
  try {
    const found = /** @type {unknown} */ (await context.trace.source.saliency());
    const { title, outputs, scores } = /** @type {PixelSaliency} */ (found);
    const planes = scores.map((clip) => clip.map(sumChannels));
    const numbers = planes.flatMap((clip) => clip.map((plane) => Array.from(plane))).flat();
    const [height, width, top] = [frames[0].height, frames[0].width, largest(numbers)];
    const label = `saliency of ${height} × ${width} pixels`;
    const of = (/** @type {number} */ i) => (outputs.length > 1 ? `${outputs[i].replace(/ [^ ]*$/u, "")}, ` : "");
    const drawn =
      frames.length > 1
        ? frameRow(
            frames,
            planes.map((clip, i) =>
              numberRow(clip, height, width, top, "signed", (frame) => `${of(i)}frame ${frame + 1}`),
            ),
          )
        : h(
            "div",
            { class: "row wrap top" },
            figure(picture(frames[0], WIDTH, "the image"), "image"),
            ...planes.map(([plane], i) =>
              figure(
                numberPicture(plane, height, width, top, "signed", WIDTH, of(i) + label),
                `${of(i)}gradient × input`,
              ),
            ),
          );
    replace(
      card,
      h("div", { class: "row wrap" }, h("h2", {}, "Saliency"), word(title, "sentence target")),
      drawn,
      legend({ ramp: "signed", top, numbers }),
      h("p", { class: "muted" }, context.trace.has("prediction") ? NUMBERS_METHOD : METHOD),
    );
  } catch (error) {
    const message = error instanceof ApiError ? `${error.message} ${error.hint}` : String(error);
    replace(card, h("h2", {}, "Saliency"), h("p", { class: "empty", role: "alert" }, message));
  }
}

/** @param {number[][][]} channels of one frame */
function sumChannels(channels) {
  const sums = new Float64Array(channels[0].length * channels[0][0].length);
  for (const channel of channels) channel.flat().forEach((value, i) => (sums[i] += value));
  return sums;
}
