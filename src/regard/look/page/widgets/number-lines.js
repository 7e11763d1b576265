// @ts-check
/** Numbers on axes of their own: the predicted one, its typical error, and the usual range in the training data. */
import { h, replace, svg, word } from "../core/dom.js";
import { formatShort } from "../core/format.js";
import { roundTicks } from "../core/ticks.js";

/** @typedef {import("../core/types.js").NumberParts} NumberParts */

const [WIDTH, HEIGHT, LEFT, MIDDLE, AXIS] = [360, 78, 16, 22, 40];

/**
 * One axis per number.
 * @param {NumberParts} parts @param {ArrayLike<number>} values the predicted numbers @param {string} unit of the axes
 */
export function numberLines(parts, values, unit) {
  return h("div", { class: "number-lines" }, ...parts.numbers.map((one, i) => numberLine(parts, one, values[i], unit)));
}

/** @param {NumberParts} parts @param {NumberParts["numbers"][number]} one @param {number} value @param {string} unit */
function numberLine({ rmse }, { name, mean, deviation }, value, unit) {
  const error = rmse ?? 0;
  const all = [mean - 2 * deviation, mean + 2 * deviation, value - error, value + error];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const x = (/** @type {number} */ number) => LEFT + ((number - low) / (high - low || 1)) * (WIDTH - 2 * LEFT);
  const ticks = roundTicks(low, high, 5).flatMap((tick) => [
    svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: AXIS, y2: AXIS + 4 }),
    svg("text", { class: "tick", x: x(tick), y: AXIS + 17, "text-anchor": "middle" }, formatShort(tick)),
  ]);
  const range = `${formatShort(mean - 2 * deviation)} to ${formatShort(mean + 2 * deviation)}`;
  const whisker = { x1: x(value - error), x2: x(value + error), y1: MIDDLE, y2: MIDDLE };
  const shapes = [
    svg("rect", {
      ...{ class: "window-area", x: x(mean - 2 * deviation), width: x(mean + 2 * deviation) - x(mean - 2 * deviation) },
      ...{ y: 6, height: AXIS - 6 },
    }),
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: AXIS, y2: AXIS }),
    ...ticks,
    error ? svg("line", { class: "whisker", ...whisker }) : null,
    svg("circle", { class: "dot expected", cx: x(value), cy: MIDDLE, r: 5 }),
    svg(
      "text",
      { class: "tick axis-title", x: WIDTH / 2, y: HEIGHT - 4, "text-anchor": "middle" },
      unit ? `${name} (${unit})` : name,
    ),
  ];
  const between = error ? `, typical error ± ${formatShort(error)} (RMSE in validation)` : "";
  const usual = `usual range in the training data ${range}`;
  const label = `${name} ${formatShort(value)}${between}; ${usual}`;
  const readout = h("output", { class: "readout" });
  const reset = () =>
    replace(readout, word(name), " ", h("b", { class: "value" }, formatShort(value)), h("span", {}, between));
  reset();
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "number-line", role: "img" }, ...shapes);
  picture.setAttribute("aria-label", label);
  const point = (/** @type {MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect();
    const at = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - 2 * LEFT);
    const number = low + at * (high - low);
    if (at < 0 || at > 1) return reset();
    replace(
      readout,
      word(name),
      ` axis ${formatShort(Number(number.toPrecision(3)))}; `,
      `predicted ${formatShort(value)}`,
    );
  };
  picture.addEventListener("mousemove", /** @type {EventListener} */ (point));
  picture.addEventListener("mouseleave", reset);
  return h("figure", { class: "figure" }, picture, readout, h("figcaption", { class: "muted small" }, usual));
}
