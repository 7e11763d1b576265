// @ts-check
/** Numbers over steps as lines; pointing at a step tells them all. */
import { h, replace, svg } from "./dom.js";
import { brief, shown } from "./format.js";

/** @typedef {{name: string, role: string, points: [number, number][], dots?: boolean}} Line */

const [WIDE, TALL, LEFT, BELOW] = [360, 160, 56, 20];
const MOST = 360;

/** @param {string} title @param {Line[]} lines */
export function chart(title, lines) {
  const given = lines.filter((line) => line.points.length);
  const last = given.map((line) => `${line.name} ${told(line.points[line.points.length - 1][1])}`);
  const readout = h("output", { class: "readout muted" }, last.join(", "));
  return h(
    "figure",
    { class: "card chart-card" },
    h("h2", {}, title),
    given.length ? picture(title, given, readout) : h("p", { class: "muted" }, "Nothing yet."),
    readout,
  );
}

/** @param {string} title @param {Line[]} lines @param {HTMLElement} readout */
function picture(title, lines, readout) {
  const all = lines.flatMap((line) => line.points);
  const [x0, x1] = ends(all.map(([x]) => x));
  const [y0, y1] = ends(all.map(([, y]) => y));
  const x = (/** @type {number} */ step) => LEFT + ((step - x0) / (x1 - x0 || 1)) * (WIDE - LEFT - 8);
  const y = (/** @type {number} */ value) => TALL - BELOW - ((value - y0) / (y1 - y0 || 1)) * (TALL - BELOW - 8);
  const mark = svg("line", { class: "mark", y1: 8, y2: TALL - BELOW, visibility: "hidden" });
  /** @param {MouseEvent} event */
  const point = (event) => {
    const box = node.getBoundingClientRect();
    const step = x0 + ((((event.clientX - box.left) / box.width) * WIDE - LEFT) / (WIDE - LEFT - 8)) * (x1 - x0);
    const near = lines.map((line) => ({ line, point: nearest(line.points, step) }));
    mark.setAttribute("visibility", "visible");
    mark.setAttribute("x1", String(x(near[0].point[0])));
    mark.setAttribute("x2", String(x(near[0].point[0])));
    replace(readout, near.map(({ line, point }) => `step ${point[0]}: ${line.name} ${told(point[1])}`).join(", "));
  };
  const spoken = lines.map(
    ({ name, points }) => `${name} from ${told(points[0][1])} to ${told(points[points.length - 1][1])}`,
  );
  const node = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} ${TALL}`,
      role: "img",
      class: "chart",
      "aria-label": `${title} from step ${x0} to ${x1}: ${spoken.join("; ")}`,
      onmousemove: point,
    },
    svg("line", { class: "axis", x1: LEFT, x2: WIDE - 8, y1: TALL - BELOW, y2: TALL - BELOW }),
    svg("text", { class: "tick", x: LEFT - 4, y: 14, "text-anchor": "end" }, brief(y1)),
    svg("text", { class: "tick", x: LEFT - 4, y: TALL - BELOW, "text-anchor": "end" }, brief(y0)),
    svg("text", { class: "tick", x: LEFT, y: TALL - 6 }, String(x0)),
    svg("text", { class: "tick", x: WIDE - 8, y: TALL - 6, "text-anchor": "end" }, String(x1)),
    ...lines.map((line) => drawn(line, x, y)),
    mark,
  );
  return node;
}

/** @param {Line} line @param {(step: number) => number} x @param {(value: number) => number} y */
function drawn(line, x, y) {
  if (line.dots) {
    const dot = (/** @type {[number, number]} */ [step, value]) =>
      svg("circle", { cx: x(step), cy: y(value), r: 3, class: `dot ${line.role}` });
    return svg("g", {}, ...line.points.map(dot));
  }
  const points = thinned(line.points).map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`);
  return svg("polyline", { class: `curve ${line.role}`, points: points.join(" ") });
}

/** @param {number} value */
function told(value) {
  if (Math.abs(value) < 100) return shown(value);
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1000 ? 1 : 0 });
}

/** @param {number[]} numbers */
function ends(numbers) {
  return numbers.reduce(
    ([low, high], n) => (Number.isFinite(n) ? [Math.min(low, n), Math.max(high, n)] : [low, high]),
    [Infinity, -Infinity],
  );
}

/** At most as many points as there are pixels: of each bucket the smallest and the largest. @param {[number, number][]} points */
function thinned(points) {
  if (points.length <= MOST) return points;
  const size = Math.ceil((2 * points.length) / MOST);
  /** @type {[number, number][]} */
  const kept = [];
  for (let i = 0; i < points.length; i += size) {
    const bucket = points.slice(i, i + size).sort((a, b) => a[1] - b[1]);
    kept.push(...[bucket[0], bucket[bucket.length - 1]].sort((a, b) => a[0] - b[0]));
  }
  return kept;
}

/** @param {[number, number][]} points @param {number} step */
function nearest(points, step) {
  return points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best));
}
