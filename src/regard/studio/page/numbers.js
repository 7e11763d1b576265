// @ts-check
/** Any slice of any tensor as a table; it can be copied as NumPy or CSV. */
import { choice, h, replace, word } from "./dom.js";
import { exact, shown } from "./format.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Place} Place */

const [ROWS, COLUMNS] = [40, 16];

/** @param {Context} context */
export async function numbersTab(context) {
  const { trace, selection } = context;
  const all = trace.header.tensors;
  if (!all.length) return h("p", { class: "empty" }, "Nothing was recorded.");
  const body = h("div", { class: "stack" });
  if (!selection.now.tensor || !trace.has(selection.now.tensor)) selection.now.tensor = all[0].name;
  await draw(context, body);
  context.onleave(
    selection.listen((changed) => {
      if ("tensor" in changed) draw(context, body);
    }),
  );
  return body;
}

/** @param {Context} context @param {HTMLElement} body */
async function draw(context, body) {
  const { trace, selection } = context;
  const name = /** @type {string} */ (selection.now.tensor);
  const description = trace.describe(name);
  const axes = description.axes;
  const state = {
    rows: axes.length > 1 ? axes[axes.length - 2] : null,
    columns: axes.length ? axes[axes.length - 1] : null,
    /** @type {Place} */
    held: Object.fromEntries(axes.map((axis) => [axis, 0])),
    top: 0,
    left: 0,
  };
  if (
    axes.includes("head") &&
    selection.now.head !== null &&
    selection.now.head < description.shape[axes.indexOf("head")]
  )
    state.held.head = selection.now.head;
  const size = (/** @type {string|null} */ axis) => (axis === null ? 1 : description.shape[axes.indexOf(axis)]);
  const controls = h("div", { class: "row wrap" });
  const holder = h("div", {});
  const copied = h("span", { class: "muted", "aria-live": "polite" });

  /** The slice the server is asked for: what is held, and all of the two axes shown. */
  const slice = () =>
    axes
      .filter((axis) => axis !== state.rows && axis !== state.columns)
      .map((axis) => `${axis}:${state.held[axis]}`)
      .join(",");

  async function table() {
    const tensor = await trace.tensor(name, slice());
    const [m, n] = [size(state.rows), size(state.columns)];
    state.top = Math.min(state.top, Math.max(0, m - 1));
    const rows = Array.from({ length: Math.min(ROWS, m - state.top) }, (_, i) => state.top + i);
    const columns = Array.from({ length: Math.min(COLUMNS, n - state.left) }, (_, j) => state.left + j);
    const at = (/** @type {number} */ i, /** @type {number} */ j) => {
      const place = { ...state.held };
      if (state.rows) place[state.rows] = i;
      if (state.columns) place[state.columns] = j;
      return place;
    };
    const head = h(
      "tr",
      {},
      h("td", {}),
      ...columns.map((j) => h("th", { scope: "col" }, ...label(context, name, state.columns, j))),
    );
    const lines = rows.map((i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, ...label(context, name, state.rows, i)),
        ...columns.map((j) => {
          const value = tensor.at(at(i, j));
          return h(
            "td",
            {},
            h(
              "button",
              {
                type: "button",
                class: "cell",
                "data-exact": exact(value),
                onclick: () => context.drawer.open(name, at(i, j)),
              },
              shown(value),
            ),
          );
        }),
      ),
    );
    replace(
      holder,
      pager("Rows", state.top, m, ROWS, (value) => {
        state.top = value;
        table();
      }),
      pager("Columns", state.left, n, COLUMNS, (value) => {
        state.left = value;
        table();
      }),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name} as a table` },
        h(
          "table",
          { class: "numbers" },
          h("caption", { class: "muted" }, `${state.rows ?? "–"} down, ${state.columns ?? "–"} across`),
          h("thead", {}, head),
          h("tbody", {}, ...lines),
        ),
      ),
    );
  }

  /** @param {"numpy"|"csv"} kind */
  async function copy(kind) {
    const tensor = await trace.tensor(name, slice());
    const [m, n] = [size(state.rows), size(state.columns)];
    const lines = Array.from({ length: m }, (_, i) =>
      Array.from({ length: n }, (_, j) =>
        exact(
          tensor.at({ ...(state.rows ? { [state.rows]: i } : {}), ...(state.columns ? { [state.columns]: j } : {}) }),
        ),
      ),
    );
    const text =
      kind === "csv"
        ? lines.map((line) => line.join(",")).join("\n")
        : `import numpy as np\nfrom numpy import inf, nan\n\n# ${name}${slice() ? ` at ${slice()}` : ""}\nvalues = np.array([${lines.map((line) => `[${line.join(", ")}]`).join(",\n ")}], dtype=np.float32)\n`;
    try {
      await navigator.clipboard.writeText(text);
      copied.textContent = `Copied ${m} x ${n} numbers.`;
    } catch {
      copied.textContent = "The browser does not allow copying; use the export (e).";
    }
  }

  function control() {
    const names = trace.header.tensors.map((tensor) => ({
      value: tensor.name,
      text: `${tensor.name} (${tensor.shape.join(" x ")})`,
    }));
    const axisChoice = (/** @type {"rows"|"columns"} */ which, /** @type {string} */ text) =>
      choice(
        text,
        axes.map((axis) => ({ value: axis, text: axis })),
        state[which] ?? "",
        (axis) => {
          const other = which === "rows" ? "columns" : "rows";
          if (state[other] === axis) state[other] = state[which];
          state[which] = axis;
          [state.top, state.left] = [0, 0];
          control();
          table();
        },
      );
    replace(
      controls,
      choice("Tensor", names, name, (tensor) => selection.set({ tensor })),
      axes.length > 1 ? axisChoice("rows", "Down") : null,
      axes.length > 1 ? axisChoice("columns", "Across") : null,
      ...axes
        .filter((axis) => axis !== state.rows && axis !== state.columns)
        .map((axis) =>
          choice(
            axis,
            Array.from({ length: Math.min(size(axis), 1000) }, (_, i) => ({
              value: String(i),
              text: plain(context, name, axis, i),
            })),
            String(state.held[axis]),
            (value) => {
              state.held[axis] = Number(value);
              table();
            },
          ),
        ),
      h("button", { type: "button", onclick: () => copy("numpy") }, "Copy as NumPy"),
      h("button", { type: "button", onclick: () => copy("csv") }, "Copy as CSV"),
      copied,
    );
  }
  control();
  replace(body, h("section", { class: "card" }, h("h2", {}, "Numbers"), controls, holder));
  await table();
}

/** @param {Context} context @param {string} name @param {string|null} axis @param {number} i */
function label(context, name, axis, i) {
  const words = axis ? context.trace.words(name, axis) : null;
  return words ? [h("span", { class: "muted" }, `${i} `), word(words[i].shown)] : [String(i)];
}

/** @param {Context} context @param {string} name @param {string} axis @param {number} i */
function plain(context, name, axis, i) {
  const words = context.trace.words(name, axis);
  return words ? `${i} ${words[i].shown}` : String(i);
}

/** @param {string} name @param {number} start @param {number} size @param {number} page @param {(start: number) => void} go */
function pager(name, start, size, page, go) {
  if (size <= page) return null;
  const last = Math.min(size, start + page);
  return h(
    "div",
    { class: "row pager" },
    h("span", { class: "muted" }, `${name} ${start} to ${last - 1} of ${size}`),
    h(
      "button",
      {
        type: "button",
        disabled: start === 0,
        "aria-label": `${name}: earlier`,
        onclick: () => go(Math.max(0, start - page)),
      },
      "‹",
    ),
    h(
      "button",
      { type: "button", disabled: last >= size, "aria-label": `${name}: later`, onclick: () => go(start + page) },
      "›",
    ),
  );
}
