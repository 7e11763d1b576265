// @ts-check
/** Grid of all layers and heads: one thumbnail per head, on one canvas. */
import { heatImage, roleColor, thumbnail } from "../core/color.js";
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { pause } from "../core/schedule.js";
import { shortName } from "../trace/names.js";
import { entropy, usualLargest } from "../trace/probability.js";
import { resizeCanvas } from "../widgets/matrix.js";
import { axisLabels } from "./one-head.js";

/** What the sequences of queries are called. */
const SIDES = /** @type {Record<string, string>} */ ({ read: "decoder's input", target: "answer" });

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/**
 * @typedef {{name: string, head: number, picture: HTMLCanvasElement, label: string, entropy: number,
 *   side: string, weights: Float32Array, rows: string[], columns: string[]}} Head
 * side: sequence of the queries
 */

const [SIZE, GAP, TITLE] = [56, 12, 16];
/** Number of weights per head above which the browser gets a pause in between. */
const LARGE = 10000;

/**
 * Thumbnails, mean entropies and roles of the heads of one tensor.
 * @param {import("../trace/trace.js").Trace} trace @param {string} name @param {Tensor} weights @returns {Promise<Head[]>}
 */
export async function loadHeads(trace, name, weights) {
  const [rows, columns] = [weights.size("query"), weights.size("key")];
  const roles = new Map(trace.header.head_roles?.map((one) => [`${one.name} ${one.head}`, one]));
  const labels = ["query", "key"].map((axis, i) => axisLabels(trace, name, axis, [rows, columns][i]));
  const side = trace.describe(name).sides.query ?? name;
  /** @type {Head[]} */
  const heads = [];
  for (let head = 0; head < weights.size("head"); head++) {
    const numbers = weights.plane("query", "key", { head });
    let meanEntropy = 0;
    for (let i = 0; i < rows; i++) meanEntropy += entropy(numbers.subarray(i * columns, (i + 1) * columns)) / rows;
    const top = usualLargest(numbers, rows, columns);
    const found = roles.get(`${name} ${head}`);
    heads.push({
      ...{ name, head, side, rows: labels[0], columns: labels[1], entropy: meanEntropy },
      picture: thumbnail(numbers, rows, columns, top, "weight", SIZE, SIZE),
      weights: Float32Array.from(numbers),
      label: found?.role ? `${found.role} ${(found.statistics[found.role] ?? 0).toFixed(2)}` : "",
    });
    if (numbers.length > LARGE) await pause();
  }
  return heads;
}

export class HeadGrid {
  /**
   * @param {Head[]} all @param {{name: string|null, head: number|null}} chosen
   * @param {(name: string, head: number) => void} onchoose
   */
  constructor(all, chosen, onchoose) {
    this.all = all;
    this.chosen = chosen;
    this.onchoose = onchoose;
    const modules = new Set(all.map((head) => head.name)).size;
    this.canvas = h("canvas", { role: "img", "aria-label": `${all.length} heads of ${modules} attention modules` });
    this.readout = h("output", { class: "readout" });
    const label = "All heads. Arrow keys move from head to head.";
    this.stage = h(
      "div",
      { class: "heads", tabindex: "0", role: "group", "data-focus": "heads", "aria-label": label },
      this.canvas,
    );
    /** @type {{side: string, query: number}|null} token that is lit in all heads */
    this.lit = null;
    this.node = h("figure", { class: "figure" }, this.stage, this.readout, ...this.tokenRows());
    this.columns = 1;
    this.width = -1;
    this.at = this.chosenIndex();
    this.listen();
    new ResizeObserver(() => {
      if (this.node.clientWidth === this.width) return;
      this.width = this.node.clientWidth;
      this.draw();
    }).observe(this.node);
  }

