// @ts-check
/** One lesson: editable inputs, and the steps that the server recomputes on each change. */
import { ApiError } from "../core/api-error.js";
import { get, post } from "../core/api.js";
import { h, replace, selectField } from "../core/dom.js";
import { clearNotices, showError } from "../core/notice.js";
import { replaceAddress } from "../core/route.js";
import { exercises } from "./exercises.js";
import { figure } from "./figure.js";
import { Inputs } from "./inputs.js";
import { checks, heading, lessonLinks, reading, step } from "./steps.js";

/** @typedef {import("./steps.js").Lesson} Lesson */
/** @typedef {import("./steps.js").TrainingStatus} TrainingStatus */

const [DEBOUNCE, POLL] = [250, 1000];

/** @param {string} name @param {URLSearchParams} query @returns {Promise<import("../core/types.js").Screen>} */
export async function lesson(name, query) {
  const screen = new LessonScreen(name, query);
  await screen.update(true);
  return {
    node: screen.main,
    title: screen.title,
    redraw: () => screen.draw(false),
    leave: () => screen.leave(),
    key: (event) => moveStep(screen.main, event.key),
  };
}

class LessonScreen {
  /** @param {string} name @param {URLSearchParams} query */
  constructor(name, query) {
    this.path = `lessons/${encodeURIComponent(name)}`;
    this.title = "Lesson";
    this.changes = changesFromQuery(query);
    /** @type {Lesson|null} */
    this.lesson = null;
    /** @type {Inputs|null} */
    this.inputs = null;
    /** @type {boolean|null} `redrawInputs` of the update that waits for the server; null: none */
    this.queued = null;
    /** @type {HTMLElement|null} stays while numbers change, with the answers typed */
    this.exercises = null;
    this.working = false;
    this.closed = false;
    this.timer = 0;
    this.head = h("header", { class: "lesson-head" });
    this.side = h("section", { class: "card lesson-inputs", "aria-label": "Inputs", hidden: true });
    this.steps = h("div", { class: "lesson-steps" });
    this.state = h("p", { class: "lesson-state muted", role: "status" });
    const body = h("div", { class: "lesson-body" }, this.side, this.steps);
    this.main = h("main", { class: "wide lesson", tabindex: "-1" }, this.head, body);
  }

  leave() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  /** Requests the lesson, one request at a time. @param {boolean} redrawInputs */
  async update(redrawInputs) {
    clearTimeout(this.timer);
    if (this.working) {
      this.queued = this.queued || redrawInputs;
      return;
    }
    this.working = true;
    this.main.setAttribute("aria-busy", "true");
    try {
      await this.request(redrawInputs);
    } finally {
      this.working = false;
      this.main.removeAttribute("aria-busy");
    }
    const next = this.queued;
    this.queued = null;
    if (next !== null && !this.closed) await this.update(next);
  }

  /** @param {boolean} redrawInputs */
  async request(redrawInputs) {
    const changes = this.changes;
    try {
      const changed = Object.keys(changes).length > 0;
      let response = changed ? await post(this.path, { changes }) : await get(this.path);
      // only a POST may start the training of a missing model
      if (!changed && "training" in response && response.seconds === null) response = await post(this.path, {});
      if (this.closed || this.queued !== null) return;
      this.title = response.title;
      if ("training" in response) return this.showTraining(response, redrawInputs);
      this.lesson = /** @type {Lesson} */ (response);
      clearNotices();
      this.draw(redrawInputs);
    } catch (error) {
      if (this.closed || this.queued !== null) return;
      if (!this.lesson || !(error instanceof ApiError) || !this.inputs?.showError(error.message)) throw error;
      this.state.textContent = "The steps still show the previous numbers.";
      this.steps.classList.add("stale");
    }
  }

  /** @param {TrainingStatus} status @param {boolean} redrawInputs */
  showTraining(status, redrawInputs) {
    const models = status.training.join(" and ");
    const text = ` This lesson inspects a small model: training ${models}, once, usually in less than a minute (${Math.round(status.seconds ?? 0)} s).`;
    replace(this.head, ...heading(status));
    replace(this.steps, h("p", { class: "card", role: "status" }, h("progress", { "aria-label": "Training" }), text));
    this.timer = window.setTimeout(() => this.update(redrawInputs).catch(showError), POLL);
  }

