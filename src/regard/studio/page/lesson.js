// @ts-check
/** One lesson: inputs that can be changed, and what follows from them, worked out by the server while one types. */
import { get, post } from "./api.js";
import { choice, h, replace } from "./dom.js";
import { Editors } from "./editors.js";
import { checks, heading, onward, step } from "./lessonsteps.js";
import { hush, tell } from "./notice.js";
import { Refused } from "./refused.js";
import { note } from "./route.js";

/** @typedef {import("./lessonsteps.js").Lesson} Lesson */
/** @typedef {import("./lessonsteps.js").Making} Making */

const [PAUSE, LOOK] = [250, 1000];

/** @param {string} name @param {URLSearchParams} query @returns {Promise<import("./inspector.js").Screen>} */
export async function lesson(name, query) {
  const taught = new Taught(name, query);
  await taught.work(true);
  return {
    node: taught.main,
    title: taught.title,
    redraw: () => taught.draw(false),
    leave: () => taught.leave(),
    key: (event) => walk(taught.main, event.key),
  };
}

class Taught {
  /** @param {string} name @param {URLSearchParams} query */
  constructor(name, query) {
    this.path = `lessons/${encodeURIComponent(name)}`;
    this.title = "Lesson";
    this.changes = asked(query);
    /** @type {Lesson|null} */
    this.shown = null;
    /** @type {Editors|null} */
    this.editors = null;
    /** @type {boolean|null} what to do when the server has answered; null: nothing */
    this.queued = null;
    this.working = false;
    this.gone = false;
    this.timer = 0;
    this.head = h("header", { class: "lesson-head" });
    this.side = h("section", { class: "card lesson-inputs", "aria-label": "Inputs", hidden: true });
    this.steps = h("div", { class: "lesson-steps" });
    this.state = h("p", { class: "lesson-state muted", role: "status" });
    const body = h("div", { class: "lesson-body" }, this.side, this.steps);
    this.main = h("main", { class: "wide lesson", tabindex: "-1" }, this.head, body);
  }

  leave() {
    this.gone = true;
    clearTimeout(this.timer);
  }

  /** Ask the server, one question at a time. @param {boolean} anew whether the fields are drawn again too */
  async work(anew) {
    clearTimeout(this.timer);
    if (this.working) {
      this.queued = this.queued || anew;
      return;
    }
    this.working = true;
    this.main.setAttribute("aria-busy", "true");
    try {
      await this.ask(anew);
    } finally {
      this.working = false;
      this.main.removeAttribute("aria-busy");
    }
    const next = this.queued;
    this.queued = null;
    if (next !== null && !this.gone) await this.work(next);
  }

  /** @param {boolean} anew */
  async ask(anew) {
    const changes = this.changes;
    try {
      const found = Object.keys(changes).length ? await post(this.path, { changes }) : await get(this.path);
      if (this.gone || this.queued !== null) return;
      this.title = found.title;
      if ("making" in found) return this.wait(found, anew);
      this.shown = /** @type {Lesson} */ (found);
      hush();
      this.draw(anew);
    } catch (error) {
      if (this.gone || this.queued !== null) return;
      if (!this.shown || !(error instanceof Refused) || !this.editors?.complain(error.message)) throw error;
      this.state.textContent = "What is shown is of the numbers before.";
      this.steps.classList.add("stale");
    }
  }

  /** @param {Making} making @param {boolean} anew */
  wait(making, anew) {
    const models = making.making.join(" and ");
    const told = ` This lesson looks into a small model: ${models} is trained now, once, in less than a minute on a quiet machine (${Math.round(making.seconds)} s).`;
    replace(this.head, ...heading(making));
    replace(this.steps, h("p", { class: "card", role: "status" }, h("progress", { "aria-label": "Training" }), told));
    this.timer = window.setTimeout(() => this.work(anew).catch(tell), LOOK);
  }

  /** @param {string} input @param {any} given undefined: as the lesson has it */
  change(input, given) {
    const { [input]: _, ...others } = this.changes;
    this.changes = given === undefined ? others : { ...others, [input]: given };
  }

  /** @param {boolean} anew */
  draw(anew) {
    const taught = this.shown;
    if (!taught) return;
    if (anew || !this.editors) this.drawInputs(taught);
    this.editors?.update(taught.inputs);
    note(address(taught.name, this.changes));
    const back = () => {
      this.changes = {};
      this.work(true).catch(tell);
      this.main.focus();
    };
    const own = "These are the lesson's own numbers.";
    const button = h("button", { type: "button", onclick: back }, "Back to the lesson's own numbers");
    replace(this.state, taught.changed.length ? button : own);
    replace(this.head, ...heading(taught));
    const open = [...this.steps.querySelectorAll("details")].map((details) => details.open);
    const followed = taught.inputs.find((given) => given.name === "word")?.data;
    this.steps.classList.remove("stale");
    replace(this.steps, ...taught.steps.map((one, i) => step(one, i + 1, followed)), checks(taught), onward(taught));
    const details = this.steps.querySelectorAll("details");
    if (open.length === details.length) details.forEach((one, i) => (one.open = open[i]));
  }

  /** @param {Lesson} taught */
  drawInputs(taught) {
    const editors = new Editors(taught.inputs, (input, given) => {
      this.change(input, given);
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.work(false).catch(tell), PAUSE);
    });
    const pickers = runPickers(taught, (input, given) => {
      this.change(input, given);
      this.work(true).catch(tell);
    });
    this.editors = editors;
    this.side.hidden = false;
    const told = h("p", { class: "muted" }, "Change any of them; what follows is computed anew.");
    replace(this.side, h("h2", {}, "Inputs"), told, editors.node, ...pickers, this.state);
  }
}

/** Comma and full stop go from step to step. @param {HTMLElement} main @param {string} key */
function walk(main, key) {
  if (key !== "," && key !== ".") return false;
  const titles = /** @type {HTMLElement[]} */ ([...main.querySelectorAll(".lesson-step h2")]);
  const at = titles.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = titles[key === "." ? at + 1 : Math.max(0, at < 0 ? 0 : at - 1)];
  if (!next) return false;
  next.focus();
  next.scrollIntoView({ block: "start" });
  return true;
}

/** Changes that the address holds. @param {URLSearchParams} query */
function asked(query) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, text] of query) {
    try {
      found[name] = JSON.parse(text);
    } catch {
      found[name] = text;
    }
  }
  return found;
}

/** @param {string} name @param {Record<string, any>} changes */
function address(name, changes) {
  const given = Object.entries(changes).map(([key, data]) => [key, JSON.stringify(data)]);
  const query = new URLSearchParams(given).toString();
  return `#/learn/${encodeURIComponent(name)}${query ? `?${query}` : ""}`;
}

/** A small model is looked into, or one of the reader's own. @param {Lesson} taught @param {(input: string, given: any) => void} picked */
function runPickers(taught, picked) {
  if (!taught.runs.length) return [];
  const options = [
    { value: "", text: "a small one, made for this" },
    ...taught.runs.map((run) => ({ value: run.id, text: run.name })),
  ];
  const two = taught.name === "evolution-of-attention";
  const chosen = two ? (taught.chosen.models ?? ["", ""]) : [taught.chosen.model ?? ""];
  const before = /** @type {string[]} */ (chosen);
  return Array.from({ length: two ? 2 : 1 }, (_, i) =>
    choice(two ? `Model ${i + 1}` : "Model", options, before[i], (id) => {
      if (!two) return picked("model", id || undefined);
      const both = [before[0], before[1]].map((old, j) => (i === j ? id : old || id));
      picked("models", id ? both : undefined);
    }),
  );
}
