// @ts-check
/** Grid of all layers and heads: one thumbnail per head, on one canvas. */
import { roleColor, thumbnail } from "../core/color.js";
import { h } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { pause } from "../core/schedule.js";
import { shortName } from "../trace/names.js";
import { entropy } from "../trace/probability.js";
import { resizeCanvas } from "../widgets/matrix.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/**
 * @typedef {{name: string, head: number, picture: HTMLCanvasElement, label: string, entropy: number}} Head
 */

const [SIZE, GAP, TITLE] = [56, 12, 16];
/** Number of weights per head above which the browser gets a pause in between. */
const LARGE = 10000;

/**
 * Thumbnails, mean entropies and patterns of the heads of one tensor.
 * @param {string} name @param {Tensor} weights @param {boolean} same whether queries and keys are the same sequence
 * @returns {Promise<Head[]>}
 */
export async function loadHeads(name, weights, same) {
  const [rows, columns] = [weights.size("query"), weights.size("key")];
  /** @type {Head[]} */
  const heads = [];
  for (let head = 0; head < weights.size("head"); head++) {
    const numbers = weights.plane("query", "key", { head });
    let [meanEntropy, top] = [0, 0];
    for (let i = 0; i < rows; i++) meanEntropy += entropy(numbers.subarray(i * columns, (i + 1) * columns)) / rows;
    for (const number of numbers) if (number > top) top = number;
    const picture = thumbnail(numbers, rows, columns, top, "weight", SIZE, SIZE);
    heads.push({ name, head, picture, entropy: meanEntropy, label: attentionPattern(numbers, rows, columns, same) });
    if (numbers.length > LARGE) await pause();
  }
  return heads;
}

/** Label of a head with at least 60 % of its weight on a simple pattern. @param {Float64Array} numbers @param {number} rows @param {number} columns @param {boolean} same */
function attentionPattern(numbers, rows, columns, same) {
  const share = (/** @type {(i: number) => number} */ target) => {
    let [sum, count] = [0, 0];
    for (let i = 0; i < rows; i++) {
      const j = target(i);
      if (j < 0 || j >= columns) continue;
      sum += numbers[i * columns + j];
      count++;
    }
    return count ? sum / count : 0;
  };
  const patterns = same
    ? [
        ["itself", share((i) => i)],
        ["previous token", share((i) => i - 1)],
        ["next token", share((i) => i + 1)],
        ["first token", share(() => 0)],
        ["last token", share(() => columns - 1)],
      ]
    : [
        ["diagonal", share((i) => i)],
        ["first token", share(() => 0)],
        ["last token", share(() => columns - 1)],
      ];
  const best = patterns.sort((a, b) => Number(b[1]) - Number(a[1]))[0];
  return rows > 1 && Number(best[1]) >= 0.6 ? `${best[0]} ${(100 * Number(best[1])).toFixed(0)} %` : "";
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
    this.node = h("figure", { class: "figure" }, this.stage, this.readout);
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
    canvas.addEventListener("mousemove", (event) => this.showReadout(all[this.headAt(event)] ?? all[this.at]));
    canvas.addEventListener("mouseleave", () => this.showReadout(all[this.at]));
    canvas.addEventListener("click", (event) => this.choose(this.headAt(event)));
    this.stage.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
      if (!step) return;
      event.preventDefault();
      this.choose(this.at + step);
    });
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
      head && chosen.head === null && head === all[at]
        ? `${chosen.name}, mean of its heads; point at a head, or choose one`
        : head
          ? `${head.name}, head ${head.head}: ${head.label ? `${head.label}, ` : ""}mean entropy ${formatNumber(head.entropy)}`
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
