// @ts-check
/** A training, while it goes on or when it is over: loss, scores, learning rate, gradient, speed, and what it says. */
import { get } from "./api.js";
import { chart } from "./chart.js";
import { Control } from "./control.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { tell } from "./notice.js";
import { Probe } from "./probe.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {import("./types.js").Progress} Progress */

const [PAUSE, WAITING] = [2000, 500];

/** @param {string} run @returns {Promise<import("./inspector.js").Screen>} */
export async function training(run) {
  const screen = new Training(run);
  await screen.read();
  return {
    node: screen.node,
    title: `Training of ${screen.name}`,
    redraw: () => screen.redraw(),
    key: (event) => screen.probe.key(event),
    leave: () => screen.leave(),
  };
}

class Training {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    this.name = "";
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Row[]} */
    this.samples = [];
    this.version = "";
    this.since = 0;
    this.timer = 0;
    this.gone = false;
    this.title = h("h1", {});
    this.state = h("p", { class: "muted", role: "status" });
    this.charts = h("div", { class: "charts" });
    this.said = h("div", {});
    this.control = new Control(run, () => this.again(0));
    this.probe = new Probe(run);
    this.node = h(
      "main",
      { class: "wide", tabindex: "-1" },
      h("div", {}, this.title, this.state, this.control.node),
      this.charts,
      this.probe.node,
      this.said,
    );
  }

  leave() {
    this.gone = true;
    clearTimeout(this.timer);
    this.probe.leave();
  }

  /** @param {number} pause */
  again(pause) {
    clearTimeout(this.timer);
    if (!this.gone) this.timer = window.setTimeout(() => this.read().catch(tell), pause);
  }

  async read() {
    /** @type {Progress} */
    let told;
    let changed = false;
    do {
      const query = `since=${this.since}&version=${encodeURIComponent(this.version)}`;
      told = await get(`runs/${encodeURIComponent(this.run)}/metrics?${query}`);
      if (told.anew) this.rows = [];
      this.rows.push(...told.rows);
      changed ||= told.anew || told.rows.length > 0;
      [this.version, this.since, this.name] = [told.version, told.next, told.name];
    } while (told.more);
    this.samples = told.samples;
    if (changed) this.draw();
    const last = this.rows[this.rows.length - 1];
    const over = last?.event === "ended";
    this.control.show(told, this.rows, over);
    await this.probe.show(told.probe);
    if (!over) this.again(told.asked ? WAITING : PAUSE);
  }

  redraw() {
    this.draw();
    this.probe.draw();
  }

  draw() {
    replace(this.title, "Training of ", word(this.name));
    this.state.textContent = stated(this.rows);
    replace(this.charts, ...charts(this.rows));
    replace(this.said, said(this.samples));
  }
}

/** How far it is, in a line. @param {Row[]} rows */
function stated(rows) {
  const last = rows[rows.length - 1];
  if (!last) return "Nothing was written yet; this page looks again every two seconds.";
  if (last.event === "ended") return `Ended at step ${last.step.toLocaleString("en")}: ${last.reason}.`;
  const begun = rows.filter((row) => row.event === "began").pop();
  const step = rows.reduce((most, row) => (["stepped", "validated"].includes(row.event) ? row.step : most), 0);
  const steps = begun ? begun.steps.toLocaleString("en") : "?";
  return `Step ${step.toLocaleString("en")} of ${steps}; looked again every two seconds.`;
}

/** @param {Row[]} rows */
function charts(rows) {
  const steps = rows.filter((row) => row.event === "stepped");
  const tried = rows.filter((row) => row.event === "validated");
  const scores = [...new Set(tried.flatMap((row) => Object.keys(row)))].filter(
    (key) => !["event", "step", "best", "loss"].includes(key),
  );
  /** @type {(name: string) => string} */
  const titled = (name) => ({ ppl: "Perplexity", bleu: "BLEU", bits: "Bits a character" })[name] ?? name;
  const speed = (/** @type {Row} */ row) => (row.seconds > 0 ? row.tokens / row.seconds : null);
  return [
    chart("Loss", [
      { name: "training", role: "attention", points: points(steps, (row) => row.loss) },
      { name: "validation", role: "chosen", dots: true, points: points(tried, (row) => row.loss) },
    ]),
    ...scores.map((key) =>
      chart(titled(key), [
        { name: "validation", role: "chosen", dots: true, points: points(tried, (row) => row[key]) },
      ]),
    ),
    chart("Learning rate", [{ name: "rate", role: "query", points: points(steps, (row) => row.rate) }]),
    chart("Gradient norm", [{ name: "norm", role: "key", points: points(steps, (row) => row.norm) }]),
    chart("Tokens a second", [{ name: "tokens/s", role: "value", points: points(steps, speed) }]),
  ];
}

/** @type {(from: Row[], get: (row: Row) => unknown) => [number, number][]} */
function points(from, get) {
  return from.flatMap((row) =>
    typeof get(row) === "number" ? [/** @type {[number, number]} */ ([row.step, get(row)])] : [],
  );
}

/** @param {Row[]} samples */
function said(samples) {
  if (!samples.length) return null;
  const columns = [...new Set(samples.flatMap((row) => Object.keys(row)))].filter((key) => key !== "event");
  const cell = (/** @type {unknown} */ value) =>
    typeof value === "number" ? (Number.isInteger(value) ? String(value) : shown(value)) : word(String(value ?? ""));
  const rows = [...samples].reverse().map((row) => h("tr", {}, ...columns.map((name) => h("td", {}, cell(row[name])))));
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What it said"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Samples" },
      h(
        "table",
        { class: "list" },
        h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, ...rows),
      ),
    ),
  );
}
