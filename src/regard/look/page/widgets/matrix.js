// @ts-check
/** Heat map on a canvas with labeled rows and columns, readable with arrow keys and as a table. */
import { drawingContext } from "../core/canvas.js";
import { css, DECADES, heatImage, rgb, roleColor, textColor } from "../core/color.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { scrollBox, tableRow } from "./table.js";

/** @typedef {import("../core/color.js").Ramp} Ramp */
/**
 * @typedef {{title: string, numbers: Float64Array, rows: string[], columns: string[], rowTitle: string,
 *   columnTitle: string, ramp: Ramp, top: number, sums?: boolean, largest?: number, roles?: [string, string],
 *   selected?: [number, number]|null, frame?: {row: number|null, column: number|null},
 *   onselect?: (row: number, column: number) => void, onexplain?: (row: number, column: number) => void}} Matrix
 */

const FONT = "12px system-ui, sans-serif";
const MAX_TABLE_CELLS = 4000;
/** Cells that are drawn one by one; larger matrices are drawn as one image. */
const MAX_CELLS = 10000;
/** Maximum height in pixels. */
const MAX_HEIGHT = 4096;

/** @param {Matrix} matrix */
export function matrix(matrix) {
  return new MatrixView(matrix).node;
}

export class MatrixView {
  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.matrix = matrix;
    this.base = h("canvas", { role: "img", "aria-label": summary(matrix) });
    this.overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
    this.readout = h("output", { class: "readout", "aria-live": "polite" });
    const label = `${matrix.title}. Arrow keys move${matrix.onexplain ? ", Enter explains" : ""}.`;
    this.stage = h(
      "div",
      { class: "matrix", tabindex: "0", role: "group", "data-focus": "matrix", "aria-label": label },
      this.base,
      this.overlay,
    );
    this.node = h("figure", { class: "figure" }, this.stage, this.readout, legend(matrix), tableDetails(matrix));
    this.plan = layout(matrix, 600);
    this.width = 0;
    /** @type {[number, number]|null} */
    this.selected = matrix.selected && this.contains(matrix.selected) ? matrix.selected : null;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  listen() {
    const { stage, matrix } = this;
    stage.addEventListener("mousemove", (event) => this.update(this.cellAt(event)));
    stage.addEventListener("mouseleave", () => this.update());
    stage.addEventListener("click", (event) => {
      const cell = this.cellAt(event);
      if (!cell) return;
      this.choose(cell);
      matrix.onexplain?.(...cell);
    });
    stage.addEventListener("keydown", (event) => {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const move = moves[/** @type {keyof typeof moves} */ (event.key)];
      const [m, n] = [matrix.rows.length, matrix.columns.length];
      if (move)
        this.choose(
          this.selected ? [clamp(this.selected[0] + move[0], m), clamp(this.selected[1] + move[1], n)] : [0, 0],
        );
      else if (event.key === "Enter" && this.selected) matrix.onexplain?.(...this.selected);
      else return;
      event.preventDefault();
    });
  }

  /** @param {[number, number]} cell */
  contains([i, j]) {
    return i >= 0 && i < this.matrix.rows.length && j >= 0 && j < this.matrix.columns.length;
  }

  draw() {
    if (this.node.clientWidth === this.width) return; // only the height has changed
    this.width = this.node.clientWidth;
    this.plan = layout(this.matrix, this.width || 600);
    paint(this.base, this.plan, this.matrix);
    this.update();
  }

  /** @param {[number, number]|null} [hover] */
  update(hover = null) {
    highlight(this.overlay, this.plan, this.selected, hover, this.matrix);
    const cell = hover ?? this.selected;
    const hint = ["Point at a cell, or use the arrow keys."];
    replace(this.readout, ...(cell ? cellReadout(this.matrix, cell[0], cell[1]) : hint));
  }

  /** @param {MouseEvent} event @returns {[number, number]|null} */
  cellAt(event) {
    const box = this.base.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top - this.plan.top) / this.plan.high);
    const j = Math.floor((event.clientX - box.left - this.plan.left) / this.plan.cell);
    return this.contains([i, j]) ? [i, j] : null;
  }

  /** Selects a cell and reports it. @param {[number, number]} cell */
  choose(cell) {
    this.show(cell);
    this.matrix.onselect?.(...cell);
  }

  /** Shows a cell as selected; null: none. @param {[number, number]|null} cell */
  show(cell) {
    this.selected = cell && this.contains(cell) ? cell : null;
    this.update();
  }
}

/** @param {number} i @param {number} size */
function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

/** @param {Matrix} matrix @param {number} i @param {number} j */
function cellReadout(matrix, i, j) {
  const value = matrix.numbers[i * matrix.columns.length + j];
  const number = h("b", { class: "value" }, formatNumber(value));
  return [word(matrix.rows[i]), " → ", word(matrix.columns[j]), ": ", number];
}

