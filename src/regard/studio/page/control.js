// @ts-check
/** Two buttons that ask a training to save or to stop, whichever terminal it runs in, and say when it has done so. */
import { post } from "./api.js";
import { h } from "./dom.js";
import { tell } from "./notice.js";

/** @typedef {import("./types.js").Progress} Progress */
/** @typedef {Record<string, any>} Row */

/** Milliseconds after which somebody who asked is told that nobody has answered. */
const PATIENCE = 10000;

export class Control {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    /** @type {{wish: string, since: number, saves: number}|null} */
    this.waiting = null;
    this.rows = /** @type {Row[]} */ ([]);
    this.told = h("output", { class: "muted", "aria-live": "polite" });
    this.save = h("button", { type: "button", onclick: () => this.ask("save") }, "Write a checkpoint now");
    this.stop = h("button", { type: "button", onclick: () => this.ask("stop") }, "Stop the training");
    this.node = h(
      "div",
      { class: "row control", role: "group", "aria-label": "This training", hidden: true },
      this.save,
      this.stop,
      this.told,
    );
  }

  /** @param {"save"|"stop"} wish */
  async ask(wish) {
    const before = { wish, since: Date.now(), saves: saves(this.rows).length };
    try {
      await post(`runs/${encodeURIComponent(this.run)}/control`, { ask: wish });
      this.waiting = before;
      this.say("Asked; the training answers after the step it is at.");
    } catch (error) {
      tell(error);
    }
  }

  /** What the training has done about it since. @param {Progress} progress @param {Row[]} rows @param {boolean} over */
  show(progress, rows, over) {
    this.rows = rows;
    const last = rows[rows.length - 1];
    this.node.hidden = !last || (over && !this.waiting);
    this.save.disabled = this.stop.disabled = over || Boolean(progress.asked);
    if (!this.waiting) return;
    const written = saves(rows);
    if (over) this.done(`The training ended at step ${last.step}; its checkpoint is written.`);
    else if (progress.asked === null && this.waiting.wish === "save" && written.length > this.waiting.saves)
      this.done(`A checkpoint was written at step ${written[written.length - 1].step}.`);
    else if (Date.now() - this.waiting.since > PATIENCE)
      this.say(
        `Nobody has answered yet. The training last wrote something ${age(progress.silent)} ago: is it still running?`,
      );
  }

  /** @param {string} text */
  done(text) {
    this.waiting = null;
    this.say(text);
  }

  /** @param {string} text */
  say(text) {
    if (this.told.textContent !== text) this.told.textContent = text;
  }
}

/** @param {Row[]} rows */
function saves(rows) {
  return rows.filter((row) => row.event === "saved");
}

/** @param {number|null} seconds */
function age(seconds) {
  if (seconds === null) return "never, or long";
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}
