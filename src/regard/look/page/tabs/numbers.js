// @ts-check
/** Numbers tab: any slice of any tensor as a table, to be copied as NumPy code or CSV. */
import { h, replace, selectField, symbolButton, word } from "../core/dom.js";
import { formatExact, formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { histogram } from "../widgets/histogram.js";
import { scrollBox } from "../widgets/table.js";
import { openWeight } from "../widgets/weight-matrix.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Index} Index */

const [ROWS, COLUMNS, MAX_OPTIONS] = [40, 16, 1000];
/** Numbers up to which the two axes shown are loaded at once; of larger ones only what is visible. */
const MAX_LOADED = 4_000_000;

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
    if (axis === null) return 1;
    const { axes, shape, whole } = this.description;
    return (whole ?? shape)[axes.indexOf(axis)];
  }

  get others() {
    return this.description.axes.filter((axis) => axis !== this.rows && axis !== this.columns);
  }

  /** The slice to load: fixed axes, and all of the two axes shown. */
  get slice() {
    return this.others.map((axis) => `${axis}:${this.fixed[axis]}`).join(",");
  }

  /** Whether the two axes shown are too large to load at once. */
  get isLarge() {
    const most = Math.min(MAX_LOADED, this.context.trace.header.most_numbers ?? MAX_LOADED);
    return this.size(this.rows) * this.size(this.columns) > most;
  }

  /** The numbers shown, and the position of the first: all, or a part of a large tensor. */
  async load() {
    if (!this.isLarge) return { tensor: await this.context.trace.tensor(this.name, this.slice), top: 0, left: 0 };
    const range = (/** @type {string|null} */ axis, /** @type {number} */ start, /** @type {number} */ count) =>
      axis === null ? "" : `${axis}:${start}-${Math.min(this.size(axis), start + count) - 1}`;
    const parts = [this.slice, range(this.rows, this.top, ROWS), range(this.columns, this.left, COLUMNS)];
    const tensor = await this.context.trace.tensor(this.name, parts.filter(Boolean).join(","));
    return { tensor, top: this.top, left: this.left };
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
      text: `${tensor.name} (${(tensor.whole ?? tensor.shape).join(" x ")})`,
    }));
    replace(
      this.controls,
      selectField("Tensor", names, this.name, (tensor) => selection.set({ tensor })),
      axes.length > 1 ? this.axisChoice("rows", "Rows") : null,
      axes.length > 1 ? this.axisChoice("columns", "Columns") : null,
      ...this.others.map((axis) => this.placeChoice(axis)),
      h("button", { type: "button", onclick: () => this.copy("numpy") }, "Copy as NumPy"),
      h("button", { type: "button", onclick: () => this.copy("csv") }, "Copy as CSV"),
      trace.live
        ? h("button", { type: "button", onclick: () => openWeight(trace, null).catch(showError) }, "Weights…")
        : null,
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
    const words = this.context.trace.allTokens(this.name, axis);
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
    const [m, n] = [this.size(this.rows), this.size(this.columns)];
    this.top = Math.min(this.top, Math.max(0, m - 1));
    this.left = Math.min(this.left, Math.max(0, n - 1));
    const { tensor, top, left } = await this.load();
    const rows = Array.from({ length: Math.min(ROWS, m - this.top) }, (_, i) => this.top + i);
    const columns = Array.from({ length: Math.min(COLUMNS, n - this.left) }, (_, j) => this.left + j);
    const head = columns.map((j) => h("th", { scope: "col" }, ...this.label(this.columns, j)));
    const lines = rows.map((i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, ...this.label(this.rows, i)),
        ...columns.map((j) => this.cell(tensor.at(this.index(i - top, j - left)), i, j)),
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
      this.pager("Rows", this.rows, this.top, ROWS, (value) => (this.top = value)),
      this.pager("Columns", this.columns, this.left, COLUMNS, (value) => (this.left = value)),
      this.isLarge
        ? h(
            "p",
            { class: "muted" },
            `${(m * n).toLocaleString("en")} numbers are too many to load at once: only the part that is shown is loaded.`,
          )
        : null,
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
    const words = axis ? this.context.trace.allTokens(this.name, axis) : null;
    return words ? [h("span", { class: "muted" }, `${i} `), word(words[i].label)] : [String(i)];
  }

  /** @param {string} name @param {string|null} axis @param {number} start @param {number} page @param {(start: number) => void} go */
  pager(name, axis, start, page, go) {
    const size = this.size(axis);
    if (size <= page) return null;
    const last = Math.min(size, start + page);
    const turn = (/** @type {number} */ to) => () => {
      go(to);
      this.drawTable().catch(showError);
    };
    return h(
      "div",
      { class: "row pager" },
      h("span", { class: "muted" }, `${name} ${start} to ${last - 1} of ${size.toLocaleString("en")}`),
      symbolButton("‹", `${name}: previous`, turn(Math.max(0, start - page)), start === 0),
      symbolButton("›", `${name}: next`, turn(start + page), last >= size),
      this.jumpField(name, axis, (i) => turn(i)()),
    );
  }

  /** A field for a position, or for a token of this axis. @param {string} name @param {string|null} axis @param {(i: number) => void} go */
  jumpField(name, axis, go) {
    const words = axis ? this.context.trace.allTokens(this.name, axis) : null;
    const size = this.size(axis);
    const find = (/** @type {string} */ text) =>
      /^\d+$/u.test(text)
        ? Number(text)
        : (words?.findIndex(({ token, label }) => token.trim() === text || label === text) ?? -1);
    const input = h("input", {
      type: "text",
      class: "jump",
      size: 8,
      "aria-label": `${name}: go to`,
      placeholder: words ? "number or token" : "number",
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        const at = find(input.value.trim());
        const known = at >= 0 && at < size;
        input.setAttribute("aria-invalid", String(!known));
        if (known) go(at);
        else
          this.copied.textContent = `There is no ${words ? "token or " : ""}position ${input.value} from 0 to ${size - 1}.`;
      },
    });
    return h("label", { class: "row" }, h("span", { class: "muted" }, "go to"), input);
  }

  /** @param {"numpy"|"csv"} kind */
  async copy(kind) {
    const { tensor } = await this.load(); // of a large one, the part that is shown
    const size = (/** @type {string|null} */ axis) => (axis === null ? 1 : tensor.size(axis));
    const [m, n] = [size(this.rows), size(this.columns)];
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
