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
  const usual = /** @type {[number, number]} */ ([mean - 2 * deviation, mean + 2 * deviation]);
  const limits = [Math.min(usual[0], value - error), Math.max(usual[1], value + error)];
  const [low, high] = limits;
  const x = (/** @type {number} */ number) => LEFT + ((number - low) / (high - low || 1)) * (WIDTH - 2 * LEFT);
  const between = error ? `, typical error ± ${formatShort(error)} (RMSE in validation)` : "";
  const range = `usual range in the training data ${formatShort(usual[0])} to ${formatShort(usual[1])}`;
  const label = `${name} ${formatShort(value)}${between}; ${range}`;
  const shapes = drawLine(x, limits, usual, value, error);
  const title = { class: "tick axis-title", x: WIDTH / 2, y: HEIGHT - 4, "text-anchor": "middle" };
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "number-line", role: "img", "aria-label": label },
    ...shapes,
    svg("text", title, unit ? `${name} (${unit})` : name),
  );
  const readout = h("output", { class: "readout" });
  const reset = () => replace(readout, word(name), " ", h("b", { class: "value" }, formatShort(value)), between);
  const point = (/** @type {MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect();
    const at = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - 2 * LEFT);
    if (at < 0 || at > 1) return reset();
    const here = formatShort(Number((low + at * (high - low)).toPrecision(3)));
    replace(readout, word(name), ` ${here} at the pointer; predicted ${formatShort(value)}`);
  };
  reset();
  picture.addEventListener("mousemove", /** @type {EventListener} */ (point));
  picture.addEventListener("mouseleave", reset);
  return h("figure", { class: "figure" }, picture, readout, h("figcaption", { class: "muted small" }, range));
}

/**
 * Axis with ticks, the usual range, the predicted number and its error.
 * @param {(number: number) => number} x @param {number[]} limits @param {[number, number]} usual @param {number} value
 * @param {number} error
 */
function drawLine(x, limits, usual, value, error) {
  const [left, right] = usual.map(x);
  const ticks = roundTicks(limits[0], limits[1], 5).flatMap((tick) => [
    svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: AXIS, y2: AXIS + 4 }),
    svg("text", { class: "tick", x: x(tick), y: AXIS + 17, "text-anchor": "middle" }, formatShort(tick)),
  ]);
  return [
    svg("rect", { class: "window-area", x: left, width: right - left, y: 6, height: AXIS - 6 }),
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: AXIS, y2: AXIS }),
    ...ticks,
    error
      ? svg("line", { class: "whisker", x1: x(value - error), x2: x(value + error), y1: MIDDLE, y2: MIDDLE })
      : null,
    svg("circle", { class: "dot expected", cx: x(value), cy: MIDDLE, r: 5 }),
  ];
}
