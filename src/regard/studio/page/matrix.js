// @ts-check
/** A matrix on a canvas, with words on its sides. Arrows move, Enter explains; the same numbers are in a table. */
import { css, DECADES, ink, picture, rgb, role } from "./colour.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { line, scrolled } from "./table.js";

/** @typedef {import("./colour.js").Ramp} Ramp */
/**
 * @typedef {{title: string, numbers: Float64Array, rows: string[], columns: string[], rowTitle: string,
 *   columnTitle: string, ramp: Ramp, top: number, sums?: boolean, largest?: number, roles?: [string, string],
 *   selected?: [number, number]|null,
 *   onselect?: (row: number, column: number) => void, onexplain?: (row: number, column: number) => void}} Matrix
 */

const FONT = "12px system-ui, sans-serif";
const TABLE = 4000;
/** Cells that are drawn one by one; more are drawn at once, as one picture. */
const SINGLE = 10000;
/** Pixels of the tallest picture. */
const TALLEST = 4096;

/** @param {Matrix} matrix */
export function matrix(matrix) {
  return new MatrixView(matrix).node;
}

export class MatrixView {
  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.matrix = matrix;
    this.base = h("canvas", { role: "img", "aria-label": summary(matrix) });
    this.over = h("canvas", { class: "over", "aria-hidden": "true" });
    this.readout = h("output", { class: "readout", "aria-live": "polite" });
    const spoken = `${matrix.title}. Arrow keys move${matrix.onexplain ? ", Enter explains" : ""}.`;
    this.stage = h(
      "div",
      { class: "matrix", tabindex: "0", role: "group", "data-focus": "matrix", "aria-label": spoken },
      this.base,
      this.over,
    );
    this.node = h("figure", { class: "figure" }, this.stage, this.readout, legend(matrix), asTable(matrix));
    this.plan = layout(matrix, 600);
    this.width = 0;
    /** @type {[number, number]|null} */
    this.at = matrix.selected && this.inside(matrix.selected) ? matrix.selected : null;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  listen() {
    const { stage, matrix } = this;
    stage.addEventListener("mousemove", (event) => this.mark(this.under(event)));
    stage.addEventListener("mouseleave", () => this.mark());
    stage.addEventListener("click", (event) => {
      const place = this.under(event);
      if (!place) return;
      this.choose(place);
      matrix.onexplain?.(...place);
    });
    stage.addEventListener("keydown", (event) => {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const move = moves[/** @type {keyof typeof moves} */ (event.key)];
      const [m, n] = [matrix.rows.length, matrix.columns.length];
      if (move) this.choose(this.at ? [clamp(this.at[0] + move[0], m), clamp(this.at[1] + move[1], n)] : [0, 0]);
      else if (event.key === "Enter" && this.at) matrix.onexplain?.(...this.at);
      else return;
      event.preventDefault();
    });
  }

  /** @param {[number, number]} place */
  inside([i, j]) {
    return i >= 0 && i < this.matrix.rows.length && j >= 0 && j < this.matrix.columns.length;
  }

  draw() {
    if (this.node.clientWidth === this.width) return; // only its own height has changed
    this.width = this.node.clientWidth;
    this.plan = layout(this.matrix, this.width || 600);
    paint(this.base, this.plan, this.matrix);
    this.mark();
  }

  /** @param {[number, number]|null} [hover] */
  mark(hover = null) {
    highlight(this.over, this.plan, this.at, hover);
    const place = hover ?? this.at;
    const nothing = ["Point at a cell, or use the arrow keys."];
    replace(this.readout, ...(place ? told(this.matrix, place[0], place[1]) : nothing));
  }

  /** @param {MouseEvent} event @returns {[number, number]|null} */
  under(event) {
    const box = this.base.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top - this.plan.top) / this.plan.high);
    const j = Math.floor((event.clientX - box.left - this.plan.left) / this.plan.cell);
    return this.inside([i, j]) ? [i, j] : null;
  }

  /** Somebody chose a cell here. @param {[number, number]} place */
  choose(place) {
    this.show(place);
    this.matrix.onselect?.(...place);
  }

  /** A cell was chosen, here or elsewhere; null: none. @param {[number, number]|null} place */
  show(place) {
    this.at = place && this.inside(place) ? place : null;
    this.mark();
  }
}

/** @param {number} i @param {number} size */
function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

