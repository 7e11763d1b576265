// @ts-check
/** Weights of the model as matrices: a dialog with all names, a part of one as a heat map, and a pager for the rest. */
import { get, request } from "../core/api.js";
import { h, openDialog, replace, selectField, symbolButton } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { Tensor } from "../trace/tensor.js";
import { matrix } from "./matrix.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {{name: string, axes: string[], shape: number[]}} Weight */

/** Rows and columns that are drawn at once. */
const [ROWS, COLUMNS] = [64, 128];

/** Opens a weight with a number, a row or a column marked. @param {Trace} trace @param {string|null} name null: the first @param {Index} [index] */
export async function openWeight(trace, name, index = {}) {
  const model = encodeURIComponent(trace.header.model.id);
  /** @type {{weights: Weight[], step: number}} */
  const { weights, step } = await get(`models/${model}/weights`);
  const view = new WeightView(`models/${model}/weights`, weights);
  const note =
    trace.header.model.step !== undefined && step !== trace.header.model.step
      ? h("p", { role: "alert" }, "The model was trained further after this trace: these are its weights of now.")
      : null;
  openDialog("Weights", note, view.node);
  await view.choose(name ?? weights[0]?.name ?? "", index);
}

class WeightView {
  /** @param {string} path @param {Weight[]} weights */
  constructor(path, weights) {
    this.path = path;
    this.weights = weights;
    /** @type {Weight} */
    this.weight = { name: "", axes: [], shape: [] };
    /** @type {Index} first row and column that are drawn, and the fixed axes */
    this.at = {};
    /** @type {Index} */
    this.marked = {};
    this.request = 0;
    this.controls = h("div", { class: "row wrap" });
    this.body = h("div", { class: "weight-body" });
    this.node = h("div", { class: "weight" }, this.controls, this.body);
  }

  /** @param {string} name @param {Index} index */
  async choose(name, index) {
    const found = this.weights.find((weight) => weight.name === name);
    if (!found) {
      replace(
        this.body,
        h("p", { class: "empty" }, `The model has no weight named ${name}: it is computed in the pass.`),
      );
      return;
    }
    this.weight = found;
    this.marked = index;
    this.at = { ...Object.fromEntries(found.axes.map((axis) => [axis, index[axis] ?? 0])) };
    this.at[this.rows] = pageStart(index[this.rows] ?? 0, ROWS);
    this.at[this.columns] = pageStart(index[this.columns] ?? 0, COLUMNS);
    await this.draw();
  }

  /** The two axes that are drawn; a vector has one. */
  get rows() {
    return this.weight.axes.length > 1 ? this.weight.axes[this.weight.axes.length - 2] : "";
  }

  get columns() {
    return this.weight.axes[this.weight.axes.length - 1] ?? "";
  }

  /** @param {string} axis */
  size(axis) {
    const i = this.weight.axes.indexOf(axis);
    return i < 0 ? 1 : this.weight.shape[i];
  }

  /** First and last index of a drawn axis. @param {string} axis @param {number} page @returns {[number, number]} */
  range(axis, page) {
    const first = this.at[axis] ?? 0;
    return [first, Math.min(this.size(axis), first + page) - 1];
  }

  async draw() {
    const id = ++this.request;
    const { name, axes } = this.weight;
    const [rows, columns] = [this.range(this.rows, ROWS), this.range(this.columns, COLUMNS)];
    const slice = axes.map((axis) => {
      if (axis === this.rows) return `${axis}:${rows.join("-")}`;
      return axis === this.columns ? `${axis}:${columns.join("-")}` : `${axis}:${this.at[axis]}`;
    });
    const response = await request(`${this.path}/${encodeURIComponent(name)}?slice=${slice.join(",")}`);
    const numbers = new Float32Array(await response.arrayBuffer());
    if (id !== this.request) return;
    const shape = [rows[1] - rows[0] + 1, columns[1] - columns[0] + 1];
    const tensor = new Tensor(["row", "column"], shape, numbers);
    this.drawControls();
    replace(this.body, this.mark(), this.figure(tensor, rows, columns));
  }

  drawControls() {
    const names = this.weights.map(({ name, shape }) => ({ value: name, text: `${name} (${shape.join(" x ")})` }));
    const fixed = this.weight.axes.filter((axis) => axis !== this.rows && axis !== this.columns);
    replace(
      this.controls,
      selectField("Weight", names, this.weight.name, (name) => this.choose(name, {}).catch(showError)),
      ...fixed.map((axis) => {
        const options = Array.from({ length: this.size(axis) }, (_, i) => ({ value: String(i), text: String(i) }));
        return selectField(axis, options, String(this.at[axis]), (value) => this.move(axis, Number(value)));
      }),
      this.pager(this.rows, ROWS),
      this.pager(this.columns, COLUMNS),
    );
  }

  /** @param {string} axis @param {number} to */
  move(axis, to) {
    this.at[axis] = to;
    this.draw().catch(showError);
  }

  /** @param {string} axis @param {number} page */
  pager(axis, page) {
    const size = this.size(axis);
    if (size <= page) return null;
    const [first, last] = this.range(axis, page);
    return h(
      "span",
      { class: "row pager" },
      h("span", { class: "muted" }, `${axis}s ${first} to ${last} of ${size.toLocaleString("en")}`),
      symbolButton("‹", `${axis}s: previous`, () => this.move(axis, Math.max(0, first - page)), first === 0),
      symbolButton("›", `${axis}s: next`, () => this.move(axis, first + page), last >= size - 1),
    );
  }

  /** What the explanation points at. */
  mark() {
    const shown = Object.entries(this.marked).filter(([axis]) => this.weight.axes.includes(axis));
    if (!shown.length) return null;
    const { length } = shown;
    const text = shown.map(([axis, i]) => `${axis} ${i}`).join(", ");
    return h(
      "p",
      { class: "muted" },
      length < this.weight.axes.length ? `Used here: ${text}, framed.` : `This number: ${text}.`,
    );
  }

  /** @param {Tensor} tensor @param {[number, number]} rows @param {[number, number]} columns */
  figure(tensor, rows, columns) {
    const numbers = Float64Array.from(tensor.data);
    const names = (/** @type {[number, number]} */ [first, last]) =>
      Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
    const at = (/** @type {string} */ axis, /** @type {number} */ first) =>
      this.marked[axis] === undefined ? null : this.marked[axis] - first;
    const [row, column] = [this.rows ? at(this.rows, rows[0]) : null, at(this.columns, columns[0])];
    return matrix({
      title: this.weight.name,
      numbers,
      rows: this.rows ? names(rows) : [""],
      columns: names(columns),
      rowTitle: this.rows || "vector",
      columnTitle: this.columns,
      ramp: "signed",
      top: Math.max(1e-12, ...numbers.map(Math.abs)),
      largest: 24,
      selected: row !== null && column !== null ? [row, column] : null,
      frame: row === null || column === null ? { row, column } : undefined,
    });
  }
}

/** Start of the page that an index is on. @param {number} i @param {number} page */
function pageStart(i, page) {
  return Math.floor(i / page) * page;
}
