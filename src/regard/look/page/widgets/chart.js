// @ts-check
/** Line charts with a marker and a readout: values per training step, and rows of a lesson along a labeled axis. */
import { h, replace, svg, word } from "../core/dom.js";
import { formatNumber, formatShort } from "../core/format.js";

/** @typedef {{name: string, role: string, points: [number, number][], dots?: boolean}} Line */
/** @typedef {{width: number, height: number, left: number, bottom: number, top: number, edge: number}} Size */
/** @typedef {{sign: string, axes: string[], labels: Record<string, string[]>, data: any, look: string}} CurveData */

const SMALL = { width: 360, height: 176, left: 56, bottom: 20, top: 24, edge: 8 };
const LARGE = { width: 480, height: 216, left: 60, bottom: 24, top: 26, edge: 10 };
const ROLES = ["attention", "query", "key", "value", "chosen", "source"];
/** Dash patterns, so that color is not the only difference between lines. */
const DASHES = [null, "6 3", "2 3", "8 3 2 3", "1 4", "12 4"];
/** Points of a line that are drawn at most, about one per pixel. */
const MAX_POINTS = 360;

/** Chart of values per training step, or along another axis. @param {string} title @param {Line[]} lines @param {string} [note] under it @param {{axis?: string, heading?: string}} [titles] of the horizontal axis, and of the chart if not that of the vertical axis */
export function chart(title, lines, note = "", { axis = "step", heading = title } = {}) {
  const filled = lines.filter((line) => line.points.length);
  const latest = filled.map(({ name, points }) => {
    const [at, value] = points[points.length - 1];
    return `${axis === "step" ? "" : `${axis} ${at}: `}${name} ${formatValue(value)}`;
  });
  const readout = h("output", { class: "readout muted" }, latest.join(", "));
  return h(
    "figure",
    { class: "card chart-card" },
    h("h2", {}, heading),
    filled.length ? stepPlot(title, filled, readout, axis) : h("p", { class: "muted" }, "No data yet."),
    readout,
    note ? h("figcaption", { class: "muted" }, note) : null,
  );
}

/** @param {string} title @param {Line[]} lines @param {HTMLElement} readout @param {string} axis */
function stepPlot(title, lines, readout, axis) {
  const points = lines.flatMap((line) => line.points);
  const [steps, values] = [scale(points.map(([step]) => step)), scale(points.map(([, value]) => value))];
  const ranges = lines.map(
    ({ name, points }) => `${name} from ${formatValue(points[0][1])} to ${formatValue(points[points.length - 1][1])}`,
  );
  const label = `${title} from ${axis} ${steps.low} to ${steps.high}: ${ranges.join("; ")}`;
  const shapes = lines.map((line) => {
    const places = (line.dots ? line.points : downsample(line.points))
      .filter(([, value]) => values.valid(value))
      .map(([step, value]) => place(SMALL, steps.share(step), values.share(value)));
    if (!line.dots && places.length > 1) return polyline(places, { class: `curve ${line.role}` });
    return svg("g", {}, ...places.map(([cx, cy]) => svg("circle", { cx, cy, r: 3, class: `dot ${line.role}` })));
  });
  const ends = /** @type {[string, string]} */ ([steps.low, steps.high].map((end) => end.toLocaleString("en")));
  const { node, mark, pointer } = plot(SMALL, label, values, ends, shapes, [axis, title]);
  node.addEventListener("mousemove", (event) => {
    const step = steps.low + pointer(event) * (steps.high - steps.low);
    const nearest = lines.map((line) => ({ name: line.name, point: nearestPoint(line.points, step) }));
    mark(steps.share(nearest[0].point[0]));
    replace(
      readout,
      nearest.map(({ name, point }) => `${axis} ${point[0]}: ${name} ${formatValue(point[1])}`).join(", "),
    );
  });
  return node;
}

/** Curves of one or more rows along an axis, linear or logarithmic; read with the pointer or the arrow keys. @param {CurveData} value */
export function curves({ sign, axes, labels, data, look }) {
  /** @type {number[][]} */
  const rows = axes.length === 2 ? data : [data];
  const names = axes.length === 2 ? (labels[axes[0]] ?? rows.map((_, i) => String(i + 1))) : null;
  const axis = axes[axes.length - 1];
  const ticks = labels[axis] ?? rows[0].map((_, i) => String(i));
  const values = scale(rows.flat(), look === "log");
  const share = (/** @type {number} */ i) => (ticks.length > 1 ? i / (ticks.length - 1) : 0.5);
  const ranges = rows.map(
    (row, k) => `${names ? `${names[k]} ` : ""}from ${formatShort(row[0])} to ${formatShort(row[row.length - 1])}`,
  );
  const shapes = rows.map((row, k) =>
    polyline(
      row.flatMap((number, i) => (values.valid(number) ? [place(LARGE, share(i), values.share(number))] : [])),
      { class: `curve ${ROLES[k % ROLES.length]}`, "stroke-dasharray": DASHES[k % DASHES.length] },
    ),
  );
  const ends = /** @type {[string, string]} */ ([ticks[0], ticks[ticks.length - 1]]);
  const drawing = plot(LARGE, `${sign} along ${axis}, ${ranges.join("; ")}`, values, ends, shapes, [axis, sign]);
  const readout = h("output", { class: "readout" });
  const stage = h(
    "div",
    {
      class: "curves",
      tabindex: "0",
      role: "group",
      "aria-label": `${sign}. Left and right arrow keys read the values.`,
    },
    drawing.node,
  );
  readAlong(stage, ticks.length, drawing, share, (i) => {
    const parts = rows.flatMap((row, k) => [
      k ? ", " : "",
      names ? word(names[k]) : "",
      " ",
      h("b", { class: "value" }, formatShort(row[i])),
    ]);
    replace(readout, h("span", { class: "muted" }, `${axis} ${ticks[i]}: `), ...parts);
  });
  const note = look === "log" ? h("p", { class: "muted small" }, "The axis is logarithmic.") : null;
  return h("figure", { class: "figure lesson-wide" }, stage, names ? legend(names) : null, note, readout);
}

