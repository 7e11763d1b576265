// @ts-check
/** The drawer on the right: one number, its position in the tensor, and how it was computed. */
import { h, replace, word } from "../core/dom.js";
import { formatExact, formatNumber } from "../core/format.js";
import { explain } from "./explain.js";
import { formula, fraction, mn, mo, mtext, sumTerms } from "./formula.js";
import { strip } from "./strip.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Index} Index */

export class Drawer {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.request = 0;
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
    this.previousFocus = null;
    /** @type {(() => void)|null} called when it is closed */
    this.onclose = null;
  }

  close() {
    if (this.node.hidden) return false;
    this.node.hidden = true;
    this.previousFocus?.focus({ preventScroll: true });
    this.onclose?.();
    return true;
  }

  /** @param {string} name @param {Index} place */
  async open(name, place) {
    const request = this.begin();
    const description = this.trace.describe(name);
    const index = Object.fromEntries(description.axes.map((axis) => [axis, place[axis] ?? 0]));
    const slice = description.axes.map((axis) => `${axis}:${index[axis]}`).join(",");
    const [value, explanation] = await Promise.all([this.trace.tensor(name, slice), explain(this.trace, name, index)]);
    if (request !== this.request) return;
    const number = value.data[0];
    replace(
      this.body,
      h("p", { class: "name" }, h("code", {}, name)),
      h("dl", { class: "where" }, ...description.axes.flatMap((axis) => this.axisEntry(name, axis, index[axis]))),
      h("p", { class: "big value", "data-exact": formatExact(number) }, formatNumber(number)),
      h("p", {}, explanation.text),
      ...explanation.formulas.map((formula) =>
        h("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "Formula" }, formula),
      ),
      explanation.computed === null ? null : agreement(explanation.computed, number),
      ...explanation.operands.map((operand) =>
        h("section", { class: "operand" }, h("h3", {}, operand.label), operandStrip(operand)),
      ),
      ...explanation.next.map((next) =>
        h(
          "p",
          {},
          h("button", { type: "button", class: "link", onclick: () => this.open(next.name, next.index) }, next.label),
        ),
      ),
    );
    const heading = this.node.querySelector("h2");
    if (heading && document.activeElement?.closest(".drawer")) heading.focus();
  }

  begin() {
    if (this.node.hidden) this.previousFocus = /** @type {HTMLElement|null} */ (document.activeElement);
    this.node.hidden = false;
    return ++this.request;
  }

  /** The mean over heads, with the value of each head. @param {string} name @param {Index} place */
  async openMean(name, place) {
    const request = this.begin();
    const { axes } = this.trace.describe(name);
    const fixed = axes.filter((axis) => axis !== "head");
    const values = (await this.trace.tensor(name, fixed.map((axis) => `${axis}:${place[axis] ?? 0}`).join(","))).vector(
      "head",
      {},
    );
    if (request !== this.request) return;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    replace(
      this.body,
      h("p", { class: "name" }, h("code", {}, name)),
      h("dl", { class: "where" }, ...fixed.flatMap((axis) => this.axisEntry(name, axis, place[axis] ?? 0))),
      h("p", { class: "big value", "data-exact": String(mean) }, formatNumber(mean)),
      h("p", {}, `The mean of ${values.length} heads.`),
      h(
        "div",
        { class: "formula", tabindex: "0", role: "group", "aria-label": "Formula" },
        formula(fraction(sumTerms(values), mtext(String(values.length))), mo("="), mn(mean)),
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
            ` ${formatNumber(value)}`,
          ),
        ),
      ),
    );
  }

  /** @param {string} name @param {string} axis @param {number} at */
  axisEntry(name, axis, at) {
    const tokens = this.trace.tokens(name, axis);
    return [h("dt", {}, axis), h("dd", {}, String(at), tokens ? " " : null, tokens ? word(tokens[at].label) : null)];
  }
}

/** @param {number} computed @param {number} recorded */
function agreement(computed, recorded) {
  const off = Math.abs(computed - recorded);
  if (off > 1e-3 * Math.max(1, Math.abs(recorded))) {
    return h(
      "p",
      { class: "agreement bad", "data-off": String(off) },
      `This gives ${formatNumber(computed)}, but the model recorded ${formatNumber(recorded)}: it uses another formula.`,
    );
  }
  const text =
    off === 0
      ? "Recomputed in the browser: equal."
      : `Recomputed in double precision: differs by ${off.toExponential(1).replace("-", "−")} from the recorded value.`;
  return h("p", { class: "muted agreement", "data-off": String(off) }, text);
}

/** @param {{label: string, numbers: Float64Array, names: string[]|null}} operand */
function operandStrip(operand) {
  const finite = Array.from(operand.numbers).filter(Number.isFinite);
  const top = Math.max(1e-12, ...finite.map(Math.abs));
  const ramp = operand.label.startsWith("weight") ? "weight" : "signed";
  return strip({ numbers: operand.numbers, top, ramp, label: operand.label, names: operand.names });
}
