// @ts-check
/** Start page: recent traces, models, first steps for a start without models of one's own, and the line of systems. */
import { get } from "../core/api.js";
import { h, replace, word } from "../core/dom.js";
import { formatAge } from "../core/format.js";
import { traceAddress, wordsAddress } from "../core/route.js";
import { formatMetric, metricTitle } from "../core/scores.js";
import { inputTitle, outputTitle } from "../widgets/csv-input.js";
import { scrollBox } from "../widgets/table.js";
import { isComparable } from "./compare.js";
import { firstSteps } from "./first-steps.js";
import { systemLine } from "./system-line.js";

/** @typedef {import("../core/types.js").Model} Model */
/** @typedef {import("../core/types.js").Summary} Summary */

const LEAD =
  "Choose a model, type a sentence, press Run. Every number shown is of the recorded pass, from which the answer comes, and nothing leaves this machine.";

/** @param {(model: string) => void} choose @returns {Promise<import("../core/types.js").Screen>} */
export async function home(choose) {
  const screen = new Home(choose);
  await screen.draw();
  return { node: screen.node, title: "Start", redraw: () => {}, leave: () => {}, key: () => false };
}

class Home {
  /** @param {(model: string) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.first = h("div", {});
    this.models = h("section", { class: "card" });
    this.traces = h("section", { class: "card" });
    this.line = h("section", { class: "card" });
    this.node = h(
      "main",
      { class: "home", tabindex: "-1" },
      h("h1", {}, "What did the model really do?"),
      h("p", { class: "lead" }, LEAD),
      this.first,
      this.traces,
      this.models,
      this.line,
    );
  }

  async draw() {
    const [listed, recent, line] = await Promise.all([get("models"), get("traces"), get("line")]);
    const compare = listed.models.filter(isComparable).length > 1 ? h("a", { href: "#/compare" }, "Compare") : null;
    replace(
      this.models,
      h("div", { class: "row" }, h("h2", {}, "Models"), compare),
      listed.models.length ? this.list(listed.models) : noModels(),
    );
    const none = "None yet: choose a model, type a sentence above and press Run.";
    replace(
      this.traces,
      h("h2", {}, "Recent traces"),
      recent.traces.length ? traceList(recent.traces) : h("p", { class: "muted" }, none),
    );
    replace(this.first, firstSteps(listed.models, recent.traces));
    replace(this.line, ...systemLine(line, this.choose));
  }

  /** @param {Model[]} all */
  list(all) {
    const optional = (/** @type {string} */ name) => (["model", "task", "best"].includes(name) ? "optional" : null);
    const head = ["name", "model", "task", "steps", "best", "", ""].map((name) =>
      name ? h("th", { scope: "col", class: optional(name) }, name) : h("td", {}),
    );
    const body = h("tbody", {}, ...all.map((model) => this.row(model)));
    return scrollBox("Models", h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...head)), body));
  }

  /** @param {Model} model */
  row(model) {
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, word(model.name)),
      h("td", { class: "optional" }, model.model ?? "–"),
      h("td", { class: "optional" }, model.task ?? "–"),
      h("td", {}, model.step === null ? "–" : model.step.toLocaleString("en")),
      h("td", { class: "optional" }, formatScores(model.best)),
      h(
        "td",
        {},
        model.usable
          ? h("button", { type: "button", onclick: () => this.choose(model.id) }, "Use")
          : h("span", { class: "muted" }, model.unreadable ? `unreadable: ${model.unreadable}` : "no checkpoint yet"),
      ),
      h(
        "td",
        { class: "links" },
        h("a", { href: `#/runs/${encodeURIComponent(model.id)}` }, "Training"),
        model.usable && model.words ? h("a", { href: wordsAddress(model.id) }, "Words") : null,
      ),
    );
  }
}

function noModels() {
  const text = "No models found. Train one with ";
  return h("p", { class: "muted" }, text, h("code", {}, "regard demo"), ".");
}

/** @param {Record<string, number>} best */
function formatScores(best) {
  const metrics = Object.entries(best).filter(([name, value]) => name !== "step" && typeof value === "number");
  return metrics.map(([name, value]) => `${metricTitle(name)} ${formatMetric(name, value)}`).join(", ") || "–";
}

/** Traces that are listed at once, and characters of a text in the list. */
const [SHOWN, TEXT] = [6, 90];

/** The beginning of a text, on one line. @param {string} text */
function shorten(text) {
  const letters = [...text.replace(/\s+/gu, " ").trim()];
  return letters.length > TEXT ? `${letters.slice(0, TEXT - 1).join("")}…` : letters.join("");
}

/** The latest traces; the others are listed on request. @param {Summary[]} all */
function traceList(all) {
  const rest = all.slice(SHOWN);
  return h(
    "div",
    {},
    traceItems(all.slice(0, SHOWN)),
    rest.length ? h("details", {}, h("summary", {}, `${rest.length} earlier`), traceItems(rest)) : null,
  );
}

/** @param {Summary[]} all */
function traceItems(all) {
  return h(
    "ul",
    { class: "traces" },
    ...all.map((trace) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: traceAddress(trace.id) },
          word(shorten(inputTitle(trace.kind, trace.text)), "sentence source"),
          " → ",
          word(shorten(outputTitle(trace.kind, trace.answer)) || "(empty)", "sentence target"),
        ),
        h("span", { class: "muted" }, ` ${trace.model.name}, ${formatAge(trace.created)}`),
      ),
    ),
  );
}