/** @param {Matrix} matrix */
function summary(matrix) {
  const n = matrix.columns.length;
  const best = matrix.rows.slice(0, 12).map((row, i) => {
    let j = 0;
    for (let k = 1; k < n; k++) if (matrix.numbers[i * n + k] > matrix.numbers[i * n + j]) j = k;
    return `${row} at ${matrix.columns[j]} (${formatNumber(matrix.numbers[i * n + j])})`;
  });
  return `${matrix.title}: ${matrix.rows.length} x ${n} numbers. Largest of each ${matrix.rowTitle}: ${best.join("; ")}.`;
}

/** @param {Matrix} matrix @param {number} width */
function layout(matrix, width) {
  const context = measureContext();
  const longest = (/** @type {string[]} */ words) =>
    Math.min(140, Math.max(16, ...words.map((w) => context.measureText(w).width)));
  const left = longest(matrix.rows) + 16;
  const right = matrix.sums ? 56 : 8;
  const tall = longest(matrix.columns) * 0.75 + 16;
  const room = width - left - right - tall * 0.6;
  const cell = Math.max(3, Math.min(matrix.largest ?? 44, Math.floor(room / matrix.columns.length)));
  // few rows are tall, to be easier to hit; many rows are limited in total height
  const high =
    matrix.rows.length <= 16
      ? Math.max(cell, 22)
      : Math.max(3, Math.min(cell, Math.floor(MAX_HEIGHT / matrix.rows.length)));
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
let shared = null;
function measureContext() {
  shared ??= drawingContext(document.createElement("canvas"));
  const context = shared;
  context.font = FONT;
  return context;
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function resizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = drawingContext(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** @param {HTMLCanvasElement} canvas @param {ReturnType<typeof layout>} plan @param {Matrix} matrix */
function paint(canvas, plan, matrix) {
  const context = resizeCanvas(canvas, plan.width, plan.height);
  const { cell, high, left, top } = plan;
  const n = matrix.columns.length;
  context.font = FONT;
  const gap = Math.min(cell, high) > 6 && n * matrix.rows.length <= MAX_CELLS ? 1 : 0;
  if (!gap) {
    context.imageSmoothingEnabled = false;
    context.drawImage(
      heatImage(matrix.numbers, matrix.rows.length, n, matrix.top, matrix.ramp),
      left,
      top,
      n * cell,
      matrix.rows.length * high,
    );
    return drawLabels(context, plan, matrix);
  }
  const withNumbers = cell >= 34 && high >= 16;
  for (let i = 0; i < matrix.rows.length; i++) {
    for (let j = 0; j < n; j++) {
      const value = matrix.numbers[i * n + j];
      const color = rgb(value, matrix.top, matrix.ramp);
      context.fillStyle = css(color);
      context.fillRect(left + j * cell, top + i * high, cell - gap, high - gap);
      if (withNumbers)
        drawNumber(
          context,
          formatCell(value, matrix.ramp),
          left + (j + 0.5) * cell,
          top + (i + 0.5) * high,
          textColor(color),
        );
    }
  }
  drawLabels(context, plan, matrix);
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y
 * @param {string} color
 */
function drawNumber(context, text, x, y, color) {
  context.fillStyle = color;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = "11px system-ui, sans-serif";
  context.fillText(text, x - 0.5, y);
  context.font = FONT;
}

/** A number that fits into a cell. @param {number} value @param {Ramp} ramp */
function formatCell(value, ramp) {
  if (Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const text =
    size >= 1000 || (ramp === "log" && value !== 0 && size < 0.01) ? value.toExponential(0) : value.toFixed(2);
  return text.replace(/-/g, "−");
}

/** @param {CanvasRenderingContext2D} context @param {ReturnType<typeof layout>} plan @param {Matrix} matrix */
function drawLabels(context, plan, matrix) {
  const { cell, high, left, top } = plan;
  const every = Math.ceil(13 / high);
  const n = matrix.columns.length;
  const roles = matrix.roles ?? ["text", "text"];
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = roleColor(roles[0]);
  for (let i = 0; i < matrix.rows.length; i += every) {
    context.fillText(truncate(context, matrix.rows[i]), left - 8, top + (i + 0.5) * high);
  }
  if (matrix.sums) {
    context.textAlign = "left";
    context.fillStyle = roleColor("muted");
    for (let i = 0; i < matrix.rows.length; i += every) {
      let sum = 0;
      for (let j = 0; j < n; j++) sum += matrix.numbers[i * n + j] || 0;
      context.fillText(`Σ ${sum.toFixed(2)}`, left + n * cell + 6, top + (i + 0.5) * high);
    }
  }
  context.textAlign = "left";
  context.fillStyle = roleColor(roles[1]);
  for (let j = 0; j < n; j += Math.ceil(16 / cell)) {
    context.save();
    context.translate(left + (j + 0.5) * cell, top - 6);
    context.rotate(-Math.PI / 4);
    context.fillText(truncate(context, matrix.columns[j]), 0, 0);
    context.restore();
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} text */
function truncate(context, text) {
  if (context.measureText(text).width <= 140) return text;
  const characters = Array.from(text);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > 140) characters.pop();
  return `${characters.join("")}…`;
}

/**
 * @param {HTMLCanvasElement} canvas @param {ReturnType<typeof layout>} plan
 * @param {[number, number]|null} at @param {[number, number]|null} hover @param {Matrix} matrix
 */
function highlight(canvas, plan, at, hover, matrix) {
  const context = resizeCanvas(canvas, plan.width, plan.height);
  if (matrix.frame) drawFrame(context, plan, matrix);
  for (const [cell, name] of /** @type {const} */ ([
    [hover, "muted"],
    [at, "chosen"],
  ])) {
    if (!cell) continue;
    context.strokeStyle = roleColor(name);
    context.lineWidth = 2;
    context.strokeRect(plan.left + cell[1] * plan.cell, plan.top + cell[0] * plan.high, plan.cell - 1, plan.high - 1);
  }
}

/** A frame around a row, a column, or both. @param {CanvasRenderingContext2D} context @param {ReturnType<typeof layout>} plan @param {Matrix} matrix */
function drawFrame(context, { left, top, cell, high }, { frame, rows, columns }) {
  context.strokeStyle = roleColor("chosen");
  context.lineWidth = 2;
  const [row, column] = [frame?.row ?? -1, frame?.column ?? -1];
  if (row >= 0 && row < rows.length)
    context.strokeRect(left - 1, top + row * high - 1, cell * columns.length + 1, high + 1);
  if (column >= 0 && column < columns.length)
    context.strokeRect(left + column * cell - 1, top - 1, cell + 1, high * rows.length + 1);
}

/** @param {{ramp: Ramp, top: number, numbers: ArrayLike<number>}} matrix */
export function legend(matrix) {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < matrix.numbers.length; i++) {
    const value = matrix.numbers[i];
    if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  const canvas = h("canvas", { "aria-hidden": "true", class: "ramp" });
  const context = resizeCanvas(canvas, 96, 10);
  const start = { signed: -matrix.top, weight: 0, log: matrix.top / 10 ** DECADES }[matrix.ramp];
  for (let x = 0; x < 96; x++) {
    const value = matrix.ramp === "log" ? start * 10 ** ((DECADES * x) / 95) : start + ((matrix.top - start) * x) / 95;
    context.fillStyle = css(rgb(value, matrix.top, matrix.ramp));
    context.fillRect(x, 0, 1, 10);
  }
  const beyond = Math.max(Math.abs(low), Math.abs(high)) > matrix.top ? "; beyond the scale the color is the same" : "";
  const range = low > high ? "no numbers" : `smallest ${formatNumber(low)}, largest ${formatNumber(high)}${beyond}`;
  return h(
    "figcaption",
    { class: "legend" },
    formatNumber(start),
    canvas,
    formatNumber(matrix.top),
    h("span", { class: "muted" }, matrix.ramp === "log" ? `logarithmic color scale, ${range}` : range),
  );
}

/** The numbers as a table, for screen readers and for reading. @param {Matrix} matrix */
function tableDetails(matrix) {
  const n = matrix.columns.length;
  const rows = Math.max(1, Math.min(matrix.rows.length, Math.floor(MAX_TABLE_CELLS / Math.max(1, Math.min(n, 100)))));
  const columns = Math.min(n, 100);
  const details = h("details", { class: "as-table" }, h("summary", {}, "As a table"));
  details.addEventListener("toggle", () => {
    if (details.querySelector("table")) return;
    const head = matrix.columns.slice(0, columns).map((name) => h("th", { scope: "col" }, word(name)));
    const body = matrix.rows.slice(0, rows).map((name, i) =>
      tableRow(
        word(name),
        Array.from({ length: columns }, (_, j) => formatNumber(matrix.numbers[i * n + j])),
      ),
    );
    const whole = h(
      "table",
      { class: "numbers" },
      h("thead", {}, h("tr", {}, h("td", {}), ...head)),
      h("tbody", {}, ...body),
    );
    details.append(scrollBox(`${matrix.title} as a table`, whole));
    if (rows < matrix.rows.length || columns < n)
      details.append(h("p", { class: "muted" }, `The first ${rows} x ${columns}; the Numbers tab has all.`));
  });
  return details;
}
