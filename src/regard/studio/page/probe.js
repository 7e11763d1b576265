// @ts-check
/** The probe sentence over a training: what the model did with it at each validation, with a scrubber. */
import { openProbe } from "./api.js";
import { choice, h, replace, word } from "./dom.js";
import { matrix } from "./matrix.js";
import { tell } from "./notice.js";
import { labels, roles } from "./onehead.js";
import { along } from "./states.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./types.js").Description} Description */

const [TICK, UNITS] = [700, 64];

export class Probe {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    this.node = h("section", { class: "card", hidden: true, "aria-label": "The probe sentence" });
    /** @type {number[]} */
    this.steps = [];
    this.text = "";
    this.at = 0;
    /** Whether the newest is shown as it comes. */
    this.follows = true;
    /** @type {{tensor: string|null, head: number|null}} */
    this.chosen = { tensor: null, head: null };
    /** @type {Map<number, Promise<Trace>>} */
    this.traces = new Map();
    this.playing = 0;
    this.turn = 0;
  }

  leave() {
    clearInterval(this.playing);
    this.playing = 0;
  }

  /** @param {{text: string, steps: number[]}|null} told */
  async show(told) {
    this.node.hidden = told === null;
    if (!told || (told.text === this.text && told.steps.join() === this.steps.join())) return;
    if (told.text !== this.text) this.traces.clear();
    const before = this.steps[this.at];
    [this.text, this.steps] = [told.text, told.steps];
    const same = this.steps.indexOf(before);
    this.at = this.follows || same < 0 ? Math.max(0, this.steps.length - 1) : same;
    await this.draw();
  }

  /** @param {number} at */
  go(at) {
    this.at = Math.max(0, Math.min(this.steps.length - 1, at));
    this.follows = this.at === this.steps.length - 1;
    return this.draw().catch(tell);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ",": -1, ".": 1 }[event.key];
    if (this.node.hidden || (!by && event.key !== " ")) return false;
    if (by) this.go(this.at + by);
    else this.play();
    return true;
  }

  play() {
    if (this.playing) this.leave();
    else {
      if (this.at === this.steps.length - 1) this.at = -1;
      this.playing = window.setInterval(() => {
        if (this.at >= this.steps.length - 1) this.leave();
        else return this.go(this.at + 1);
        return this.draw();
      }, TICK);
    }
    this.draw().catch(tell);
  }

  /** @param {number} step */
  open(step) {
    let found = this.traces.get(step);
    if (!found) {
      found = openProbe(this.run, step);
      this.traces.set(step, found);
      found.catch(() => this.traces.delete(step));
    }
    return found;
  }

  async draw() {
    const mine = ++this.turn;
    const heading = h("div", { class: "row" }, h("h2", {}, "The probe sentence"), word(this.text, "sentence source"));
    if (!this.steps.length) {
      replace(this.node, heading, h("p", { class: "muted" }, "It is looked into at the first validation."));
      return;
    }
    const step = this.steps[Math.max(0, this.at)];
    const trace = await this.open(step);
    const shown = await this.picture(trace);
    if (mine !== this.turn) return;
    const said = (trace.header.sequences.target ?? []).map((token) => word(token.shown, "word target"));
    replace(
      this.node,
      heading,
      this.scrubber(step),
      said.length ? h("p", {}, "It said: ", ...said.flatMap((node) => [node, " "])) : null,
      ...shown,
    );
  }

  /** @param {number} step */
  scrubber(step) {
    const last = this.steps.length - 1;
    const slider = h("input", {
      type: "range",
      class: "scrubber",
      min: 0,
      max: last,
      value: Math.max(0, this.at),
      "aria-label": "Step of the training",
      "aria-valuetext": `step ${step}`,
      "data-focus": "scrubber",
      oninput: () => this.go(Number(slider.value)),
    });
    const name = this.playing ? "Pause" : "Play the training";
    return h(
      "div",
      { class: "row transport" },
      h(
        "button",
        { type: "button", "aria-label": name, title: name, "data-focus": "play", onclick: () => this.play() },
        this.playing ? "⏸" : "▶",
      ),
      slider,
      h(
        "output",
        { class: "probe-step" },
        `step ${step.toLocaleString("en")} (${Math.max(0, this.at) + 1} of ${last + 1})`,
      ),
    );
  }

  /** @param {Trace} trace */
  async picture(trace) {
    const all = trace.header.tensors;
    const description = all.find((tensor) => tensor.name === this.chosen.tensor) ?? all[all.length - 1];
    const names = all.map((tensor) => ({ value: tensor.name, text: tensor.name }));
    const tensor = await trace.tensor(description.name);
    const heads = tensor.size("head");
    const head = this.chosen.head !== null && this.chosen.head < heads ? this.chosen.head : null;
    const numbered = Array.from({ length: heads }, (_, i) => ({ value: String(i), text: `head ${i}` }));
    const chose = (/** @type {Partial<{tensor: string, head: number|null}>} */ change) => {
      Object.assign(this.chosen, change);
      this.draw().catch(tell);
    };
    const looks = description.axes.includes("query");
    return [
      h(
        "div",
        { class: "row" },
        choice(looks ? "Attention" : "States", names, description.name, (name) => chose({ tensor: name })),
        heads > 1
          ? choice(
              "Head",
              [{ value: "", text: "mean of all" }, ...numbered],
              head === null ? "" : String(head),
              (value) => chose({ head: value === "" ? null : Number(value) }),
            )
          : null,
      ),
      looks ? weights(trace, description.name, tensor, head) : states(trace, description, tensor),
    ];
  }
}

/** @param {Trace} trace @param {string} name @param {import("./tensor.js").Tensor} tensor @param {number|null} head */
function weights(trace, name, tensor, head) {
  const plane = head === null ? tensor.mean("head").plane("query", "key", {}) : tensor.plane("query", "key", { head });
  return matrix({
    title: `${name}, ${head === null ? "mean of heads" : `head ${head}`}, at step ${trace.header.id}`,
    numbers: plane,
    rows: labels(trace, name, "query", tensor.size("query")),
    columns: labels(trace, name, "key", tensor.size("key")),
    rowTitle: "query",
    columnTitle: "key",
    ramp: "weight",
    top: 1, // one scale for all steps, else a flat beginning would look as sharp as the end
    sums: true,
    roles: roles(trace, name),
  });
}

/** @param {Trace} trace @param {Description} description @param {import("./tensor.js").Tensor} tensor */
function states(trace, description, tensor) {
  const place = /** @type {string} */ (along(description));
  const units = Math.min(UNITS, tensor.size("width"));
  const all = tensor.plane(place, "width", {});
  const rows = labels(trace, description.name, place, tensor.size(place));
  const numbers = new Float64Array(rows.length * units);
  rows.forEach((_, i) =>
    numbers.set(all.subarray(i * tensor.size("width"), i * tensor.size("width") + units), i * units),
  );
  return matrix({
    title: `${description.name} at step ${trace.header.id}`,
    numbers,
    rows,
    columns: Array.from({ length: units }, (_, i) => String(i)),
    rowTitle: place,
    columnTitle: "unit",
    ramp: "signed",
    top: 1,
    largest: 28,
  });
}
