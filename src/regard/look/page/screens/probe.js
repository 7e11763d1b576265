// @ts-check
/** The probe sentence of a training run: its trace at each validation, with a scrubber. */
import { h, replace, selectField, word } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { axisLabels, axisRoles, headField } from "../tabs/one-head.js";
import { sequenceAxis } from "../tabs/states.js";
import { openProbe } from "../trace/server-source.js";
import { matrix } from "../widgets/matrix.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Description} Description */

const [TICK, UNITS] = [700, 64];

export class Probe {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    this.node = h("section", { class: "card", hidden: true, "aria-label": "Probe sentence" });
    /** @type {number[]} */
    this.steps = [];
    this.text = "";
    this.at = 0;
    /** Whether the newest step is shown when it arrives. */
    this.followsLatest = true;
    /** @type {{tensor: string|null, head: number|null}} */
    this.chosen = { tensor: null, head: null };
    /** @type {Map<number, Promise<Trace>>} */
    this.traces = new Map();
    this.playing = 0;
    this.request = 0;
  }

  leave() {
    clearInterval(this.playing);
    this.playing = 0;
  }

  /** @param {{text: string, steps: number[]}|null} probe */
  async show(probe) {
    this.node.hidden = probe === null;
    if (!probe || (probe.text === this.text && probe.steps.join() === this.steps.join())) return;
    if (probe.text !== this.text) this.traces.clear();
    const before = this.steps[this.at];
    [this.text, this.steps] = [probe.text, probe.steps];
    const same = this.steps.indexOf(before);
    this.at = this.followsLatest || same < 0 ? Math.max(0, this.steps.length - 1) : same;
    await this.draw();
  }

  /** @param {number} at */
  go(at) {
    this.at = Math.max(0, Math.min(this.steps.length - 1, at));
    this.followsLatest = this.at === this.steps.length - 1;
    return this.draw().catch(showError);
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
    this.draw().catch(showError);
  }

  /** @param {number} step */
  open(step) {
    let trace = this.traces.get(step);
    if (!trace) {
      trace = openProbe(this.run, step);
      this.traces.set(step, trace);
      trace.catch(() => this.traces.delete(step));
    }
    return trace;
  }

  async draw() {
    const request = ++this.request;
    const heading = h("div", { class: "row" }, h("h2", {}, "Probe sentence"), word(this.text, "sentence source"));
    if (!this.steps.length) {
      replace(this.node, heading, h("p", { class: "muted" }, "It is recorded at the first validation."));
      return;
    }
    const step = this.steps[Math.max(0, this.at)];
    const trace = await this.open(step);
    const picture = await this.picture(trace);
    if (request !== this.request) return;
    const output = (trace.header.sequences.target ?? []).map((token) => word(token.label, "word target"));
    replace(
      this.node,
      heading,
      this.scrubber(step),
      output.length ? h("p", {}, "Output: ", ...output.flatMap((node) => [node, " "])) : null,
      ...picture,
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
      "aria-label": "Training step",
      "aria-valuetext": `step ${step}`,
      "data-focus": "scrubber",
      oninput: () => this.go(Number(slider.value)),
    });
    const name = this.playing ? "Pause" : "Play the steps";
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
    const choose = (/** @type {Partial<{tensor: string, head: number|null}>} */ change) => {
      Object.assign(this.chosen, change);
      this.draw().catch(showError);
    };
    const isAttention = description.axes.includes("query");
    return [
      h(
        "div",
        { class: "row" },
        selectField(isAttention ? "Attention" : "States", names, description.name, (name) => choose({ tensor: name })),
        headField(heads, head, (head) => choose({ head })),
      ),
      isAttention ? weightsMatrix(trace, description.name, tensor, head) : statesMatrix(trace, description, tensor),
    ];
  }
}

/** @param {Trace} trace @param {string} name @param {import("../trace/tensor.js").Tensor} tensor @param {number|null} head */
function weightsMatrix(trace, name, tensor, head) {
  const plane = head === null ? tensor.mean("head").plane("query", "key", {}) : tensor.plane("query", "key", { head });
  return matrix({
    title: `${name}, ${head === null ? "mean of heads" : `head ${head}`}, at step ${trace.header.id}`,
    numbers: plane,
    rows: axisLabels(trace, name, "query", tensor.size("query")),
    columns: axisLabels(trace, name, "key", tensor.size("key")),
    rowTitle: "query",
    columnTitle: "key",
    ramp: "weight",
    top: 1, // one scale for all steps, so that they can be compared
    sums: true,
    roles: axisRoles(trace, name),
  });
}

/** @param {Trace} trace @param {Description} description @param {import("../trace/tensor.js").Tensor} tensor */
function statesMatrix(trace, description, tensor) {
  const place = /** @type {string} */ (sequenceAxis(description));
  const units = Math.min(UNITS, tensor.size("width"));
  const all = tensor.plane(place, "width", {});
  const rows = axisLabels(trace, description.name, place, tensor.size(place));
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
