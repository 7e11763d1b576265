// @ts-check
/** Buttons to save a checkpoint of a run or to stop it, in whichever process it trains. */
import { post } from "../core/api.js";
import { h } from "../core/dom.js";
import { showError } from "../core/notice.js";

/** @typedef {import("../core/types.js").Progress} Progress */
/** @typedef {Record<string, any>} Row */

/** Milliseconds without a response after which a warning is shown. */
const TIMEOUT = 10000;

export class TrainingControl {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    /** @type {{action: string, since: number, saves: number}|null} */
    this.waiting = null;
    this.rows = /** @type {Row[]} */ ([]);
    this.status = h("output", { class: "muted", "aria-live": "polite" });
    this.save = h("button", { type: "button", onclick: () => this.send("save") }, "Save a checkpoint");
    this.stop = h("button", { type: "button", onclick: () => this.send("stop") }, "Stop training");
    this.node = h(
      "div",
      { class: "row control", role: "group", "aria-label": "Training control", hidden: true },
      this.save,
      this.stop,
      this.status,
    );
  }

  /** @param {"save"|"stop"} action */
  async send(action) {
    const before = { action, since: Date.now(), saves: saveEvents(this.rows).length };
    try {
      await post(`runs/${encodeURIComponent(this.run)}/control`, { command: action });
      this.waiting = before;
      this.setStatus("Requested; the run responds after its current step.");
    } catch (error) {
      showError(error);
    }
  }

  /** Shows the response of the run. @param {Progress} progress @param {Row[]} rows @param {boolean} over */
  show(progress, rows, over) {
    this.rows = rows;
    const last = rows[rows.length - 1];
    this.node.hidden = !last || (over && !this.waiting);
    this.save.disabled = this.stop.disabled = over || Boolean(progress.command);
    if (!this.waiting) return;
    const written = saveEvents(rows);
    if (over) this.finish(`Training ended at step ${last.step}; the checkpoint is saved.`);
    else if (progress.command === null && this.waiting.action === "save" && written.length > this.waiting.saves)
      this.finish(`Checkpoint saved at step ${written[written.length - 1].step}.`);
    else if (Date.now() - this.waiting.since > TIMEOUT)
      this.setStatus(
        `No response yet. The last output of the run was ${formatSeconds(progress.idle_seconds)} ago: is it still running?`,
      );
  }

  /** @param {string} text */
  finish(text) {
    this.waiting = null;
    this.setStatus(text);
  }

  /** @param {string} text */
  setStatus(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }
}

/** @param {Row[]} rows */
function saveEvents(rows) {
  return rows.filter((row) => row.event === "saved");
}

/** @param {number|null} seconds */
function formatSeconds(seconds) {
  if (seconds === null) return "an unknown time";
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}
