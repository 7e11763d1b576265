// @ts-check
/** Losses of several runs on one chart, smoothed: the training screen offers the other runs to be added. */
import { get } from "../core/api.js";
import { h, replace, selectField, word } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { chart } from "../widgets/chart.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {{name: string, rows: Row[]}} RunRows */

const ROLES = ["attention", "chosen", "query", "key", "value", "source"];
/** Runs on one chart, one color each. */
const MAX_RUNS = ROLES.length;
const SMOOTHING = ["0", "0.6", "0.9", "0.98"];

export class LossComparison {
  /** @param {string} run id of the run of this screen @param {() => Row[]} rows of that run @param {() => string} name */
  constructor(run, rows, name) {
    this.run = run;
    this.own = () => ({ name: name(), rows: rows() });
    this.smoothing = "0.9";
    this.kind = "stepped";
    /** @type {Map<string, RunRows>} */
    this.added = new Map();
    this.choices = h("div", { class: "row run-choices" });
    this.picture = h("div", {});
    this.node = h(
      "details",
      { class: "card loss-comparison" },
      h("summary", {}, "Loss of several runs"),
      this.choices,
      this.picture,
    );
    this.node.addEventListener("toggle", () => {
      if (this.node.open && !this.choices.childElementCount) this.open().catch(showError);
    });
  }

  async open() {
    /** @type {{models: import("../core/types.js").Model[]}} */
    const { models } = await get("models");
    const others = models.filter(({ id, step }) => id !== this.run && step !== null);
    const box = (/** @type {import("../core/types.js").Model} */ { id, name }) => {
      const input = h("input", { type: "checkbox", onchange: () => this.toggle(id, name, input).catch(showError) });
      return h("label", { class: "field" }, input, word(name));
    };
    replace(
      this.choices,
      ...(others.length ? others.map(box) : [h("p", { class: "muted" }, "There is no other run.")]),
    );
    this.draw();
  }

  /** @param {string} id @param {string} name @param {HTMLInputElement} input */
  async toggle(id, name, input) {
    if (!input.checked) this.added.delete(id);
    else if (this.added.size + 1 >= MAX_RUNS) input.checked = false;
    else this.added.set(id, { name, rows: await readRows(id) });
    this.draw();
  }

  draw() {
    if (!this.node.open) return;
    const runs = [this.own(), ...this.added.values()];
    const lines = runs.map(({ name, rows }, i) => ({
      name,
      role: ROLES[i],
      dots: false,
      points: smooth(lossPoints(rows, this.kind), this.kind === "stepped" ? Number(this.smoothing) : 0),
    }));
    const kinds = [
      { value: "stepped", text: "training" },
      { value: "validated", text: "validation" },
    ];
    const levels = SMOOTHING.map((value) => ({ value, text: value === "0" ? "none" : value }));
    const set = (/** @type {"kind"|"smoothing"} */ field) => (/** @type {string} */ value) => {
      this[field] = value;
      this.draw();
    };
    replace(
      this.picture,
      h(
        "div",
        { class: "row" },
        selectField("Loss", kinds, this.kind, set("kind")),
        this.kind === "stepped" ? selectField("Smoothing", levels, this.smoothing, set("smoothing")) : null,
      ),
      chart(
        "Loss by step",
        lines,
        `At most ${MAX_RUNS} runs. Smoothing s: each point is s times the smoothed one before plus 1 − s times the loss, corrected for the start. Losses are comparable only over the same vocabulary and data.`,
      ),
      h(
        "ul",
        { class: "run-legend" },
        ...lines.map(({ name, role }) => h("li", {}, h("span", { class: `swatch ${role}` }), word(name))),
      ),
    );
  }
}

/** All rows of a run's metrics. @param {string} run @returns {Promise<Row[]>} */
async function readRows(run) {
  /** @type {Row[]} */
  const rows = [];
  let [version, since, more] = ["", 0, true];
  while (more) {
    const page = await get(
      `runs/${encodeURIComponent(run)}/metrics?since=${since}&version=${encodeURIComponent(version)}`,
    );
    rows.push(...page.rows);
    [version, since, more] = [page.version, page.next, page.more];
  }
  return rows;
}

/** @param {Row[]} rows @param {string} kind @returns {[number, number][]} */
function lossPoints(rows, kind) {
  return rows.flatMap((row) =>
    row.event === kind && typeof row.loss === "number" ? [/** @type {[number, number]} */ ([row.step, row.loss])] : [],
  );
}

/** Exponential moving average, corrected for its start at 0. @param {[number, number][]} points @param {number} share */
export function smooth(points, share) {
  let [mean, weight] = [0, 0];
  return points.map(([step, value]) => {
    mean = share * mean + (1 - share) * value;
    weight = share * weight + (1 - share);
    return /** @type {[number, number]} */ ([step, mean / weight]);
  });
}
