// @ts-check
/** The drawer on the right: one number, where it stands, and how it came about. */
import { h, replace, word } from "./dom.js";
import { explain } from "./explain.js";
import { exact, shown } from "./format.js";
import { formula, mn, mo, over, total, words } from "./formula.js";
import { strip } from "./strip.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./types.js").Place} Place */

export class Drawer {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.turn = 0;
    this.body = h("div", { class: "drawer-body" });
    this.node = h(
      "aside",
      { class: "drawer", "aria-label": "Explanation", hidden: true },
      h(
        "header",
        {},
        h("h2", { tabindex: "-1" }, "This number"),
        h("button", { type: "button", class: "icon", "aria-label": "Close", onclick: () => this.close() }, "✕"),
      ),
      this.body,
    );
    /** @type {HTMLElement|null} */
    this.before = null;
  }

  close() {
    if (this.node.hidden) return false;
    this.node.hidden = true;
    this.before?.focus();
    return true;
  }

  /** @param {string} name @param {Place} place */
  async open(name, place) {
    const turn = this.begin();
    const description = this.trace.describe(name);
    const held = Object.fromEntries(description.axes.map((axis) => [axis, place[axis] ?? 0]));
    const slice = description.axes.map((axis) => `${axis}:${held[axis]}`).join(",");
    const [value, found] = await Promise.all([this.trace.tensor(name, slice), explain(this.trace, name, held)]);
    if (turn !== this.turn) return;
    const number = value.data[0];
    replace(
      this.body,
      h("p", { class: "name" }, h("code", {}, name)),
      h("dl", { class: "where" }, ...description.axes.flatMap((axis) => this.axis(name, axis, held[axis]))),
      h("p", { class: "big value", "data-exact": exact(number) }, shown(number)),
      h("p", {}, found.text),
      ...found.formulas.map((formula) =>
        h("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "Formula" }, formula),
      ),
      found.computed === null ? null : agreement(found.computed, number),
      ...found.operands.map((operand) =>
        h("section", { class: "operand" }, h("h3", {}, operand.label), operands(operand)),
      ),
      ...found.next.map((next) =>
        h(
          "p",
          {},
          h("button", { type: "button", class: "link", onclick: () => this.open(next.name, next.place) }, next.label),
        ),
      ),
    );
    const heading = this.node.querySelector("h2");
    if (heading && document.activeElement?.closest(".drawer")) heading.focus();
  }

  begin() {
    if (this.node.hidden) this.before = /** @type {HTMLElement|null} */ (document.activeElement);
    this.node.hidden = false;
    return ++this.turn;
  }

  /** A mean over heads: what each of them has there. @param {string} name @param {Place} place */
  async openMean(name, place) {
    const turn = this.begin();
    const { axes } = this.trace.describe(name);
    const held = axes.filter((axis) => axis !== "head");
    const values = (await this.trace.tensor(name, held.map((axis) => `${axis}:${place[axis] ?? 0}`).join(","))).along(
      "head",
      {},
    );
    if (turn !== this.turn) return;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    replace(
      this.body,
      h("p", { class: "name" }, h("code", {}, name)),
      h("dl", { class: "where" }, ...held.flatMap((axis) => this.axis(name, axis, place[axis] ?? 0))),
      h("p", { class: "big value", "data-exact": String(mean) }, shown(mean)),
      h("p", {}, `The mean of ${values.length} heads.`),
      h(
        "div",
        { class: "formula", tabindex: "0", role: "group", "aria-label": "Formula" },
        formula(over(total(values), words(String(values.length))), mo("="), mn(mean)),
      ),
      h(
        "ul",
        { class: "heads-list" },
        ...Array.from(values, (value, head) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", class: "link", onclick: () => this.open(name, { ...place, head }) },
              `head ${head}`,
            ),
            ` ${shown(value)}`,
          ),
        ),
      ),
    );
  }

  /** @param {string} name @param {string} axis @param {number} at */
  axis(name, axis, at) {
    const words = this.trace.words(name, axis);
    return [h("dt", {}, axis), h("dd", {}, String(at), words ? " " : null, words ? word(words[at].shown) : null)];
  }
}

/** @param {number} computed @param {number} recorded */
function agreement(computed, recorded) {
  const off = Math.abs(computed - recorded);
  if (off > 1e-3 * Math.max(1, Math.abs(recorded))) {
    return h(
      "p",
      { class: "agreement bad", "data-off": String(off) },
      `That gives ${shown(computed)}, and the model used ${shown(recorded)}: this model computes it in another way.`,
    );
  }
  const text =
    off === 0
      ? "Computed again here: the same."
      : `Computed again here in double precision: ${off.toExponential(1).replace("-", "−")} away from the model's own.`;
  return h("p", { class: "muted agreement", "data-off": String(off) }, text);
}

/** @param {{label: string, numbers: Float64Array, names: string[]|null}} operand */
function operands(operand) {
  const finite = Array.from(operand.numbers).filter(Number.isFinite);
  const top = Math.max(1e-12, ...finite.map(Math.abs));
  const ramp = operand.label.startsWith("weight") ? "weight" : "signed";
  return strip({ numbers: operand.numbers, top, ramp, label: operand.label, names: operand.names });
}
