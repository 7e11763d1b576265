// @ts-check
/** All layers and heads at once: one small picture each, on one canvas. */
import { role, thumbnail } from "./colour.js";
import { h } from "./dom.js";
import { shown } from "./format.js";
import { sized } from "./matrix.js";
import { pause } from "./patience.js";
import { entropy } from "./probability.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/**
 * @typedef {{name: string, head: number, picture: HTMLCanvasElement, label: string, spread: number}} Head
 */

const [SIZE, GAP, TITLE] = [56, 12, 16];
/** Numbers of a head after which somebody may be waiting. */
const LARGE = 10000;

/**
 * The heads of an attention, each with what was measured of it; between two of them the page can do something else.
 * @param {string} name @param {Tensor} weights @param {boolean} same whether queries and keys are the same words
 * @returns {Promise<Head[]>}
 */
export async function heads(name, weights, same) {
  const [rows, columns] = [weights.size("query"), weights.size("key")];
  /** @type {Head[]} */
  const found = [];
  for (let head = 0; head < weights.size("head"); head++) {
    const numbers = weights.plane("query", "key", { head });
    let [spread, top] = [0, 0];
    for (let i = 0; i < rows; i++) spread += entropy(numbers.subarray(i * columns, (i + 1) * columns)) / rows;
    for (const number of numbers) if (number > top) top = number;
    const picture = thumbnail(numbers, rows, columns, top, "weight", SIZE, SIZE);
    found.push({ name, head, picture, spread, label: habit(numbers, rows, columns, same) });
    if (numbers.length > LARGE) await pause();
  }
  return found;
}

/** What a head does most of the time, if it is plain: at least 60 % of all weight. @param {Float64Array} numbers @param {number} rows @param {number} columns @param {boolean} same */
function habit(numbers, rows, columns, same) {
  const share = (/** @type {(i: number) => number} */ where) => {
    let [sum, count] = [0, 0];
    for (let i = 0; i < rows; i++) {
      const j = where(i);
      if (j < 0 || j >= columns) continue;
      sum += numbers[i * columns + j];
      count++;
    }
    return count ? sum / count : 0;
  };
  const tried = same
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
  const best = tried.sort((a, b) => Number(b[1]) - Number(a[1]))[0];
  return rows > 1 && Number(best[1]) >= 0.6 ? `${best[0]} ${(100 * Number(best[1])).toFixed(0)} %` : "";
}

export class Grid {
  /**
   * @param {Head[]} all @param {{name: string|null, head: number|null}} chosen
   * @param {(name: string, head: number) => void} onchoose
   */
  constructor(all, chosen, onchoose) {
    this.all = all;
    this.chosen = chosen;
    this.onchoose = onchoose;
    const many = new Set(all.map((head) => head.name)).size;
    this.canvas = h("canvas", { role: "img", "aria-label": `${all.length} heads of ${many} attentions` });
    this.told = h("output", { class: "readout" });
    const spoken = "All heads. Arrow keys move from head to head.";
    this.stage = h(
      "div",
      { class: "heads", tabindex: "0", role: "group", "data-focus": "heads", "aria-label": spoken },
      this.canvas,
    );
    this.node = h("figure", { class: "figure" }, this.stage, this.told);
    this.across = 1;
    this.width = -1;
    this.at = this.find();
    this.listen();
    new ResizeObserver(() => {
      if (this.node.clientWidth === this.width) return;
      this.width = this.node.clientWidth;
      this.draw();
    }).observe(this.node);
  }

  listen() {
    const { canvas, all } = this;
    canvas.addEventListener("mousemove", (event) => this.say(all[this.under(event)] ?? all[this.at]));
    canvas.addEventListener("mouseleave", () => this.say(all[this.at]));
    canvas.addEventListener("click", (event) => this.choose(this.under(event)));
    this.stage.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across }[event.key];
      if (!step) return;
      event.preventDefault();
      this.choose(this.at + step);
    });
  }

  find() {
    const { name, head } = this.chosen;
    return Math.max(
      0,
      this.all.findIndex((one) => one.name === name && one.head === (head ?? 0)),
    );
  }

  /** @param {Head|undefined} head */
  say(head) {
    const { chosen, all, at } = this;
    this.told.textContent =
      head && chosen.head === null && head === all[at]
        ? `${chosen.name}, mean of its heads; point at a head, or choose one`
        : head
          ? `${head.name}, head ${head.head}: ${head.label ? `${head.label}, ` : ""}mean entropy ${shown(head.spread)}`
          : "";
  }

  draw() {
    const { all, chosen } = this;
    const [wide, tall] = [SIZE + GAP, SIZE + GAP + TITLE];
    this.across = Math.max(1, Math.floor((this.node.clientWidth || 600) / wide));
    const context = sized(
      this.canvas,
      Math.min(this.across, all.length) * wide,
      Math.ceil(all.length / this.across) * tall,
    );
    all.forEach((head, i) => {
      const [x, y] = [(i % this.across) * wide, Math.floor(i / this.across) * tall];
      small(context, head, x, y, chosen.head === null ? head.name === chosen.name : i === this.at);
    });
    this.say(all[this.at]);
  }

  /** @param {MouseEvent} event */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (SIZE + GAP));
    if (column >= this.across) return -1;
    return Math.floor((event.clientY - box.top) / (SIZE + GAP + TITLE)) * this.across + column;
  }

  /** @param {number} i */
  choose(i) {
    if (this.all[i]) this.onchoose(this.all[i].name, this.all[i].head);
  }

  /** @param {{name: string|null, head: number|null}} now */
  show(now) {
    this.chosen = now;
    this.at = this.find();
    this.draw();
  }
}

/** @param {CanvasRenderingContext2D} context @param {Head} head @param {number} x @param {number} y @param {boolean} chosen */
function small(context, head, x, y, chosen) {
  context.fillStyle = role("muted");
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  context.fillText(`${short(head.name)} · ${head.head}`, x, y, SIZE + GAP - 2);
  context.imageSmoothingEnabled = false;
  context.drawImage(head.picture, x, y + TITLE, SIZE, SIZE);
  context.strokeStyle = role(chosen ? "chosen" : "line");
  context.lineWidth = chosen ? 3 : 1;
  context.strokeRect(x + 0.5, y + TITLE + 0.5, SIZE - 1, SIZE - 1);
}

/** "decoder.layers.1.cross.weights" as "d1 cross". @param {string} name */
export function short(name) {
  const parts = name.split(".").slice(0, -1);
  const number = parts.find((part) => /^\d+$/.test(part));
  const kind = parts.filter((part) => !/^\d+$/.test(part) && part !== "layers" && part !== "stack");
  const side = kind.length > 1 ? kind[0][0] : "";
  const own = kind[kind.length - 1] ?? name;
  return `${side}${number ?? ""} ${own === "attention" ? "self" : own}`.trim();
}
