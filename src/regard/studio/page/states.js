// @ts-check
/** Vectors that travel along a sentence: hidden, cell, gates, residuals; each unit at each word. */
import { css, ink, rgb } from "./colour.js";
import { choice, h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { following } from "./following.js";
import { matrix } from "./matrix.js";
import { tell } from "./notice.js";
import { labels } from "./onehead.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./tensor.js").Tensor} Tensor */
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
  const tab = new States(context);
  if (!tab.all.length) return h("p", { class: "empty" }, "No vectors were recorded along the sentence.");
  await tab.draw();
  context.onleave(
    context.selection.listen((changed) => {
      if ("tensor" in changed) tab.draw().catch(tell);
    }),
  );
  return tab.node;
}

class States {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.all = vectors(context.trace.header);
    /** @type {Record<string, number>} */
    this.held = { head: context.selection.now.head ?? 0, gate: 0 };
    this.unit = 0;
    this.first = 0;
    this.line = h("p", { class: "tokens coloured" });
    this.card = h("section", { class: "card" });
    this.next = h("div", {});
    this.node = h("div", { class: "stack" }, this.card, this.next);
  }

  /** What is looked at: as chosen, else a state, else whatever there is. */
  get chosen() {
    const named = (/** @type {RegExp} */ end) => this.all.find((tensor) => end.test(tensor.name));
    const asked = this.all.find((tensor) => tensor.name === this.context.selection.now.tensor);
    return asked ?? named(/(hidden|cell)$/) ?? named(/residual$/) ?? this.all[0];
  }

  async draw() {
    const { chosen } = this;
    const tensor = await this.context.trace.tensor(chosen.name);
    this.unit = Math.min(this.unit, tensor.size("width") - 1);
    this.first = Math.min(this.first, Math.max(0, tensor.size("width") - 1));
    const place = /** @type {string} */ (along(chosen));
    const at = Object.fromEntries(
      Object.entries(this.held).map(([axis, i]) => [axis, Math.min(i, tensor.size(axis) - 1)]),
    );
    const words = labels(this.context.trace, chosen.name, place, tensor.size(place));
    this.colour(words, tensor.along(place, { ...at, width: this.unit }));
    replace(
      this.card,
      this.controls(chosen, tensor, at),
      this.line,
      this.pager(tensor.size("width")),
      this.picture(chosen, tensor, place, at, words),
    );
    replace(this.next, following(this.context, chosen));
  }

  /** @param {Description} chosen @param {Tensor} tensor @param {Record<string, number>} at */
  controls(chosen, tensor, at) {
    const { trace, selection } = this.context;
    const names = this.all.map((t) => ({ value: t.name, text: t.name }));
    const held = chosen.axes.filter((axis) => axis !== along(chosen) && axis !== "width");
    const places = (/** @type {string} */ axis) =>
      Array.from({ length: tensor.size(axis) }, (_, i) => ({
        value: String(i),
        text: trace.words(chosen.name, axis)?.[i].shown ?? String(i),
      }));
    return h(
      "div",
      { class: "row wrap" },
      h("h2", {}, "States"),
      choice("Vectors", names, chosen.name, (tensor) => selection.set({ tensor })),
      ...held.map((axis) =>
        choice(axis, places(axis), String(at[axis] ?? 0), (value) => {
          this.held[axis] = Number(value);
          this.draw().catch(tell);
        }),
      ),
    );
  }

  /** @param {number} size */
  pager(size) {
    if (size <= UNITS) return null;
    const go = (/** @type {number} */ by) => {
      this.first = Math.max(0, this.first + by);
      this.unit = this.first;
      this.draw().catch(tell);
    };
    const last = Math.min(size, this.first + UNITS) - 1;
    const turn = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {number} */ by,
      /** @type {boolean} */ disabled,
    ) => h("button", { type: "button", disabled, "aria-label": name, onclick: () => go(by) }, text);
    return h(
      "div",
      { class: "row pager" },
      h("span", { class: "muted" }, `units ${this.first} to ${last} of ${size}`),
      turn("‹", "Earlier units", -UNITS, this.first === 0),
      turn("›", "Later units", UNITS, this.first + UNITS >= size),
    );
  }

  /** @param {Description} chosen @param {Tensor} tensor @param {string} place @param {Record<string, number>} at @param {string[]} words */
  picture(chosen, tensor, place, at, words) {
    const units = Array.from({ length: Math.min(UNITS, tensor.size("width") - this.first) }, (_, i) => this.first + i);
    const numbers = new Float64Array(words.length * units.length);
    units.forEach((unit, j) =>
      tensor.along(place, { ...at, width: unit }).forEach((value, i) => {
        numbers[i * units.length + j] = value;
      }),
    );
    return matrix({
      title: chosen.name,
      numbers,
      rows: words,
      columns: units.map(String),
      rowTitle: place,
      columnTitle: "unit",
      ramp: "signed",
      top: numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
      largest: 28,
      selected: null,
      onselect: (_, j) => {
        this.unit = units[j];
        this.colour(words, tensor.along(place, { ...at, width: this.unit }));
      },
      onexplain: (i, j) => this.context.drawer.open(chosen.name, { ...at, width: units[j], [place]: i }),
    });
  }

  /** The sentence, each word in the colour of one unit. @param {string[]} words @param {Float64Array} values */
  colour(words, values) {
    const top = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const coloured = words.map((text, i) => {
      const colour = rgb(values[i], top, "signed");
      const number = h("small", {}, values[i].toFixed(2).replace("-", "−"));
      const node = h("span", { class: "token", title: shown(values[i]) }, word(text), number);
      node.style.background = css(colour);
      node.style.color = ink(colour);
      return node;
    });
    replace(this.line, h("span", { class: "muted" }, `unit ${this.unit}: `), ...coloured);
  }
}
