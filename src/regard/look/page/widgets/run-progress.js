// @ts-check
/** Progress of a request that runs a model: what it waits for, and for how long. */
import { h, replace } from "../core/dom.js";

/** Milliseconds after which the bar appears. */
const DELAY = 400;

export class RunProgress {
  constructor() {
    this.node = h("div", { class: "run-progress", "aria-live": "polite", hidden: true });
    this.timer = 0;
    this.started = 0;
    this.text = "";
  }

  /** Names what is waited for; the bar appears if it takes longer than a moment. @param {string} text */
  show(text) {
    this.text = text;
    if (this.timer) return this.draw();
    this.started = Date.now();
    this.timer = window.setInterval(() => this.draw(), DELAY);
  }

  draw() {
    const seconds = Math.floor((Date.now() - this.started) / 1000);
    if (Date.now() - this.started < DELAY) return;
    this.node.hidden = false;
    const time = h("span", { class: "muted", "aria-hidden": "true" }, seconds ? `${seconds} s` : "");
    replace(this.node, h("progress", { "aria-label": this.text }), h("span", {}, this.text), time);
  }

  hide() {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.node.hidden = true;
    replace(this.node);
  }
}