  listen() {
    const { canvas, all } = this;
    canvas.addEventListener("mousemove", (event) => {
      const head = all[this.headAt(event)];
      const y = (event.clientY - canvas.getBoundingClientRect().top) % (SIZE + GAP + TITLE);
      const query = head ? Math.floor(((y - TITLE) / SIZE) * head.rows.length) : -1;
      this.light(head && query >= 0 && query < head.rows.length ? { side: head.side, query } : null, head);
    });
    canvas.addEventListener("mouseleave", () => this.light(null));
    canvas.addEventListener("click", (event) => this.choose(this.headAt(event)));
    this.stage.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
      if (!step) return;
      event.preventDefault();
      this.choose(this.at + step);
    });
  }

  /** The tokens of each sequence of queries, for pointing and for the keyboard. */
  tokenRows() {
    const sides = [...new Set(this.all.map(({ side }) => side))];
    return sides.map((side) => {
      const { rows } = /** @type {Head} */ (this.all.find((head) => head.side === side));
      const tokens = rows.map((text, query) => {
        const lights = { onmouseenter: () => this.light({ side, query }), onfocus: () => this.light({ side, query }) };
        const dims = { onmouseleave: () => this.light(null), onblur: () => this.light(null) };
        return h("button", { type: "button", class: "token lit-token", ...lights, ...dims }, word(text));
      });
      const title = sides.length > 1 ? `Highlight a token of the ${SIDES[side] ?? side}` : "Highlight a token";
      return h("details", { class: "light" }, h("summary", {}, title), h("div", { class: "tokens" }, ...tokens));
    });
  }

  /** Lights the row of one token in all heads that read it. @param {{side: string, query: number}|null} lit @param {Head} [head] */
  light(lit, head) {
    const same = lit?.side === this.lit?.side && lit?.query === this.lit?.query;
    this.lit = lit;
    if (!same) this.draw();
    const chosen = this.all[this.at];
    const reads = lit && chosen?.side !== lit.side ? this.all.find(({ side }) => side === lit.side) : chosen;
    this.showReadout(head ?? reads);
  }

  /** Where the lit token attends most in a head. @param {Head} head */
  lightReadout(head) {
    if (!this.lit || head.side !== this.lit.side || this.lit.query >= head.rows.length) return "";
    const n = head.columns.length;
    const row = head.weights.subarray(this.lit.query * n, (this.lit.query + 1) * n);
    const best = row.indexOf(Math.max(...row));
    return `; \u2068${head.rows[this.lit.query]}\u2069 → \u2068${head.columns[best]}\u2069 ${formatNumber(row[best])}`;
  }

  chosenIndex() {
    const { name, head } = this.chosen;
    return Math.max(
      0,
      this.all.findIndex((one) => one.name === name && one.head === (head ?? 0)),
    );
  }

  /** @param {Head|undefined} head */
  showReadout(head) {
    const { chosen, all, at } = this;
    this.readout.textContent =
      head && chosen.head === null && head === all[at] && !this.lit
        ? `${chosen.name}, mean of its heads; point at a head, or choose one`
        : head
          ? `${head.name}, head ${head.head}: ${head.label ? `${head.label}, ` : ""}mean entropy ${formatNumber(head.entropy)}${this.lightReadout(head)}`
          : "";
  }

  draw() {
    const { all, chosen } = this;
    const [wide, tall] = [SIZE + GAP, SIZE + GAP + TITLE];
    this.columns = Math.max(1, Math.floor((this.node.clientWidth || 600) / wide));
    const context = resizeCanvas(
      this.canvas,
      Math.min(this.columns, all.length) * wide,
      Math.ceil(all.length / this.columns) * tall,
    );
    all.forEach((head, i) => {
      const [x, y] = [(i % this.columns) * wide, Math.floor(i / this.columns) * tall];
      drawHead(context, head, x, y, chosen.head === null ? head.name === chosen.name : i === this.at);
      if (this.lit?.side === head.side && this.lit.query < head.rows.length)
        lightRow(context, head, x, y, this.lit.query);
    });
    this.showReadout(all[this.at]);
  }

  /** @param {MouseEvent} event */
  headAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (SIZE + GAP));
    if (column >= this.columns) return -1;
    return Math.floor((event.clientY - box.top) / (SIZE + GAP + TITLE)) * this.columns + column;
  }

  /** @param {number} i */
  choose(i) {
    if (this.all[i]) this.onchoose(this.all[i].name, this.all[i].head);
  }

  /** @param {{name: string|null, head: number|null}} chosen */
  show(chosen) {
    this.chosen = chosen;
    this.at = this.chosenIndex();
    this.draw();
  }
}

/** @param {CanvasRenderingContext2D} context @param {Head} head @param {number} x @param {number} y @param {boolean} chosen */
function drawHead(context, head, x, y, chosen) {
  context.fillStyle = roleColor("muted");
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  context.fillText(`${shortName(head.name)} · ${head.head}`, x, y, SIZE + GAP - 2);
  context.imageSmoothingEnabled = false;
  context.drawImage(head.picture, x, y + TITLE, SIZE, SIZE);
  context.strokeStyle = roleColor(chosen ? "chosen" : "line");
  context.lineWidth = chosen ? 3 : 1;
  context.strokeRect(x + 0.5, y + TITLE + 0.5, SIZE - 1, SIZE - 1);
}

/** Dims all rows of a head but one. @param {CanvasRenderingContext2D} context @param {Head} head @param {number} x @param {number} y @param {number} query */
function lightRow(context, head, x, y, query) {
  const high = SIZE / head.rows.length;
  const from = y + TITLE + query * high;
  context.globalAlpha = 0.8;
  context.fillStyle = roleColor("page");
  context.fillRect(x + 1, y + TITLE + 1, SIZE - 2, from - y - TITLE - 1);
  context.fillRect(x + 1, from + high, SIZE - 2, y + TITLE + SIZE - from - high - 1);
  context.globalAlpha = 1;
  const n = head.columns.length;
  const row = head.weights.subarray(query * n, (query + 1) * n);
  const [thick, top] = [Math.max(high, 5), Math.max(...row)];
  const middle = Math.min(Math.max(from + high / 2, y + TITLE + thick / 2), y + TITLE + SIZE - thick / 2);
  context.imageSmoothingEnabled = false;
  context.drawImage(heatImage(row, 1, n, top, "weight"), x, middle - thick / 2, SIZE, thick);
}
