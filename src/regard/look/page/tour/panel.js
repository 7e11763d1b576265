// @ts-check
/** Panel of the tour: the text of a stop, its lesson, and the way to the other stops. */
import { get } from "../core/api.js";
import { h, replace, selectField, symbolButton } from "../core/dom.js";
import { tourStops } from "./tour.js";

/** @typedef {import("./guide.js").Stop} Stop */
/** @typedef {import("../core/selection.js").Selection} Selection */
/** @typedef {import("../scene/model-graph.js").ModelGraph} ModelGraph */

/** Titles of the lessons by name, requested once. @type {Promise<Map<string, string>>|null} */
let lessons = null;

export class TourPanel {
  /** @param {ModelGraph} graph @param {Selection} selection */
  constructor(graph, selection) {
    this.graph = graph;
    this.selection = selection;
    this.node = h("section", { class: "tour", "aria-label": "Tour", hidden: true });
    /** @type {Stop[]} */
    this.stops = [];
    this.request = 0;
  }

  /** Number of the stop of the address; an unknown one is the first. */
  get at() {
    const found = this.stops.findIndex(({ name }) => name === this.selection.current.tour);
    return Math.max(0, found);
  }

  /** The stop of the address; null: there is no tour. */
  get stop() {
    return this.selection.current.tour === null ? null : (this.stops[this.at] ?? null);
  }

  /** Reads the stops, and completes an address that names a stop alone. */
  async load() {
    const { current } = this.selection;
    if (current.tour === null || this.stops.length) return;
    await this.read();
    if (this.stop && current.at === null && current.frame === null) this.selection.amend(level(this.stop));
  }

  async read() {
    if (!this.stops.length) this.stops = await tourStops(this.graph, (number) => this.selection.set({ number }));
  }

  /** Goes to the first stop. */
  async start() {
    await this.read();
    if (this.stops.length) this.selection.set(level(this.stops[0]));
  }

  /** Goes to another stop. @param {number} by */
  move(by) {
    const next = this.stops[this.at + by];
    if (next) this.selection.set(level(next));
  }

  end() {
    this.selection.set({ tour: null });
  }

  /** Writes the text of the stop of the address. */
  async draw() {
    const { stop } = this;
    const request = ++this.request;
    this.node.hidden = !stop;
    if (!stop) return void replace(this.node);
    this.node.setAttribute("aria-busy", "true");
    const [text, known] = await Promise.all([stop.text(), this.lessons()]);
    if (request !== this.request) return;
    const { lesson } = stop;
    const link = known.has(lesson) ? h("a", { href: `#/learn/${lesson}` }, known.get(lesson)) : null;
    replace(
      this.node,
      this.head(stop),
      this.warning(),
      h("p", { class: "tour-text", "aria-live": "polite" }, ...text),
      h("div", { class: "row tour-foot" }, link ? h("span", {}, "Lesson: ", link) : null, this.list(stop)),
    );
    this.node.removeAttribute("aria-busy");
    this.node.dataset.stop = stop.name;
  }

  /** @param {Stop} stop */
  head(stop) {
    const [at, last] = [this.at, this.stops.length - 1];
    const next = h(
      "button",
      {
        type: "button",
        class: "primary",
        "data-focus": "next",
        onclick: () => (at < last ? this.move(1) : this.end()),
      },
      at < last ? "Next" : "End",
    );
    return h(
      "div",
      { class: "row tour-head" },
      h("h2", {}, `${at + 1}. ${stop.title}`),
      h(
        "div",
        { class: "row tour-buttons", role: "group", "aria-label": "Stops" },
        h("button", { type: "button", disabled: at === 0, onclick: () => this.move(-1) }, "Previous"),
        next,
        symbolButton("×", "End the tour", () => this.end()),
      ),
    );
  }

  /** All stops, to go to one of them. @param {Stop} stop */
  list(stop) {
    const all = this.stops.map(({ name, title }, i) => ({
      value: name,
      text: `${i + 1} of ${this.stops.length}: ${title}`,
    }));
    return selectField("Stop", all, stop.name, (name) => {
      const chosen = this.stops.find((one) => one.name === name);
      if (chosen) this.selection.set(level(chosen));
    });
  }

  /** What the numbers of a model that was not trained mean. */
  warning() {
    if (!this.graph.trace.header.model?.untrained) return null;
    const text =
      "This model was not trained: its weights are random, and so is its answer. The tour shows how the numbers are computed, not what a trained model makes of them.";
    return h("p", { class: "tour-warning", role: "note" }, text);
  }

  /** @returns {Promise<Map<string, string>>} */
  async lessons() {
    if (!this.graph.trace.live) return new Map(); // a single file has no lessons
    lessons ??= get("lessons").then(
      (/** @type {{lessons: {name: string, title: string}[]}} */ found) =>
        new Map(found.lessons.map(({ name, title }) => [name, title])),
    );
    return lessons;
  }
}

/** The level of the picture at a stop. @param {Stop} stop */
function level({ name, at, head, position }) {
  return { tour: name, at: at ?? null, head: head ?? null, position: position ?? null, frame: null, number: null };
}
