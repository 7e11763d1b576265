// @ts-check
/** Numbers tab: any slice of any tensor as a table, to be copied as NumPy code or CSV. */
import { h, replace, selectField, symbolButton, word } from "../core/dom.js";
import { formatExact, formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { histogram } from "../widgets/histogram.js";
import { scrollBox } from "../widgets/table.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Index} Index */

const [ROWS, COLUMNS, MAX_OPTIONS] = [40, 16, 1000];

/** @param {Context} context */
export async function numbersTab(context) {
  const { trace, selection } = context;
  const all = trace.header.tensors;
  if (!all.length) return h("p", { class: "empty" }, "No tensors were recorded.");
  const body = h("div", { class: "stack" });
  if (!selection.current.tensor || !trace.has(selection.current.tensor)) selection.current.tensor = all[0].name;
  const draw = async () => {
    const sheet = new Sheet(context, /** @type {string} */ (selection.current.tensor));
    await sheet.draw();
    replace(body, sheet.node, histogramCard(context, sheet.name));
  };
  await draw();
  context.onleave(selection.listen(["tensor"], () => draw().catch(showError)));
  return body;
}

/** Histogram of a whole tensor, loaded when it is opened. @param {Context} context @param {string} name */
function histogramCard({ trace }, name) {
  const body = h("div", {});
  const node = h("details", { class: "card" }, h("summary", {}, "Histogram of the whole tensor"), body);
  node.addEventListener("toggle", () => {
    if (!node.open || body.childElementCount) return;
    trace
      .tensor(name)
      .then((tensor) => replace(body, histogram(name, tensor.data)))
      .catch(showError);
  });
  return node;
}

/** One tensor: two axes as rows and columns, all others fixed. */
class Sheet {
  /** @param {Context} context @param {string} name */
  constructor(context, name) {
    this.context = context;
    this.name = name;
    this.description = context.trace.describe(name);
    const { axes } = this.description;
    /** @type {string|null} */
    this.rows = axes.length > 1 ? axes[axes.length - 2] : null;
    /** @type {string|null} */
    this.columns = axes.length ? axes[axes.length - 1] : null;
    /** @type {Index} */
    this.fixed = Object.fromEntries(axes.map((axis) => [axis, 0]));
    const { head } = context.selection.current;
    if (axes.includes("head") && head !== null && head < this.size("head")) this.fixed.head = head;
    this.top = 0;
    this.left = 0;
    this.controls = h("div", { class: "row wrap" });
    this.container = h("div", {});
    this.copied = h("span", { class: "muted", "aria-live": "polite" });
    this.node = h("section", { class: "card" }, h("h2", {}, "Numbers"), this.controls, this.container);
  }

  draw() {
    this.drawControls();
    return this.drawTable();
  }

  /** @param {string|null} axis */
  size(axis) {
    return axis === null ? 1 : this.description.shape[this.description.axes.indexOf(axis)];
  }

  get others() {
    return this.description.axes.filter((axis) => axis !== this.rows && axis !== this.columns);
  }

  /** The slice to load: fixed axes, and all of the two axes shown. */
  get slice() {
    return this.others.map((axis) => `${axis}:${this.fixed[axis]}`).join(",");
  }

  /** @param {number} i @param {number} j @returns {Index} */
  index(i, j) {
    return { ...(this.rows ? { [this.rows]: i } : {}), ...(this.columns ? { [this.columns]: j } : {}) };
  }

  drawControls() {
    const { selection, trace } = this.context;
    const { axes } = this.description;
    const names = trace.header.tensors.map((tensor) => ({
      value: tensor.name,
      text: `${tensor.name} (${tensor.shape.join(" x ")})`,
    }));
    replace(
      this.controls,
      selectField("Tensor", names, this.name, (tensor) => selection.set({ tensor })),
      axes.length > 1 ? this.axisChoice("rows", "Rows") : null,
      axes.length > 1 ? this.axisChoice("columns", "Columns") : null,
      ...this.others.map((axis) => this.placeChoice(axis)),
      h("button", { type: "button", onclick: () => this.copy("numpy") }, "Copy as NumPy"),
      h("button", { type: "button", onclick: () => this.copy("csv") }, "Copy as CSV"),
      this.copied,
    );
  }

  /** @param {"rows"|"columns"} which @param {string} text */
  axisChoice(which, text) {
    const options = this.description.axes.map((axis) => ({ value: axis, text: axis }));
    return selectField(text, options, this[which] ?? "", (axis) => {
      const other = which === "rows" ? "columns" : "rows";
      if (this[other] === axis) this[other] = this[which];
      this[which] = axis;
      [this.top, this.left] = [0, 0];
      this.draw().catch(showError);
    });
  }

  /** @param {string} axis */
  placeChoice(axis) {
    const words = this.context.trace.tokens(this.name, axis);
    const options = Array.from({ length: Math.min(this.size(axis), MAX_OPTIONS) }, (_, i) => ({
      value: String(i),
      text: words ? `${i} ${words[i].label}` : String(i),
    }));
    return selectField(axis, options, String(this.fixed[axis]), (value) => {
      this.fixed[axis] = Number(value);
      this.drawTable().catch(showError);
    });
  }

  async drawTable() {
    const tensor = await this.context.trace.tensor(this.name, this.slice);
    const [m, n] = [this.size(this.rows), this.size(this.columns)];
    this.top = Math.min(this.top, Math.max(0, m - 1));
    const rows = Array.from({ length: Math.min(ROWS, m - this.top) }, (_, i) => this.top + i);
    const columns = Array.from({ length: Math.min(COLUMNS, n - this.left) }, (_, j) => this.left + j);
    const head = columns.map((j) => h("th", { scope: "col" }, ...this.label(this.columns, j)));
    const lines = rows.map((i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, ...this.label(this.rows, i)),
        ...columns.map((j) => this.cell(tensor.at(this.index(i, j)), i, j)),
      ),
    );
    const body = h(
      "table",
      { class: "numbers" },
      h("caption", { class: "muted" }, `rows: ${this.rows ?? "–"}, columns: ${this.columns ?? "–"}`),
      h("thead", {}, h("tr", {}, h("td", {}), ...head)),
      h("tbody", {}, ...lines),
    );
    replace(
      this.container,
      this.pager("Rows", this.top, m, ROWS, (value) => (this.top = value)),
      this.pager("Columns", this.left, n, COLUMNS, (value) => (this.left = value)),
      scrollBox(`${this.name} as a table`, body),
    );
  }

  /** @param {number} value @param {number} i @param {number} j */
  cell(value, i, j) {
    const onclick = () => this.context.drawer.open(this.name, { ...this.fixed, ...this.index(i, j) });
    const button = h(
      "button",
      { type: "button", class: "cell", "data-exact": formatExact(value), onclick },
      formatNumber(value),
    );
    return h("td", {}, button);
  }

  /** @param {string|null} axis @param {number} i */
  label(axis, i) {
    const words = axis ? this.context.trace.tokens(this.name, axis) : null;
    return words ? [h("span", { class: "muted" }, `${i} `), word(words[i].label)] : [String(i)];
  }

  /** @param {string} name @param {number} start @param {number} size @param {number} page @param {(start: number) => void} go */
  pager(name, start, size, page, go) {
    if (size <= page) return null;
    const last = Math.min(size, start + page);
    const turn = (/** @type {number} */ to) => () => {
      go(to);
      this.drawTable().catch(showError);
    };
    return h(
      "div",
      { class: "row pager" },
      h("span", { class: "muted" }, `${name} ${start} to ${last - 1} of ${size}`),
      symbolButton("‹", `${name}: previous`, turn(Math.max(0, start - page)), start === 0),
      symbolButton("›", `${name}: next`, turn(start + page), last >= size),
    );
  }

  /** @param {"numpy"|"csv"} kind */
  async copy(kind) {
    const tensor = await this.context.trace.tensor(this.name, this.slice);
    const [m, n] = [this.size(this.rows), this.size(this.columns)];
    const lines = Array.from({ length: m }, (_, i) =>
      Array.from({ length: n }, (_, j) => formatExact(tensor.at(this.index(i, j)))),
    );
    try {
      await navigator.clipboard.writeText(kind === "csv" ? csv(lines) : numpy(lines, this.name, this.slice));
      this.copied.textContent = `Copied ${m} x ${n} numbers.`;
    } catch {
      this.copied.textContent = "The browser does not allow copying; use Export (e).";
    }
  }
}

/** @param {string[][]} lines */
function csv(lines) {
  return lines.map((line) => line.join(",")).join("\n");
}

/** @param {string[][]} lines @param {string} name @param {string} slice */
function numpy(lines, name, slice) {
  const rows = lines.map((line) => `[${line.join(", ")}]`).join(",\n ");
  const title = `# ${name}${slice ? ` at ${slice}` : ""}`;
  return `import numpy as np\nfrom numpy import inf, nan\n\n${title}\nvalues = np.array([${rows}], dtype=np.float32)\n`;
}
