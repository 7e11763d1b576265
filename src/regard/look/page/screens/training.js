// @ts-check
/** A training run, live or finished: loss, metrics, learning rate, gradient norm, speed, probe and samples. */
import { get } from "../core/api.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { capitalize, metricTitle } from "../core/scores.js";
import { chart } from "../widgets/chart.js";
import { table } from "../widgets/table.js";
import { LossComparison } from "./loss-comparison.js";
import { Probe } from "./probe.js";
import { TrainingControl } from "./training-control.js";
import { TrainingEvents } from "./training-events.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {import("../core/types.js").Progress} Progress */

/** @param {string} run @returns {Promise<import("../core/types.js").Screen>} */
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
    this.progress = null;
    this.connected = true;
    this.title = h("h1", {});
    this.state = h("p", { class: "muted", role: "status" });
    this.charts = h("div", { class: "charts" });
    this.samplesNode = h("div", {});
    this.control = new TrainingControl(run);
    this.events = new TrainingEvents(
      run,
      (news) => this.update(news).catch(showError),
      (connected) => this.setConnected(connected),
    );
    this.probe = new Probe(run);
    this.comparison = new LossComparison(
      run,
      () => this.rows,
      () => this.name,
    );
    this.node = h(
      "main",
      { class: "wide", tabindex: "-1" },
      h("div", {}, this.title, this.state, this.control.node),
      this.charts,
      this.comparison.node,
      this.probe.node,
      this.samplesNode,
    );
  }

  leave() {
    this.events.close();
    this.probe.leave();
  }

  /** Loads everything written so far, then listens for events. */
  async read() {
    /** @type {Progress} */
    let page;
    let [version, since] = ["", 0];
    do {
      const query = `since=${since}&version=${encodeURIComponent(version)}`;
      page = await get(`runs/${encodeURIComponent(this.run)}/metrics?${query}`);
      [version, since, this.name] = [page.version, page.next, page.name];
      await this.update(page);
    } while (page.more);
    if (!this.isOver) this.events.open(`${version}-${since}`);
  }

  get isOver() {
    return this.rows[this.rows.length - 1]?.event === "ended";
  }

  /** @param {Partial<Progress>} news */
  async update(news) {
    const progress = /** @type {Progress} */ ({ ...this.progress, ...news });
    if (news.reset) this.rows = [];
    this.rows.push(...(news.rows ?? []));
    const changed = news.reset || news.rows?.length || news.samples;
    [this.progress, this.samples] = [progress, progress.samples];
    if (changed) this.draw();
    this.control.show(progress, this.rows, this.isOver);
    if (this.isOver) this.events.close();
    await this.probe.show(progress.probe);
  }

  /** @param {boolean} connected to the server */
  setConnected(connected) {
    this.connected = connected;
    this.state.textContent = statusText(this.rows, connected);
  }

  redraw() {
    this.draw();
    this.probe.draw();
  }

  draw() {
    replace(this.title, "Training of ", word(this.name));
    this.state.textContent = statusText(this.rows, this.connected);
    replace(this.charts, ...charts(this.rows));
    this.comparison.draw();
    replace(this.samplesNode, samplesTable(this.samples));
  }
}

/** Status line. @param {Row[]} rows @param {boolean} connected to the server */
function statusText(rows, connected) {
  const last = rows[rows.length - 1];
  const live = connected ? "updating live" : "the server does not answer, retrying";
  if (!last) return `No steps yet; ${live}.`;
  if (last.event === "ended") return `Ended at step ${last.step.toLocaleString("en")}: ${last.reason}.`;
  const begun = rows.filter((row) => row.event === "began").pop();
  const step = rows.reduce((most, row) => (["stepped", "validated"].includes(row.event) ? row.step : most), 0);
  const steps = begun ? begun.steps.toLocaleString("en") : "?";
  return `Step ${step.toLocaleString("en")} of ${steps}; ${live}.`;
}

/** @param {Row[]} rows */
function charts(rows) {
  const steps = rows.filter((row) => row.event === "stepped");
  const validations = rows.filter((row) => row.event === "validated");
  const scores = [...new Set(validations.flatMap((row) => Object.keys(row)))].filter(
    (key) => !["event", "step", "best", "loss"].includes(key),
  );
  const speed = (/** @type {Row} */ row) => (row.seconds > 0 ? row.tokens / row.seconds : null);
  const smoothing = rows.findLast((row) => row.event === "began")?.label_smoothing;
  return [
    chart(
      "Loss",
      [
        { name: "training", role: "attention", points: points(steps, (row) => row.loss) },
        { name: "validation", role: "chosen", dots: true, points: points(validations, (row) => row.loss) },
      ],
      smoothing ? `The training loss has label smoothing ${smoothing}, the validation loss has none.` : "",
    ),
    ...scores.map((key) =>
      chart(capitalize(metricTitle(key)), [
        { name: "validation", role: "chosen", dots: true, points: points(validations, (row) => row[key]) },
      ]),
    ),
    chart("Learning rate", [{ name: "rate", role: "query", points: points(steps, (row) => row.rate) }]),
    chart("Gradient norm", [{ name: "norm", role: "key", points: points(steps, (row) => row.norm) }]),
    chart("Predictions per second", [{ name: "predictions/s", role: "value", points: points(steps, speed) }]),
  ];
}

/** @type {(from: Row[], get: (row: Row) => unknown) => [number, number][]} */
function points(from, get) {
  return from.flatMap((row) =>
    typeof get(row) === "number" ? [/** @type {[number, number]} */ ([row.step, get(row)])] : [],
  );
}

/** @param {Row[]} samples */
function samplesTable(samples) {
  if (!samples.length) return null;
  const columns = [...new Set(samples.flatMap((row) => Object.keys(row)))].filter((key) => key !== "event");
  const cell = (/** @type {unknown} */ value) =>
    typeof value === "number"
      ? Number.isInteger(value)
        ? String(value)
        : formatNumber(value)
      : word(String(value ?? ""));
  const rows = [...samples].reverse().map((row) => h("tr", {}, ...columns.map((name) => h("td", {}, cell(row[name])))));
  return h("section", { class: "card" }, h("h2", {}, "Samples"), table("Samples", columns, rows, { kind: "list" }));
}
