// @ts-check
/** Transport bar: first, previous, play or pause, next and last step, and the speed of playing. */
import { h, selectField, symbolButton } from "../core/dom.js";

/** @typedef {import("../core/types.js").Context} Context */

/**
 * @typedef {{field: "step"|"frame", tick: number, describe: (step: number) => string}} Options
 * field: what moves in the selection; tick: milliseconds per step at speed 1
 */

const TICK = 900;
const SPEEDS = [0.25, 0.5, 1, 2, 4];
/** Steps per tick; stays the same from tab to tab. */
let speed = 1;

export class Transport {
  /** Moves the selected step; binds the keys for steps and for playing. @param {Context} context @param {number} count @param {Partial<Options>} [options] */
  constructor(context, count, options = {}) {
    this.selection = context.selection;
    this.count = count;
    this.field = options.field ?? "step";
    this.tick = options.tick ?? TICK;
    this.describe = options.describe ?? ((step) => `step ${step + 1} of ${this.count}`);
    this.timer = 0;
    // the buttons stay: one that is replaced while it is pressed would not be clicked
    this.first = symbolButton("⏮", "First step", () => this.go(0));
    this.previous = symbolButton("◀", "Previous step", () => this.go(this.step - 1));
    this.button = symbolButton("▶", "Play", () => this.play());
    this.next = symbolButton("▶︎|", "Next step", () => this.go(this.step + 1));
    this.end = symbolButton("⏭", "Last step", () => this.go(this.last));
    this.text = h("span", { class: "muted" });
    const buttons = [this.first, this.previous, this.button, this.next, this.end];
    const bar = h("div", { class: "row", role: "group", "aria-label": "Steps" }, ...buttons, this.text);
    const speeds = SPEEDS.map((value) => ({ value: String(value), text: `${value}×` }));
    const field = selectField("Speed", speeds, String(speed), (value) => this.setSpeed(Number(value)));
    this.node = h("div", { class: "row transport" }, bar, field);
    this.draw();
    context.onleave(context.selection.listen([this.field], () => this.draw()));
    context.onleave(() => this.stop());
    context.step = (by) => this.go(this.step + by);
    context.play = () => this.play();
  }

  get last() {
    return this.count - 1;
  }

  get step() {
    return Math.max(0, Math.min(this.last, this.selection.current[this.field] ?? this.last));
  }

  /** @param {number} step */
  go(step) {
    this.selection.set({ [this.field]: Math.max(0, Math.min(this.last, step)) });
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
  }

  play() {
    if (this.timer) this.stop();
    else {
      if (this.step === this.last) this.go(0);
      this.run();
    }
    this.draw();
  }

  run() {
    this.timer = window.setInterval(() => {
      if (this.step < this.last) return this.go(this.step + 1);
      this.stop();
      this.draw();
    }, this.tick / speed);
  }

  /** @param {number} value */
  setSpeed(value) {
    speed = value;
    if (!this.timer) return;
    this.stop();
    this.run();
  }

  draw() {
    const { step, last } = this;
    const label = this.timer ? "Pause" : "Play";
    this.button.textContent = this.timer ? "⏸" : "▶";
    this.button.setAttribute("aria-label", label);
    this.button.title = label;
    for (const button of [this.first, this.previous]) button.disabled = step === 0;
    for (const button of [this.next, this.end]) button.disabled = step === last;
    this.text.textContent = this.describe(step);
  }
}
