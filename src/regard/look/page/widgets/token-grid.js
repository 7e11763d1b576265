// @ts-check
/** Grid of tokens with a number each, colored by it; pointing, clicking and arrow keys choose a cell. */
import { colorize } from "../core/color.js";
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { scrollBox } from "./table.js";

/**
 * A token with its probability (NaN: none), and whether it is the actual one.
 * @typedef {{label: string, value: number, marked?: boolean}} TokenCell
 * @typedef {{title: string, corner: string, rows: string[], columns: string[], cells: TokenCell[][],
 *   selected: [number, number], onselect: (row: number, column: number) => void,
 *   onpoint?: (row: number, column: number) => void}} TokenGridData
 */

const KEYS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class TokenGrid {
  /** @param {TokenGridData} data */
  constructor(data) {
    this.data = data;
    this.selected = data.selected;
    this.cells = data.cells.map((line, i) => line.map((cell, j) => this.cell(cell, i, j)));
    const head = data.columns.map((name) => h("th", { scope: "col" }, word(name)));
    const body = data.rows.map((name, i) => h("tr", {}, h("th", { scope: "row" }, word(name)), ...this.cells[i]));
    this.table = h(
      "table",
      { class: "token-grid", role: "grid", "aria-label": `${data.title}. Arrow keys move.` },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, data.corner), ...head)),
      h("tbody", {}, ...body),
    );
    this.node = scrollBox(data.title, this.table);
    this.node.removeAttribute("tabindex"); // its cells take the focus, and scroll it
    this.show(data.selected);
    this.listen();
    requestAnimationFrame(() => this.reveal());
  }

  /** Scrolls the selected cell into view, inside of the box only. */
  reveal() {
    const cell = this.cells[this.selected[0]]?.[this.selected[1]];
    if (!cell) return;
    const [box, place] = [this.node.getBoundingClientRect(), cell.getBoundingClientRect()];
    if (place.right > box.right) this.node.scrollLeft += place.right - box.right + place.width;
    if (place.bottom > box.bottom) this.node.scrollTop += place.bottom - box.bottom + place.height;
  }

  /** @param {TokenCell} cell @param {number} i @param {number} j */
  cell({ label, value, marked }, i, j) {
    const number = Number.isNaN(value) ? null : h("small", {}, formatShare(value));
    const token = label ? word(label) : null;
    const title = Number.isNaN(value) ? null : `${label} ${formatNumber(value)}`;
    const node = h(
      "td",
      { tabindex: "-1", class: marked ? "marked" : null, "data-row": i, "data-column": j, title },
      token,
      number,
    );
    return Number.isNaN(value) ? node : colorize(node, value, 1, "weight");
  }

  listen() {
    const { table, data } = this;
    table.addEventListener("click", (event) => this.choose(place(event)));
    table.addEventListener("mouseover", (event) => {
      const at = place(event);
      if (at) data.onpoint?.(at[0], at[1]);
    });
    table.addEventListener("mouseleave", () => data.onpoint?.(...this.selected));
    table.addEventListener("keydown", (event) => {
      const step = KEYS[/** @type {keyof typeof KEYS} */ (event.key)];
      const at = place(event);
      if (!step || !at) return;
      event.preventDefault();
      const [row, column] = [at[0] + step[0], at[1] + step[1]];
      if (!this.cells[row]?.[column]) return;
      this.choose([row, column]);
      this.cells[row][column].focus();
    });
  }

  /** @param {[number, number]|null} at */
  choose(at) {
    if (!at) return;
    this.show(at);
    this.data.onselect(...at);
  }

  /** Marks a cell as selected. @param {[number, number]} at */
  show(at) {
    const previous = this.cells[this.selected[0]]?.[this.selected[1]];
    previous?.setAttribute("tabindex", "-1");
    previous?.setAttribute("aria-selected", "false");
    this.selected = at;
    const cell = this.cells[at[0]]?.[at[1]];
    cell?.setAttribute("tabindex", "0");
    cell?.setAttribute("aria-selected", "true");
  }
}

/** Row and column of the cell of an event. @param {Event} event @returns {[number, number]|null} */
function place(event) {
  const cell = event.target instanceof Element ? event.target.closest("td[data-row]") : null;
  return cell instanceof HTMLElement ? [Number(cell.dataset.row), Number(cell.dataset.column)] : null;
}

/** Two decimals of a probability; "<.01" for one that would be 0. @param {number} value */
function formatShare(value) {
  return value > 0 && value < 0.005 ? "<0.01" : value.toFixed(2);
}
