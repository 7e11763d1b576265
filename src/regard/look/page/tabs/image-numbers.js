// @ts-check
/** Numbers that a model predicts from an image or a clip: on axes of their own, and as a position over the last frame. */
import { h, svg, word } from "../core/dom.js";
import { formatShort } from "../core/format.js";
import { numberLines } from "../widgets/number-lines.js";
import { picture } from "../widgets/picture.js";
import { table, tableRow } from "../widgets/table.js";

/** @typedef {import("../core/types.js").NumberParts} NumberParts */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../widgets/picture.js").Pixels} Pixels */

const WIDTH = 224;

/** The usual range of the numbers of a trace; null for a trace without. @param {Trace} trace @returns {NumberParts|null} */
function numberParts({ header }) {
  return header.parts && "numbers" in header.parts ? header.parts : null;
}

/** The image or clip, and the predicted numbers. @param {Trace} trace @param {Pixels[]} frames @param {HTMLElement} input its picture */
export async function numbersCard(trace, frames, input) {
  const { data } = await trace.tensor("prediction");
  const names = (trace.tokens("prediction", "output") ?? []).map(({ label }) => label);
  const parts = numberParts(trace);
  const rows = Array.from(data, (value, i) => tableRow(word(names[i] ?? String(i)), [formatShort(value)]));
  const position = parts?.is_position && names.join() === "x,y" ? positionFigure(frames, data) : null;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, frames.length > 1 ? "Clip and numbers" : "Image and numbers"),
    input,
    h(
      "div",
      { class: "row wrap top" },
      position,
      parts
        ? numberLines(parts, data, position ? "pixels" : "")
        : table("Predicted numbers", ["name", "number"], rows, { kind: "numbers" }),
    ),
  );
}

/** The last frame with the predicted next position. @param {Pixels[]} frames @param {ArrayLike<number>} position */
function positionFigure(frames, position) {
  const [x, y] = [position[0], position[1]];
  const frame = frames[frames.length - 1];
  const label = `predicted next position: x ${formatShort(x)}, y ${formatShort(y)}, over the last frame`;
  const marks = svg(
    "svg",
    { viewBox: `0 0 ${frame.width} ${frame.height}`, class: "over-picture", "aria-hidden": "true" },
    svg("line", { class: "crosshair", x1: x - 2, x2: x + 2, y1: y, y2: y }),
    svg("line", { class: "crosshair", x1: x, x2: x, y1: y - 2, y2: y + 2 }),
  );
  const caption = h("figcaption", { class: "muted" }, "predicted next position, over the last frame");
  return h(
    "figure",
    { class: "tile" },
    h("span", { class: "with-overlay" }, picture(frame, WIDTH, label), marks),
    caption,
  );
}