  /** @param {string} input @param {any} value undefined: the lesson's default */
  change(input, value) {
    const { [input]: _, ...others } = this.changes;
    this.changes = value === undefined ? others : { ...others, [input]: value };
  }

  /** @param {boolean} redrawInputs */
  draw(redrawInputs) {
    const lesson = this.lesson;
    if (!lesson) return;
    if (redrawInputs || !this.inputs) this.drawInputs(lesson);
    this.inputs?.update(lesson.inputs);
    replaceAddress(address(lesson.name, this.changes));
    const reset = () => {
      this.changes = {};
      this.update(true).catch(showError);
      this.main.focus();
    };
    const defaults = "These are the lesson's own numbers.";
    const button = h("button", { type: "button", onclick: reset }, "Back to the lesson's own numbers");
    replace(this.state, lesson.changed.length ? button : defaults);
    replace(this.head, ...heading(lesson));
    const open = [...this.steps.querySelectorAll("details")].map((details) => details.open);
    const selectedWord = lesson.inputs.find((input) => input.name === "word")?.data;
    this.steps.classList.remove("stale");
    const values = [...lesson.inputs, ...lesson.steps.flatMap((one) => one.results)];
    replace(
      this.steps,
      figure(lesson.figure, new Map(values.map((value) => [value.name, value]))),
      ...lesson.steps.map((one, i) => step(one, i + 1, selectedWord)),
      checks(lesson),
      this.exercises,
      reading(lesson),
      lessonLinks(lesson),
    );
    const details = this.steps.querySelectorAll("details");
    if (open.length === details.length) details.forEach((one, i) => (one.open = open[i]));
  }

  /** @param {Lesson} lesson */
  drawInputs(lesson) {
    const inputs = new Inputs(lesson.inputs, (input, value) => {
      this.change(input, value);
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.update(false).catch(showError), DEBOUNCE);
    });
    const pickers = runPickers(lesson, (input, value) => {
      this.change(input, value);
      this.update(true).catch(showError);
    });
    this.inputs = inputs;
    this.exercises = exercises(lesson);
    this.side.hidden = false;
    const hint = h("p", { class: "muted" }, "Change any of them; all steps are recomputed.");
    replace(this.side, h("h2", {}, "Inputs"), hint, inputs.node, ...pickers, this.state);
  }
}

/** Moves between steps with comma and period. @param {HTMLElement} main @param {string} key */
function moveStep(main, key) {
  if (key !== "," && key !== ".") return false;
  const titles = /** @type {HTMLElement[]} */ ([...main.querySelectorAll(".lesson-step h2")]);
  const at = titles.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = titles[key === "." ? at + 1 : Math.max(0, at < 0 ? 0 : at - 1)];
  if (!next) return false;
  next.focus();
  next.scrollIntoView({ block: "start" });
  return true;
}

/** Changes stored in the address. @param {URLSearchParams} query */
function changesFromQuery(query) {
  /** @type {Record<string, any>} */
  const changes = {};
  for (const [name, text] of query) {
    try {
      changes[name] = JSON.parse(text);
    } catch {
      changes[name] = text;
    }
  }
  return changes;
}

/** @param {string} name @param {Record<string, any>} changes */
function address(name, changes) {
  const entries = Object.entries(changes).map(([key, data]) => [key, JSON.stringify(data)]);
  const query = new URLSearchParams(entries).toString();
  return `#/learn/${encodeURIComponent(name)}${query ? `?${query}` : ""}`;
}

/** Choice of the model to inspect: a small one, or one of the user's runs. @param {Lesson} lesson @param {(input: string, value: any) => void} onchange */
function runPickers(lesson, onchange) {
  if (!lesson.runs.length) return [];
  const options = [
    { value: "", text: "a small one, trained for this lesson" },
    ...lesson.runs.map((run) => ({ value: run.id, text: run.name })),
  ];
  const two = lesson.name === "evolution-of-attention";
  const chosen = two ? (lesson.chosen.models ?? ["", ""]) : [lesson.chosen.model ?? ""];
  const before = /** @type {string[]} */ (chosen);
  return Array.from({ length: two ? 2 : 1 }, (_, i) =>
    selectField(two ? `Model ${i + 1}` : "Model", options, before[i], (id) => {
      if (!two) return onchange("model", id || undefined);
      const both = [before[0], before[1]].map((old, j) => (i === j ? id : old || id));
      onchange("models", id ? both : undefined);
    }),
  );
}