/** @param {Matrix} matrix @param {number} i @param {number} j */
function told(matrix, i, j) {
  const value = matrix.numbers[i * matrix.columns.length + j];
  const number = h("b", { class: "value" }, shown(value));
  return [word(matrix.rows[i]), " → ", word(matrix.columns[j]), ": ", number];
}

/** @param {Matrix} matrix */
function summary(matrix) {
  const n = matrix.columns.length;
  const best = matrix.rows.slice(0, 12).map((row, i) => {
    let j = 0;
    for (let k = 1; k < n; k++) if (matrix.numbers[i * n + k] > matrix.numbers[i * n + j]) j = k;
    return `${row} at ${matrix.columns[j]} (${shown(matrix.numbers[i * n + j])})`;
  });
  return `${matrix.title}: ${matrix.rows.length} x ${n} numbers. Largest of each ${matrix.rowTitle}: ${best.join("; ")}.`;
}

/** @param {Matrix} matrix @param {number} width */
function layout(matrix, width) {
  const context = measuring();
  const longest = (/** @type {string[]} */ words) =>
    Math.min(140, Math.max(16, ...words.map((w) => context.measureText(w).width)));
  const left = longest(matrix.rows) + 16;
  const right = matrix.sums ? 56 : 8;
  const tall = longest(matrix.columns) * 0.75 + 16;
  const room = width - left - right - tall * 0.6;
  const cell = Math.max(3, Math.min(matrix.largest ?? 44, Math.floor(room / matrix.columns.length)));
  // few rows are easier to hit when they are taller; of many, a picture has to end somewhere
  const high =
    matrix.rows.length <= 16
      ? Math.max(cell, 22)
      : Math.max(3, Math.min(cell, Math.floor(TALLEST / matrix.rows.length)));
  return {
    left,
    cell,
    high,
    top: Math.ceil(tall),
    width: Math.ceil(left + cell * matrix.columns.length + Math.max(right, tall * 0.6)),
    height: Math.ceil(tall) + high * matrix.rows.length + 8,
  };
}

