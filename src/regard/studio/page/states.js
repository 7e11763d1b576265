// @ts-check
/** Vectors that travel along a sentence: hidden, cell, gates, residuals; each unit at each word. */
import { labels } from "./onehead.js";
import { css, ink, rgb } from "./colour.js";
import { choice, h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { matrix } from "./matrix.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Description} Description */

const UNITS = 64;

/** Tensors with a vector at each place of a sentence. @param {import("./types.js").Header} header */
export function vectors(header) {
  return header.tensors.filter((tensor) => tensor.axes.includes("width") && along(tensor) !== null);
}

/** The axis that runs along the sentence. @param {Description} tensor */
export function along(tensor) {
  return ["position", "step", "query", "key"].find((axis) => tensor.axes.includes(axis)) ?? null;
}

/** @param {Context} context */
export async function statesTab(context) {
  const { trace, selection } = context;
  const all = vectors(trace.header);
  if (!all.length) return h("p", { class: "empty" }, "No vectors were recorded along the sentence.");
  const body = h("div", { class: "stack" });
  const held = { head: selection.now.head ?? 0, gate: 0 };
  let unit = 0;
  let first = 0;

  async function draw() {
    const chosen =
      all.find((tensor) => tensor.name === selection.now.tensor) ??
      all.find((tensor) => /(hidden|cell)$/.test(tensor.name)) ??
      all.find((tensor) => tensor.name.endsWith("residual")) ??
      all[0];
    const place = /** @type {string} */ (along(chosen));
    const tensor = await trace.tensor(chosen.name);
    const size = (/** @type {string} */ axis) => tensor.size(axis);
    unit = Math.min(unit, size("width") - 1);
    first = Math.min(first, Math.max(0, size("width") - 1));
    const at = { head: Math.min(held.head, size("head") - 1), gate: Math.min(held.gate, size("gate") - 1) };
    const words = labels(trace, chosen.name, place, size(place));
    const units = Array.from({ length: Math.min(UNITS, size("width") - first) }, (_, i) => first + i);
    const numbers = new Float64Array(words.length * units.length);
    units.forEach((u, j) =>
      tensor.along(place, { ...at, width: u }).forEach((value, i) => {
        numbers[i * units.length + j] = value;
      }),
    );
    const top = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const other = chosen.axes.filter((axis) => axis !== place && axis !== "width");
    replace(
      body,
      h(
        "section",
        { class: "card" },
        h(
          "div",
          { class: "row wrap" },
          h("h2", {}, "States"),
          choice(
            "Vectors",
            all.map((t) => ({ value: t.name, text: t.name })),
            chosen.name,
            (tensor) => selection.set({ tensor }),
          ),
          ...other.map((axis) =>
            choice(
              axis,
              Array.from({ length: size(axis) }, (_, i) => ({
                value: String(i),
                text: trace.words(chosen.name, axis)?.[i].shown ?? String(i),
              })),
              String(at[/** @type {"head"|"gate"} */ (axis)]),
              (value) => {
                held[/** @type {"head"|"gate"} */ (axis)] = Number(value);
                draw();
              },
            ),
          ),
        ),
        coloured(words, tensor.along(place, { ...at, width: unit }), unit),
        size("width") > UNITS
          ? h(
              "div",
              { class: "row pager" },
              h("span", { class: "muted" }, `units ${first} to ${first + units.length - 1} of ${size("width")}`),
              h(
                "button",
                {
                  type: "button",
                  disabled: first === 0,
                  "aria-label": "Earlier units",
                  onclick: () => {
                    first = Math.max(0, first - UNITS);
                    unit = first;
                    draw();
                  },
                },
                "‹",
              ),
              h(
                "button",
                {
                  type: "button",
                  disabled: first + UNITS >= size("width"),
                  "aria-label": "Later units",
                  onclick: () => {
                    first += UNITS;
                    unit = first;
                    draw();
                  },
                },
                "›",
              ),
            )
          : null,
        matrix({
          title: chosen.name,
          numbers,
          rows: words,
          columns: units.map(String),
          rowTitle: place,
          columnTitle: "unit",
          ramp: "signed",
          top,
          largest: 28,
          selected: null,
          onselect: (i, j) => {
            unit = units[j];
            replace(line(), ...coloured(words, tensor.along(place, { ...at, width: unit }), unit).childNodes);
          },
          onexplain: (i, j) => context.drawer.open(chosen.name, { ...at, width: units[j], [place]: i }),
        }),
      ),
    );
  }
  const line = () => /** @type {HTMLElement} */ (body.querySelector(".coloured"));
  await draw();
  context.onleave(
    selection.listen((changed) => {
      if ("tensor" in changed) draw();
    }),
  );
  return body;
}

/** The sentence, each word in the colour of one unit. @param {string[]} words @param {Float64Array} values @param {number} unit */
function coloured(words, values, unit) {
  const top = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  return h(
    "p",
    { class: "tokens coloured" },
    h("span", { class: "muted" }, `unit ${unit}: `),
    ...words.map((text, i) => {
      const colour = rgb(values[i], top, "signed");
      const node = h(
        "span",
        { class: "token", title: shown(values[i]) },
        word(text),
        h("small", {}, values[i].toFixed(2).replace("-", "−")),
      );
      node.style.background = css(colour);
      node.style.color = ink(colour);
      return node;
    }),
  );
}
