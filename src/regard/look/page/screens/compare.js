// @ts-check
/** Compare: the same sentence through two to four models, with answers, probabilities and attention side by side. */
import { get, post } from "../core/api.js";
import { h, replace, word } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { FORECAST, VECTORS } from "../core/route.js";
import { promptLength } from "../trace/predictions.js";
import { openTrace } from "../trace/server-source.js";
import { Column, syncChoice } from "./compare-column.js";
import { gradientDecay } from "./gradient-decay.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Model} Model */

const MAX_MODELS = 4;
const SEVERAL_TASKS =
  "These models have different tasks: they read the same text, and their answers are not comparable.";

/** @param {URLSearchParams} query @returns {Promise<import("../core/types.js").Screen>} */
export async function compare(query) {
  const { models } = await get("models");
  const usable = /** @type {Model[]} */ (models).filter(isComparable);
  const ids = (query.get("t") ?? "").split(",").filter(Boolean).slice(0, MAX_MODELS);
  const traces = await Promise.all(ids.map(openTrace));
  const columns = traces.map(
    (trace) => new Column(trace, traces[0], (from, choice) => syncChoice(columns, from, choice)),
  );
  const top = Math.max(0, ...(await Promise.all(columns.map((column) => column.load()))));
  const draw = () => Promise.all(columns.map((column) => column.draw(top)));
  await draw();
  const form = new RunForm(usable, traces);
  await form.showExample();
  const few = "There are fewer than two models to compare; train another one first.";
  const scale = columns.filter((column) => column.weights).length > 1;
  const node = h(
    "main",
    { class: "wide", tabindex: "-1" },
    h("h1", {}, "Compare"),
    usable.length < 2 ? h("p", {}, few) : form.node,
    tokenizationNote(traces),
    h("div", { class: "comparison" }, ...columns.map((column) => column.node)),
    scale ? h("p", { class: "muted" }, "All attention matrices have one color scale.") : null,
    gradientDecay(traces),
  );
  return { node, title: "Compare", redraw: () => draw().catch(showError), leave: () => {}, key: () => false };
}

/** Whether a model reads sentences. @param {Model} model */
export function isComparable(model) {
  return model.usable && !model.image && model.task !== FORECAST && model.task !== VECTORS;
}

/** Models by task, the tasks in the order of their newest models. @param {Model[]} models @returns {[string, Model[]][]} */
function byTask(models) {
  const tasks = [...new Set(models.map(({ task }) => task ?? "translate"))];
  return tasks.map((task) => [task, models.filter((model) => (model.task ?? "translate") === task)]);
}

/** Two models of one task, where there are two; else the first two. @param {Model[]} models */
function preselected(models) {
  return (byTask(models).find(([, same]) => same.length > 1)?.[1] ?? models).slice(0, 2);
}

/** Tokens of the text that a model read: its source, or the prompt of a language model. @param {Trace} trace */
function textTokens(trace) {
  const { source, read } = trace.header.sequences;
  return source?.length ? source : (read ?? []).slice(0, promptLength(trace) + 1);
}

/** How the models split the sentence, if they do it differently; null if they do not. @param {Trace[]} traces */
function tokenizationNote(traces) {
  const rows = traces.map((trace) => textTokens(trace).map(({ label }) => label));
  const distinct = new Set(rows.map((labels) => labels.join("\u0000")));
  if (distinct.size < 2) return null;
  const text =
    "The models split the text into different tokens, each by its own vocabulary. So log-probabilities per token are " +
    "not comparable between them, and attention has other rows and columns; a selection follows whole words.";
  const items = rows.map((labels, i) =>
    h(
      "li",
      {},
      h("b", {}, word(traces[i].header.model.name)),
      ` ${labels.length} tokens: `,
      ...labels.flatMap((label) => [h("span", { class: "token small" }, word(label)), " "]),
    ),
  );
  return h("section", { class: "card tokenization" }, h("h2", {}, "Tokens"), h("p", {}, text), h("ul", {}, ...items));
}

/** Form with the models and the sentence. */
class RunForm {
  /** @param {Model[]} usable @param {Trace[]} traces */
  constructor(usable, traces) {
    this.example = "";
    this.tasks = new Map(usable.map((model) => [model.id, model.task ?? "translate"]));
    const models = traces.length ? traces.map((trace) => trace.header.model) : preselected(usable);
    const chosen = new Set(models.map((model) => model.id));
    this.boxes = usable.map((model) =>
      h("input", {
        type: "checkbox",
        value: model.id,
        checked: chosen.has(model.id),
        onchange: () => this.showExample().catch(showError),
      }),
    );
    this.input = h("input", {
      type: "text",
      dir: "auto",
      "aria-label": "Sentence for all models",
      value: traces[0]?.header.text ?? "",
      autocomplete: "off",
    });
    this.button = h("button", { type: "submit", class: "primary" }, "Run all");
    this.status = h("span", { class: "muted", role: "status" });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.run();
    };
    const groups = byTask(usable).map(([task, same]) =>
      h(
        "fieldset",
        { class: "row wrap task-models" },
        h("legend", {}, task),
        ...same.map((model) => h("label", { class: "row" }, this.boxes[usable.indexOf(model)], word(model.name))),
      ),
    );
    this.node = h(
      "form",
      { class: "card", onsubmit },
      ...groups,
      h("div", { class: "row run-form" }, this.input, this.button),
      this.status,
    );
  }

  get chosen() {
    return this.boxes.filter((box) => box.checked).map((box) => box.value);
  }

  /** Shows a text that fits the first chosen model, and a note if tasks differ. */
  async showExample() {
    const { chosen } = this;
    const several = new Set(chosen.map((id) => this.tasks.get(id))).size > 1;
    this.status.textContent = several ? SEVERAL_TASKS : "";
    if (!chosen.length) return;
    const { text } = await get(`models/${encodeURIComponent(chosen[0])}/example`);
    this.example = text ?? "";
    this.input.placeholder = this.example;
  }

  async run() {
    const { chosen } = this;
    if (chosen.length < 2 || chosen.length > MAX_MODELS) {
      this.status.textContent = `Choose two to ${MAX_MODELS} models.`;
      return;
    }
    this.button.disabled = true;
    try {
      const ids = [];
      for (const model of chosen) {
        const bar = h("progress", { "aria-label": "Running", max: chosen.length, value: ids.length });
        replace(this.status, bar, ` ${ids.length + 1} of ${chosen.length}`);
        const text = this.input.value.trim() || this.example;
        ids.push((await post("traces", { model, text, decode: {} })).id);
      }
      location.hash = `#/compare?t=${ids.map(encodeURIComponent).join(",")}`;
    } catch (error) {
      showError(error);
      replace(this.status);
    }
    this.button.disabled = false;
  }
}
