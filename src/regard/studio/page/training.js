// @ts-check
/** A training, while it goes on or when it is over: loss, scores, learning rate, gradient, speed, and what it says. */
import { get } from "./api.js";
import { chart } from "./chart.js";
import { Control } from "./control.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { Live } from "./live.js";
import { tell } from "./notice.js";
import { Probe } from "./probe.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {import("./types.js").Progress} Progress */

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
    /** @type {Progress|null} */
    this.told = null;
    this.there = true;
    this.title = h("h1", {});
    this.state = h("p", { class: "muted", role: "status" });
    this.charts = h("div", { class: "charts" });
    this.said = h("div", {});
    this.control = new Control(run);
    this.live = new Live(
      run,
      (told) => this.hear(told).catch(tell),
      (there) => this.hears(there),
    );
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
    this.live.close();
    this.probe.leave();
  }

  /** All that was written until now; what comes after it is heard. */
  async read() {
    /** @type {Progress} */
    let told;
    let [version, since] = ["", 0];
    do {
      const query = `since=${since}&version=${encodeURIComponent(version)}`;
      told = await get(`runs/${encodeURIComponent(this.run)}/metrics?${query}`);
      [version, since, this.name] = [told.version, told.next, told.name];
      await this.hear(told);
    } while (told.more);
    if (!this.over) this.live.open(`${version}-${since}`);
  }

  get over() {
    return this.rows[this.rows.length - 1]?.event === "ended";
  }

  /** What is new. @param {Partial<Progress>} told */
  async hear(told) {
    const now = /** @type {Progress} */ ({ ...this.told, ...told });
    if (told.anew) this.rows = [];
    this.rows.push(...(told.rows ?? []));
    const changed = told.anew || told.rows?.length || told.samples;
    [this.told, this.samples] = [now, now.samples];
    if (changed) this.draw();
    this.control.show(now, this.rows, this.over);
    if (this.over) this.live.close();
    await this.probe.show(now.probe);
  }

  /** @param {boolean} there whether the server answers */
  hears(there) {
    this.there = there;
    this.state.textContent = stated(this.rows, there);
  }

  redraw() {
    this.draw();
    this.probe.draw();
  }

  draw() {
    replace(this.title, "Training of ", word(this.name));
    this.state.textContent = stated(this.rows, this.there);
    replace(this.charts, ...charts(this.rows));
    replace(this.said, said(this.samples));
  }
}

/** How far it is, in a line. @param {Row[]} rows @param {boolean} there whether the server answers */
function stated(rows, there) {
  const last = rows[rows.length - 1];
  const live = there ? "this page follows it" : "the server does not answer, and this page goes on asking it";
  if (!last) return `Nothing was written yet; ${live}.`;
  if (last.event === "ended") return `Ended at step ${last.step.toLocaleString("en")}: ${last.reason}.`;
  const begun = rows.filter((row) => row.event === "began").pop();
  const step = rows.reduce((most, row) => (["stepped", "validated"].includes(row.event) ? row.step : most), 0);
  const steps = begun ? begun.steps.toLocaleString("en") : "?";
  return `Step ${step.toLocaleString("en")} of ${steps}; ${live}.`;
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
