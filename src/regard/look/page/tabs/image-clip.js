// @ts-check
/** A clip: its frames side by side, and the states of the recurrent layer after each of them. */
import { h, replace, selectField } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { legend } from "../widgets/matrix.js";
import { figure, largest, numberPicture, picture } from "../widgets/picture.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../widgets/picture.js").Pixels} Pixels */

/** Width of a frame, and units of a row in which a state is drawn. */
const [WIDTH, UNITS] = [112, 8];

/** The frames in a row that scrolls on a narrow page. @param {Pixels[]} frames @param {HTMLElement[]} [below] a row of pictures per frame */
export function frameRow(frames, below = []) {
  const tiles = frames.map((pixels, i) => figure(picture(pixels, WIDTH, `frame ${i + 1}`), `frame ${i + 1}`));
  return scrollRow("Frames", [h("div", { class: "frames" }, ...tiles), ...below]);
}

/** Rows that scroll together. @param {string} label @param {HTMLElement[]} rows */
export function scrollRow(label, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...rows);
}

/** A row of pictures of numbers, one per frame, on one scale. @param {ArrayLike<number>[]} planes @param {number} rows @param {number} columns @param {number} top @param {"signed"|"weight"} ramp @param {(frame: number) => string} caption */
export function numberRow(planes, rows, columns, top, ramp, caption) {
  const tiles = planes.map((numbers, i) => {
    const label = caption(i);
    return figure(numberPicture(numbers, rows, columns, top, ramp, WIDTH, label), label);
  });
  return h("div", { class: "frames" }, ...tiles);
}

/** States after each frame: a tile per frame, its units in rows of 8. @param {Trace} trace @param {Pixels[]} frames */
export async function clipStatesCard(trace, frames) {
  const all = trace.header.tensors.filter(({ axes }) => axes.join() === "position,width");
  if (frames.length < 2 || !all.length) return null;
  const card = h("section", { class: "card clip-states" });
  const draw = async (/** @type {string} */ name) => {
    const states = await trace.tensor(name);
    const [top, rows] = [largest(states.data), Math.ceil(states.size("width") / UNITS)];
    const planes = frames.map((_, position) => {
      const numbers = new Float64Array(rows * UNITS).fill(Number.NaN);
      numbers.set(states.vector("width", { position }));
      return numbers;
    });
    const options = all.map((tensor) => ({ value: tensor.name, text: tensor.name }));
    replace(
      card,
      h("h2", {}, "States after each frame"),
      selectField("Vectors", options, name, (value) => draw(value).catch(showError)),
      frameRow(frames, [numberRow(planes, rows, UNITS, top, "signed", (i) => `after frame ${i + 1}`)]),
      legend({ ramp: "signed", top, numbers: states.data }),
      h(
        "p",
        { class: "muted" },
        `${states.size("width")} units in rows of ${UNITS}; the States tab names each of them.`,
      ),
    );
  };
  const first = all.find(({ name }) => name.endsWith("hidden")) ?? all[0];
  await draw(first.name);
  return card;
}