/** @type {CanvasRenderingContext2D|null} */
let measured = null;
function measuring() {
  measured ??= document.createElement("canvas").getContext("2d");
  const context = /** @type {CanvasRenderingContext2D} */ (measured);
  context.font = FONT;
  return context;
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** @param {HTMLCanvasElement} canvas @param {ReturnType<typeof layout>} plan @param {Matrix} matrix */
function paint(canvas, plan, matrix) {
  const context = sized(canvas, plan.width, plan.height);
  const { cell, high, left, top } = plan;
  const n = matrix.columns.length;
  context.font = FONT;
  const gap = Math.min(cell, high) > 6 && n * matrix.rows.length <= SINGLE ? 1 : 0;
  if (!gap) {
    context.imageSmoothingEnabled = false;
    context.drawImage(
      picture(matrix.numbers, matrix.rows.length, n, matrix.top, matrix.ramp),
      left,
      top,
      n * cell,
      matrix.rows.length * high,
    );
    return labels(context, plan, matrix);
  }
  const inside = cell >= 34 && high >= 16;
  for (let i = 0; i < matrix.rows.length; i++) {
    for (let j = 0; j < n; j++) {
      const value = matrix.numbers[i * n + j];
      const colour = rgb(value, matrix.top, matrix.ramp);
      context.fillStyle = css(colour);
      context.fillRect(left + j * cell, top + i * high, cell - gap, high - gap);
      if (inside)
        number(context, short(value, matrix.ramp), left + (j + 0.5) * cell, top + (i + 0.5) * high, ink(colour));
    }
  }
  labels(context, plan, matrix);
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y
 * @param {string} colour
 */
function number(context, text, x, y, colour) {
  context.fillStyle = colour;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = "11px system-ui, sans-serif";
  context.fillText(text, x - 0.5, y);
  context.font = FONT;
}

/** As many digits as a cell has room for. @param {number} value @param {Ramp} ramp */
function short(value, ramp) {
  if (Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const text =
    size >= 1000 || (ramp === "power" && value !== 0 && size < 0.01) ? value.toExponential(0) : value.toFixed(2);
  return text.replace(/-/g, "−");
}

/** @param {CanvasRenderingContext2D} context @param {ReturnType<typeof layout>} plan @param {Matrix} matrix */
function labels(context, plan, matrix) {
  const { cell, high, left, top } = plan;
  const every = Math.ceil(13 / high);
  const n = matrix.columns.length;
  const roles = matrix.roles ?? ["text", "text"];
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = role(roles[0]);
  for (let i = 0; i < matrix.rows.length; i += every) {
    context.fillText(cut(context, matrix.rows[i]), left - 8, top + (i + 0.5) * high);
  }
  if (matrix.sums) {
    context.textAlign = "left";
    context.fillStyle = role("muted");
    for (let i = 0; i < matrix.rows.length; i += every) {
      let sum = 0;
      for (let j = 0; j < n; j++) sum += matrix.numbers[i * n + j] || 0;
      context.fillText(`Σ ${sum.toFixed(2)}`, left + n * cell + 6, top + (i + 0.5) * high);
    }
  }
  context.textAlign = "left";
  context.fillStyle = role(roles[1]);
  for (let j = 0; j < n; j += Math.ceil(16 / cell)) {
    context.save();
    context.translate(left + (j + 0.5) * cell, top - 6);
    context.rotate(-Math.PI / 4);
    context.fillText(cut(context, matrix.columns[j]), 0, 0);
    context.restore();
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} text */
function cut(context, text) {
  if (context.measureText(text).width <= 140) return text;
  const characters = Array.from(text);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > 140) characters.pop();
  return `${characters.join("")}…`;
}

/**
 * @param {HTMLCanvasElement} canvas @param {ReturnType<typeof layout>} plan
 * @param {[number, number]|null} at @param {[number, number]|null} hover
 */
function highlight(canvas, plan, at, hover) {
  const context = sized(canvas, plan.width, plan.height);
  for (const [place, name] of /** @type {const} */ ([
    [hover, "muted"],
    [at, "chosen"],
  ])) {
    if (!place) continue;
    context.strokeStyle = role(name);
    context.lineWidth = 2;
    context.strokeRect(plan.left + place[1] * plan.cell, plan.top + place[0] * plan.high, plan.cell - 1, plan.high - 1);
  }
}

/** @param {{ramp: Ramp, top: number, numbers: ArrayLike<number>}} matrix */
export function legend(matrix) {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < matrix.numbers.length; i++) {
    const value = matrix.numbers[i];
    if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  const canvas = h("canvas", { "aria-hidden": "true", class: "ramp" });
  const context = sized(canvas, 96, 10);
  const start = { signed: -matrix.top, weight: 0, power: matrix.top / 10 ** DECADES }[matrix.ramp];
  for (let x = 0; x < 96; x++) {
    const value =
      matrix.ramp === "power" ? start * 10 ** ((DECADES * x) / 95) : start + ((matrix.top - start) * x) / 95;
    context.fillStyle = css(rgb(value, matrix.top, matrix.ramp));
    context.fillRect(x, 0, 1, 10);
  }
  const range = low > high ? "no numbers" : `smallest ${shown(low)}, largest ${shown(high)}`;
  return h(
    "figcaption",
    { class: "legend" },
    shown(start),
    canvas,
    shown(matrix.top),
    h("span", { class: "muted" }, range),
  );
}

/** The same numbers for those who do not see the picture, or want to read them. @param {Matrix} matrix */
function asTable(matrix) {
  const n = matrix.columns.length;
  const rows = Math.max(1, Math.min(matrix.rows.length, Math.floor(TABLE / Math.max(1, Math.min(n, 100)))));
  const columns = Math.min(n, 100);
  const details = h("details", { class: "as-table" }, h("summary", {}, "As a table"));
  details.addEventListener("toggle", () => {
    if (details.querySelector("table")) return;
    const head = matrix.columns.slice(0, columns).map((name) => h("th", { scope: "col" }, word(name)));
    const body = matrix.rows.slice(0, rows).map((name, i) =>
      line(
        word(name),
        Array.from({ length: columns }, (_, j) => shown(matrix.numbers[i * n + j])),
      ),
    );
    const whole = h(
      "table",
      { class: "numbers" },
      h("thead", {}, h("tr", {}, h("td", {}), ...head)),
      h("tbody", {}, ...body),
    );
    details.append(scrolled(`${matrix.title} as a table`, whole));
    if (rows < matrix.rows.length || columns < n)
      details.append(h("p", { class: "muted" }, `The first ${rows} x ${columns}; Numbers has all.`));
  });
  return details;
}
