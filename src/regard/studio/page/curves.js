// @ts-check
/** Numbers along an axis as lines, on a plain or a logarithmic scale; arrow keys and pointing tell them all. */
import { h, replace, svg, word } from "./dom.js";
import { brief } from "./format.js";

/** @typedef {import("./lessonvalue.js").Value} Value */

const [WIDE, TALL, LEFT, BELOW, EDGE] = [480, 200, 60, 24, 10];
const ROLES = ["attention", "query", "key", "value", "chosen", "source"];

/**
 * What is drawn: the rows and their names, what stands along the axis, and where a number goes.
 * @typedef {{rows: number[][], names: string[]|null, axis: string, along: string[], scale: ReturnType<typeof scaled>}} Drawn
 */

/** @param {Pick<Value, "sign"|"axes"|"labels"|"data"|"look">} value */
export function curves(value) {
  const two = value.axes.length === 2;
  /** @type {number[][]} */
  const rows = two ? value.data : [value.data];
  const names = two ? (value.labels[value.axes[0]] ?? rows.map((_, i) => String(i + 1))) : null;
  const axis = value.axes[value.axes.length - 1];
  const along = value.labels[axis] ?? rows[0].map((_, i) => String(i));
  const drawn = { rows, names, axis, along, scale: scaled(rows, value.look === "log") };
  const mark = svg("line", { class: "mark", y1: EDGE, y2: TALL - BELOW, visibility: "hidden" });
  const told = h("output", { class: "readout" });
  const stage = h(
    "div",
    { class: "curves", tabindex: "0", role: "group", "aria-label": `${value.sign}. Left and right tell the numbers.` },
    picture(value.sign, drawn, mark),
  );
  follow(stage, drawn, mark, told);
  const note = value.look === "log" ? h("p", { class: "muted small" }, "The axis is logarithmic.") : null;
  return h("figure", { class: "figure lesson-wide" }, stage, names ? legend(names) : null, note, told);
}

/** Where a place of the axis is. @param {Drawn} drawn @param {number} i */
function across({ along }, i) {
  return LEFT + (along.length > 1 ? i / (along.length - 1) : 0.5) * (WIDE - LEFT - EDGE);
}

/** @param {string} sign @param {Drawn} drawn @param {SVGElement} mark */
function picture(sign, drawn, mark) {
  const { rows, names, axis, along, scale } = drawn;
  const y = (/** @type {number} */ number) => TALL - BELOW - scale.share(number) * (TALL - BELOW - EDGE);
  const summary = rows
    .map((row, k) => `${names ? `${names[k]} ` : ""}from ${brief(row[0])} to ${brief(row[row.length - 1])}`)
    .join("; ");
  const line = (/** @type {number[]} */ row, /** @type {number} */ k) =>
    svg("polyline", {
      class: `curve ${ROLES[k % ROLES.length]}`,
      "stroke-dasharray": dashes(k),
      points: row
        .flatMap((number, i) => (scale.drawn(number) ? [`${across(drawn, i).toFixed(1)},${y(number).toFixed(1)}`] : []))
        .join(" "),
    });
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDE} ${TALL}`, class: "chart", role: "img", "aria-label": `${sign} along ${axis}, ${summary}` },
    svg("line", { class: "axis", x1: LEFT, x2: WIDE - EDGE, y1: TALL - BELOW, y2: TALL - BELOW }),
    svg("text", { class: "tick", x: LEFT - 6, y: EDGE + 6, "text-anchor": "end" }, brief(scale.high)),
    svg("text", { class: "tick", x: LEFT - 6, y: TALL - BELOW, "text-anchor": "end" }, brief(scale.low)),
    svg("text", { class: "tick", x: LEFT, y: TALL - 8 }, `${axis} ${along[0]}`),
    svg("text", { class: "tick", x: WIDE - EDGE, y: TALL - 8, "text-anchor": "end" }, along[along.length - 1]),
    ...rows.map(line),
    mark,
  );
}

/** Pointing and arrow keys tell the numbers of a place. @param {HTMLElement} stage @param {Drawn} drawn @param {SVGElement} mark @param {HTMLElement} told */
function follow(stage, drawn, mark, told) {
  const { rows, names, axis, along } = drawn;
  let at = along.length - 1;
  const say = (/** @type {number} */ i) => {
    at = Math.max(0, Math.min(along.length - 1, i));
    mark.setAttribute("x1", String(across(drawn, at)));
    mark.setAttribute("x2", String(across(drawn, at)));
    const parts = rows.flatMap((row, k) => [
      k ? ", " : "",
      names ? word(names[k]) : "",
      " ",
      h("b", { class: "value" }, brief(row[at])),
    ]);
    replace(told, h("span", { class: "muted" }, `${axis} ${along[at]}: `), ...parts);
  };
  say(at);
  stage.addEventListener("mousemove", (event) => {
    const box = /** @type {Element} */ (stage.firstElementChild).getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * WIDE - LEFT) / (WIDE - LEFT - EDGE);
    mark.setAttribute("visibility", "visible");
    say(Math.round(share * (along.length - 1)));
  });
  stage.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    mark.setAttribute("visibility", "visible");
    say(at + step);
  });
}

/** Colour is not the only difference. @param {number} k */
function dashes(k) {
  return [null, "6 3", "2 3", "8 3 2 3", "1 4", "12 4"][k % 6];
}

/** @param {string[]} names */
function legend(names) {
  return h(
    "figcaption",
    { class: "legend" },
    ...names.flatMap((name, k) => [
      svg(
        "svg",
        { width: 28, height: 8, "aria-hidden": "true" },
        svg("line", {
          x1: 0,
          x2: 28,
          y1: 4,
          y2: 4,
          class: `curve ${ROLES[k % ROLES.length]}`,
          "stroke-dasharray": dashes(k),
        }),
      ),
      word(name),
    ]),
  );
}

/** @param {number[][]} rows @param {boolean} log */
function scaled(rows, log) {
  const drawn = (/** @type {number} */ number) => Number.isFinite(number) && (!log || number > 0);
  const all = rows.flat().filter(drawn);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const of = (/** @type {number} */ number) => (log ? Math.log10(number) : number);
  const share = (/** @type {number} */ number) => (high > low ? (of(number) - of(low)) / (of(high) - of(low)) : 0.5);
  return { low, high, drawn, share };
}
