// @ts-check
/** Chart of one column of a forecast: past values, expected values, prediction interval; read with pointer or keys. */
import { h, replace, svg } from "../core/dom.js";
import { formatShort } from "../core/format.js";
import { roundTicks, spacedIndices } from "../core/ticks.js";

/** @typedef {import("../core/types.js").ForecastParts} ForecastParts */
/** @typedef {ForecastParts["columns"][number]} ForecastColumn */
/** @typedef {{x: (i: number) => number, y: (value: number) => number, width: number}} Scales */

const HEIGHT = 280;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 28, 52];
/** Width of a label of the time axis in pixels, and of the chart where none is known. */
const [LABEL, DEFAULT] = [104, 640];

export class TimeChart {
  /** @param {ForecastParts} forecast @param {ForecastColumn} column */
  constructor(forecast, column) {
    this.forecast = forecast;
    this.column = column;
    this.past = column.past.length;
    this.size = this.past + column.expected.length;
    this.at = this.past;
    this.drawn = 0;
    this.picture = svg("svg", { class: "time-chart", role: "img", "aria-label": this.summary() });
    this.marker = svg("line", { class: "mark", y1: TOP, y2: HEIGHT - BOTTOM });
    this.readout = h("output", { class: "readout" });
    const stage = h(
      "div",
      {
        class: "chart-stage",
        tabindex: "0",
        role: "group",
        "aria-label": `${column.name}. Left and right arrow keys read the values.`,
        onmousemove: (/** @type {MouseEvent} */ event) => this.point(event),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      },
      this.picture,
    );
    this.stage = stage;
    this.node = h("figure", { class: "figure" }, stage, this.readout, this.legend());
    this.draw(DEFAULT);
    this.show(this.at);
  }

  get interval() {
    return `${Number((100 * this.forecast.level).toPrecision(4))} % interval`;
  }

  summary() {
    const { name, past, expected } = this.column;
    const [now, end] = [past.at(-1), expected.at(-1)];
    const before = now === undefined ? "" : `${formatShort(now)} at the last row, `;
    return `${name} over ${this.forecast.time}: ${before}${formatShort(end ?? NaN)} expected after ${expected.length} rows.`;
  }

  /** Draws for a width in pixels. @param {number} width */
  draw(width) {
    if (width === this.drawn) return;
    this.drawn = width;
    const { past, expected, lower, upper } = this.column;
    const scales = this.scales(width);
    const { x, y } = scales;
    const points = (/** @type {number[]} */ values, first = 0) =>
      values.map((value, i) => `${x(first + i).toFixed(1)},${y(value).toFixed(1)}`);
    const last = past.slice(-1);
    const from = this.past - last.length;
    const ahead = (/** @type {number[]} */ values) => points([...last, ...values], from);
    const band = [...ahead(upper), ...ahead(lower).reverse()].join(" ");
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    replace(
      this.picture,
      this.windowArea(scales),
      ...this.axes(scales),
      svg("polygon", { class: "band", points: band }),
      svg("polyline", { class: "curve past", points: points(past).join(" ") }),
      svg("polyline", { class: "curve expected", points: ahead(expected).join(" ") }),
      ...(expected.length <= 60
        ? expected.map((value, i) => svg("circle", { class: "dot expected", cx: x(this.past + i), cy: y(value), r: 3 }))
        : []),
      this.marker,
    );
    this.show(this.at);
  }

  /** @param {number} width @returns {Scales} */
  scales(width) {
    const { past, expected, lower, upper } = this.column;
    const values = [...past, ...expected, ...lower, ...upper].filter(Number.isFinite);
    let [low, high] = [Math.min(...values), Math.max(...values)];
    const edge = (high - low || Math.abs(high) || 1) * 0.06;
    [low, high] = [low - edge, high + edge];
    const x = (/** @type {number} */ i) => LEFT + (i / Math.max(1, this.size - 1)) * (width - LEFT - RIGHT);
    const y = (/** @type {number} */ value) =>
      HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    this.limits = [low, high];
    return { x, y, width };
  }

  /** The rows that the model reads. @param {Scales} scales */
  windowArea({ x }) {
    const first = Math.max(0, this.past - this.forecast.window);
    if (!this.past || first === this.past) return null;
    const [left, right] = [x(first), x(this.past - 1)];
    return svg("rect", {
      ...{ class: "window-area", x: left, width: Math.max(0, right - left) },
      ...{ y: TOP, height: HEIGHT - TOP - BOTTOM },
    });
  }

  /** Axes with ticks, titles and grid lines. @param {Scales} scales */
  axes({ x, y, width }) {
    const [low, high] = /** @type {number[]} */ (this.limits);
    const text = (/** @type {Record<string, any>} */ props, /** @type {string} */ content) =>
      svg("text", { class: "tick", ...props }, content);
    const rows = roundTicks(low, high, 5).flatMap((value) => [
      svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      text({ x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, formatShort(value)),
    ]);
    const shown = spacedIndices(this.size, Math.floor((width - LEFT - RIGHT) / LABEL) + 1);
    const columns = shown.flatMap((i) => {
      const end = x(i) > width - LABEL / 2;
      return [
        svg("line", { class: "axis", x1: x(i), x2: x(i), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }),
        text({ x: x(i), y: HEIGHT - BOTTOM + 18, "text-anchor": end ? "end" : "middle" }, this.forecast.times[i]),
      ];
    });
    const axis = { class: "axis", x1: LEFT, x2: width - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM };
    const middle = (LEFT + width - RIGHT) / 2;
    return [
      ...rows,
      svg("line", axis),
      ...columns,
      text({ class: "tick axis-title", x: 4, y: 14 }, this.column.name),
      text({ class: "tick axis-title", x: middle, y: HEIGHT - 8, "text-anchor": "middle" }, this.forecast.time),
    ];
  }

  /** @param {number} i */
  show(i) {
    this.at = Math.max(0, Math.min(this.size - 1, i));
    const { x } = this.scales(this.drawn);
    for (const name of ["x1", "x2"]) this.marker.setAttribute(name, String(x(this.at)));
    const { past, expected, lower, upper } = this.column;
    const value = (/** @type {number} */ number) => h("b", { class: "value" }, formatShort(number));
    const ahead = this.at - this.past;
    const parts =
      ahead < 0
        ? ["past ", value(past[this.at])]
        : [
            `expected `,
            value(expected[ahead]),
            `, ${this.interval} ${formatShort(lower[ahead])} to ${formatShort(upper[ahead])}`,
          ];
    replace(this.readout, h("span", { class: "muted" }, `${this.forecast.times[this.at]}: `), ...parts);
  }

  /** @param {MouseEvent} event */
  point(event) {
    const box = this.picture.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width) * this.drawn;
    this.show(Math.round(((share - LEFT) / (this.drawn - LEFT - RIGHT)) * (this.size - 1)));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: this.size - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(to);
  }

  legend() {
    const sample = (/** @type {SVGElement} */ shape) =>
      svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, shape);
    const line = (/** @type {string} */ kind) =>
      sample(svg("line", { class: `curve ${kind}`, x1: 0, x2: 28, y1: 6, y2: 6 }));
    const area = (/** @type {string} */ kind) =>
      sample(svg("rect", { class: kind, x: 0, y: 0, width: 28, height: 12 }));
    const read = Math.min(this.past, this.forecast.window);
    return h(
      "figcaption",
      { class: "legend" },
      line("past"),
      "past",
      line("expected"),
      "expected",
      area("band"),
      this.interval,
      ...(read ? [area("window-area"), `${read} rows that the model reads`] : []),
    );
  }
}
