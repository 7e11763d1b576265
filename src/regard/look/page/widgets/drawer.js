// @ts-check
/** The drawer on the right: one number, its position in the tensor, and how it was computed. */
import { h, replace, word } from "../core/dom.js";
import { formatExact, formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { softmax } from "../trace/probability.js";
import { explain } from "./explain.js";
import { drawExpression } from "./expression.js";
import { formula, fraction, mi, mn, mo, mrow, mtext, power, subscript, sum, sumTerms } from "./formula.js";
import { openWeight } from "./weight-matrix.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Index} Index */
/** @typedef {import("../core/types.js").Place} Place */

export class Drawer {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.request = 0;
    /** @type {Place[]} numbers that led to the one that is shown */
    this.trail = [];
    /** @type {Place|null} */
    this.current = null;
    /** @type {import("./expression.js").Links} */
    this.links = {
      label: (name, axis, at) => this.tokenAt(name, axis, at),
      open: (place) => this.follow(place),
      matrix: trace.live ? (name, index) => openWeight(trace, name, index).catch(showError) : null,
    };
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

  /** A number of a tensor, from outside: the trail starts anew. @param {string} name @param {Index} place */
  async open(name, place) {
    this.trail = [];
    await this.show({ kind: "tensor", name, index: place, ref: "" });
  }

  /** One level down: an operand of the explanation that is shown. @param {Place} place */
  follow(place) {
    if (this.current) this.trail.push(this.current);
    this.show(place).catch(showError);
  }

  back() {
    const before = this.trail.pop();
    if (before) this.show(before).catch(showError);
  }

  /** @param {Place} place */
  async show(place) {
    const request = this.begin();
    const { trace } = this;
    const isTensor = place.kind === "tensor" && trace.has(place.name);
    const axes = isTensor ? trace.describe(place.name).axes : Object.keys(place.index);
    const index = Object.fromEntries(axes.map((axis) => [axis, place.index[axis] ?? 0]));
    const slice = axes.map((axis) => `${axis}:${index[axis]}`).join(",");
    this.body.setAttribute("aria-busy", "true");
    const [recorded, explanation, note] = await Promise.all([
      isTensor ? trace.tensor(place.name, slice) : null,
      isTensor ? explain(trace, place.name, index) : trace.source.explain({ ref: place.ref }),
      isTensor ? probabilityNote(trace, place.name, index) : null,
    ]);
    if (request !== this.request) return;
    this.body.removeAttribute("aria-busy");
    this.current = { ...place, index };
    const number = recorded ? recorded.data[0] : (explanation.value ?? NaN);
    const { expression } = explanation;
    replace(
      this.body,
      this.trailButton(),
      h("p", { class: "name" }, h("code", {}, place.name)),
      h("dl", { class: "where" }, ...axes.flatMap((axis) => this.axisEntry(place.name, axis, index[axis]))),
      h("p", { class: "big value", "data-exact": formatExact(number) }, formatNumber(number)),
      h("p", {}, explanation.text),
      this.matrixButton(place, index),
      ...(expression ? drawExpression(expression, this.links) : []),
      expression ? agreement(expression.value, number) : null,
      note,
    );
    this.body.parentElement?.scrollTo({ top: 0 });
    const heading = this.node.querySelector("h2");
    if (heading && document.activeElement?.closest(".drawer, body") !== this.node && this.trail.length) heading.focus();
  }

  trailButton() {
    const before = this.trail[this.trail.length - 1];
    if (!before) return null;
    const last = before.name.split(".").slice(-1)[0];
    return h(
      "p",
      {},
      h("button", { type: "button", class: "link back", onclick: () => this.back() }, `‹ Back to ${last}`),
    );
  }

  /** @param {Place} place @param {Index} index */
  matrixButton(place, index) {
    if (place.kind !== "weight" || !this.links.matrix) return null;
    const open = () => this.links.matrix?.(place.name, index);
    return h("p", {}, h("button", { type: "button", onclick: open }, "Open matrix"));
  }

  begin() {
    if (this.node.hidden) this.previousFocus = /** @type {HTMLElement|null} */ (document.activeElement);
    this.node.hidden = false;
    return ++this.request;
  }

  /** The mean over heads, with the value of each head. @param {string} name @param {Index} place */
  async openMean(name, place) {
    const request = this.begin();
    [this.trail, this.current] = [[], null];
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

  /** An index with the token that stands there. @param {string} name @param {string} axis @param {number} at */
  tokenAt(name, axis, at) {
    const token = this.trace.has(name) ? this.trace.tokens(name, axis)?.[at] : null;
    return token ? `${at} ${token.label}` : String(at);
  }

  /** @param {string} name @param {string} axis @param {number} at */
  axisEntry(name, axis, at) {
    if (axis.startsWith("axis ")) return []; // of a tensor that was not recorded
    const token = this.trace.has(name) ? this.trace.tokens(name, axis)?.[at] : null;
    return [h("dt", {}, axis), h("dd", {}, String(at), token ? " " : null, token ? word(token.label) : null)];
  }
}

/** The probability that a logit becomes. @param {Trace} trace @param {string} name @param {Index} index */
async function probabilityNote(trace, name, index) {
  if (name !== "logits") return null;
  const { axes } = trace.describe(name);
  const along = axes[axes.length - 1];
  const others = axes.slice(0, -1).map((axis) => `${axis}:${index[axis]}`);
  const row = (await trace.tensor(name, others.join(","))).vector(along, {});
  const below = mrow(sum("j"), power(mi("e"), subscript(mi("logit"), mi("j"))));
  const p = formula(
    mi("p"),
    mo("="),
    fraction(power(mi("e"), mi("logit")), below),
    mo("="),
    mn(softmax(row)[index[along]]),
  );
  return h(
    "section",
    { class: "operand" },
    h("h3", {}, "As a probability"),
    h("p", { class: "muted" }, `Softmax over ${row.length.toLocaleString("en")} logits:`),
    h("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "Probability" }, p),
  );
}

/** @param {number} computed @param {number} recorded */
function agreement(computed, recorded) {
  const off = computed === recorded ? 0 : Math.abs(computed - recorded);
  if (off > 1e-3 * Math.max(1, Math.abs(recorded))) {
    return h(
      "p",
      { class: "agreement bad", "data-off": String(off) },
      `This gives ${formatNumber(computed)}, but the model recorded ${formatNumber(recorded)}: it uses another formula.`,
    );
  }
  const text =
    off === 0
      ? "Computed from these numbers: equal to the recorded value."
      : `Computed from these numbers in double precision: differs by ${off.toExponential(1).replace("-", "−")} from the recorded value.`;
  return h("p", { class: "muted agreement", "data-off": String(off) }, text);
}
