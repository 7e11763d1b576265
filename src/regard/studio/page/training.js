// @ts-check
/** A training, while it goes on or when it is over: loss, scores, learning rate, gradient, speed, and what it says. */
import { get } from "./api.js";
import { chart } from "./chart.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { tell } from "./notice.js";

/** @typedef {Record<string, any>} Row */

const PAUSE = 2000;

/** @param {string} run @returns {Promise<import("./inspector.js").Screen>} */
export async function training(run) {
  /** @type {Row[]} */
  let rows = [];
  let [version, since, timer] = ["", 0, 0];
  const body = h("div", { class: "stack" });
  const state = h("p", { class: "muted", role: "status" });
  const title = h("h1", {});
  let name = "";
  let gone = false;

  async function read() {
    let told;
    let changed = false;
    do {
      told = await get(`runs/${encodeURIComponent(run)}/metrics?since=${since}&version=${encodeURIComponent(version)}`);
      if (told.anew) rows = [];
      rows.push(...told.rows);
      changed ||= told.anew || told.rows.length > 0;
      [version, since, name] = [told.version, told.next, told.name];
    } while (told.more);
    if (changed) draw(told.samples);
    const over = rows[rows.length - 1]?.event === "ended";
    if (!over && !gone) timer = window.setTimeout(() => read().catch(tell), PAUSE);
  }
  /** @param {Row[]} samples */
  function draw(samples) {
    replace(title, "Training of ", word(name));
    const last = rows[rows.length - 1];
    const begun = rows.filter((row) => row.event === "began").pop();
    const step = Math.max(
      0,
      ...rows.filter((row) => row.event === "stepped" || row.event === "validated").map((row) => row.step),
    );
    state.textContent = !last
      ? "Nothing was written yet; this page looks again every two seconds."
      : last.event === "ended"
        ? `Ended at step ${last.step}: ${last.reason}.`
        : `Step ${step.toLocaleString("en")} of ${begun ? begun.steps.toLocaleString("en") : "?"}; looked again every two seconds.`;
    replace(body, h("div", { class: "charts" }, ...charts()), said(samples));
  }
  function charts() {
    const steps = rows.filter((row) => row.event === "stepped");
    const tried = rows.filter((row) => row.event === "validated");
    /** @type {(from: Row[], get: (row: Row) => unknown) => [number, number][]} */
    const points = (from, get) =>
      from.flatMap((row) =>
        typeof get(row) === "number" ? [/** @type {[number, number]} */ ([row.step, get(row)])] : [],
      );
    const scores = [...new Set(tried.flatMap((row) => Object.keys(row)))].filter(
      (key) => !["event", "step", "best", "loss"].includes(key),
    );
    return [
      chart("Loss", [
        { name: "training", role: "attention", points: points(steps, (row) => row.loss) },
        { name: "validation", role: "chosen", dots: true, points: points(tried, (row) => row.loss) },
      ]),
      ...scores.map((key) =>
        chart(key === "ppl" ? "Perplexity" : key === "bleu" ? "BLEU" : key, [
          { name: "validation", role: "chosen", dots: true, points: points(tried, (row) => row[key]) },
        ]),
      ),
      chart("Learning rate", [{ name: "rate", role: "query", points: points(steps, (row) => row.rate) }]),
      chart("Gradient norm", [{ name: "norm", role: "key", points: points(steps, (row) => row.norm) }]),
      chart("Tokens a second", [
        {
          name: "tokens/s",
          role: "value",
          points: points(steps, (row) => (row.seconds > 0 ? row.tokens / row.seconds : null)),
        },
      ]),
    ];
  }
  await read();
  return {
    node: h("main", { class: "wide", tabindex: "-1" }, title, state, body),
    title: `Training of ${name}`,
    redraw: () => {},
    key: () => false,
    leave: () => {
      gone = true;
      clearTimeout(timer);
    },
  };
}

/** @param {Row[]} samples */
function said(samples) {
  if (!samples.length) return null;
  const columns = [...new Set(samples.flatMap((row) => Object.keys(row)))].filter((key) => key !== "event");
  const cell = (/** @type {unknown} */ value) =>
    typeof value === "number" ? (Number.isInteger(value) ? String(value) : shown(value)) : word(String(value ?? ""));
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
        h(
          "tbody",
          {},
          ...[...samples].reverse().map((row) => h("tr", {}, ...columns.map((name) => h("td", {}, cell(row[name]))))),
        ),
      ),
    ),
  );
}