/**
 * Follows the pointer and the arrow keys from the last position on.
 * @param {HTMLElement} stage @param {number} count @param {ReturnType<typeof plot>} drawing
 * @param {(i: number) => number} share @param {(i: number) => void} show
 */
function readAlong(stage, count, { mark, pointer }, share, show) {
  let at = count - 1;
  const go = (/** @type {number} */ i) => {
    at = Math.max(0, Math.min(count - 1, i));
    mark(share(at));
    show(at);
  };
  show(at);
  stage.addEventListener("mousemove", (event) => go(Math.round(pointer(event) * (count - 1))));
  stage.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    go(at + step);
  });
}

/** Maps numbers to 0..1; `valid` is whether one can be drawn. @param {number[]} numbers @param {boolean} [log] */
function scale(numbers, log = false) {
  const valid = (/** @type {number} */ number) => Number.isFinite(number) && (!log || number > 0);
  let [low, high] = [Infinity, -Infinity];
  for (const number of numbers) if (valid(number)) [low, high] = [Math.min(low, number), Math.max(high, number)];
  const of = (/** @type {number} */ number) => (log ? Math.log10(number) : number);
  const share = (/** @type {number} */ number) => (high > low ? (of(number) - of(low)) / (of(high) - of(low)) : 0.5);
  return { low, high, valid, share };
}

/** @param {Size} size @param {number} x share of the width @param {number} y share of the height @returns {[number, number]} */
function place({ width, height, left, bottom, top, edge }, x, y) {
  return [left + x * (width - left - edge), height - bottom - y * (height - bottom - top)];
}

/** @param {[number, number][]} places @param {Record<string, string|null>} props */
function polyline(places, props) {
  return svg("polyline", { ...props, points: places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") });
}

/**
 * The picture: horizontal axis, ticks at its ends, lines, and a vertical marker that `mark` moves.
 * @param {Size} size @param {string} label @param {{low: number, high: number}} values @param {[string, string]} ends
 * @param {SVGElement[]} shapes @param {[string, string]} titles of the horizontal and of the vertical axis
 */
function plot(size, label, values, ends, shapes, titles) {
  const { width, height, left, bottom, top, edge } = size;
  const marker = svg("line", { class: "mark", y1: top, y2: height - bottom, visibility: "hidden" });
  const tick = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ text, anchor = "end") =>
    svg("text", { class: "tick", x, y, "text-anchor": anchor }, text);
  const node = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart", "aria-label": label },
    svg("line", { class: "axis", x1: left, x2: width - edge, y1: height - bottom, y2: height - bottom }),
    tick(left - 5, top + 4, formatShort(values.high)),
    tick(left - 5, height - bottom, formatShort(values.low)),
    tick(left, height - 7, ends[0], "start"),
    tick(width - edge, height - 7, ends[1]),
    svg(
      "text",
      { class: "tick axis-title", x: (left + width - edge) / 2, y: height - 7, "text-anchor": "middle" },
      titles[0],
    ),
    svg("text", { class: "tick axis-title", x: 4, y: 10 }, titles[1]),
    ...shapes,
    marker,
  );
  const mark = (/** @type {number} */ share) => {
    for (const name of ["x1", "x2"]) marker.setAttribute(name, String(place(size, share, 0)[0]));
    marker.setAttribute("visibility", "visible");
  };
  const pointer = (/** @type {MouseEvent} */ event) => {
    const box = node.getBoundingClientRect();
    return (((event.clientX - box.left) / box.width) * width - left) / (width - left - edge);
  };
  return { node, mark, pointer };
}

/** @param {string[]} names */
function legend(names) {
  const sample = (/** @type {number} */ k) =>
    svg("line", {
      ...{ x1: 0, x2: 28, y1: 4, y2: 4, class: `curve ${ROLES[k % ROLES.length]}` },
      "stroke-dasharray": DASHES[k % DASHES.length],
    });
  return h(
    "figcaption",
    { class: "legend" },
    ...names.flatMap((name, k) => [svg("svg", { width: 28, height: 8, "aria-hidden": "true" }, sample(k)), word(name)]),
  );
}

/** @param {number} value */
function formatValue(value) {
  if (Math.abs(value) < 100) return formatNumber(value);
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1000 ? 1 : 0 });
}

/** The smallest and the largest value per bucket, so that peaks stay visible. @param {[number, number][]} points */
function downsample(points) {
  if (points.length <= MAX_POINTS) return points;
  const size = Math.ceil((2 * points.length) / MAX_POINTS);
  /** @type {[number, number][]} */
  const sampled = [];
  for (let i = 0; i < points.length; i += size) {
    const bucket = points.slice(i, i + size).sort((a, b) => a[1] - b[1]);
    sampled.push(...[bucket[0], bucket[bucket.length - 1]].sort((a, b) => a[0] - b[0]));
  }
  return sampled;
}

/** @param {[number, number][]} points @param {number} step */
function nearestPoint(points, step) {
  return points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best));
}
