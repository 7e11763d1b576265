// @ts-check
/** Generation tab: a text is generated token by token; query, cached keys and values, scores and weights of each step. */
import { css, rgb } from "../core/color.js";
import { h, replace, selectField, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { shortName, splitName } from "../trace/names.js";
import { promptLength, stepPrediction } from "../trace/predictions.js";
import { candidateBars } from "../widgets/candidate-bars.js";
import { resizeCanvas } from "../widgets/matrix.js";
import { strip } from "../widgets/strip.js";
import { table } from "../widgets/table.js";
import { Transport } from "../widgets/transport.js";
import { fork } from "./what-if.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../trace/tensor.js").Tensor} Tensor */

const KINDS = /** @type {const} */ (["queries", "keys", "values", "products", "scores", "weights", "context"]);
/** @typedef {Record<typeof KINDS[number], Tensor>} Attention */

/** Candidates of a step, and pixels of a vector in the table. */
const [BEST, VECTOR] = [10, 64];

/** Self-attention of a decoder with everything that a KV cache holds: modules. @param {Trace} trace */
function cachedModules(trace) {
  return trace.header.tensors
    .filter(({ name, sides }) => name.endsWith(".weights") && sides.query === "read" && sides.key === "read")
    .map(({ name }) => splitName(name)[0])
    .filter((base) => KINDS.every((kind) => trace.has(`${base}.${kind}`)));
}

/** Whether the trace generated tokens with a KV cache. @param {Trace} trace */
export function hasCache(trace) {
  return trace.header.steps.length > 0 && cachedModules(trace).length > 0;
}

/** @param {Context} context */
export async function generationTab(context) {
  const tab = new GenerationView(context);
  await tab.load();
  return tab.node;
}

class GenerationView {
  /** @param {Context} context */
  constructor(context) {
    const { trace, selection } = context;
    this.context = context;
    this.modules = cachedModules(trace);
    this.base = this.modules.find((base) => selection.current.tensor?.startsWith(`${base}.`)) ?? this.modules[0];
    this.prompt = promptLength(trace);
    this.read = trace.header.sequences.read;
    /** @type {number|null} the cached position whose key and value are shown in full; null: the new one */
    this.chosen = null;
    this.transport = new Transport(context, trace.header.steps.length);
    this.text = h("p", { class: "tokens" });
    this.cache = h("section", { class: "card" });
    this.output = h("section", { class: "card" });
    this.node = h(
      "div",
      { class: "stack" },
      h("section", { class: "card" }, this.transport.node, this.text),
      h("div", { class: "generation" }, this.cache, this.output),
    );
    context.onleave(selection.listen(["step"], () => this.draw()));
    context.onleave(selection.listen(["tensor", "head"], () => this.load().catch(showError)));
    context.layer = (by) => this.choose(this.modules[this.modules.indexOf(this.base) + by]);
    context.head = (by) => this.chooseHead(this.head + by);
  }

  async load() {
    const { trace, selection } = this.context;
    this.base = this.modules.find((base) => selection.current.tensor?.startsWith(`${base}.`)) ?? this.base;
    const tensors = await Promise.all(KINDS.map((kind) => trace.tensor(`${this.base}.${kind}`)));
    /** @type {Attention} */
    this.attention = /** @type {Attention} */ (Object.fromEntries(KINDS.map((kind, i) => [kind, tensors[i]])));
    this.draw();
  }

  /** @param {string|undefined} base */
  choose(base) {
    if (base) this.context.selection.set({ tensor: `${base}.weights` });
  }

  /** @param {number} head */
  chooseHead(head) {
    if (head >= 0 && head < this.heads) this.context.selection.set({ head });
  }

  get heads() {
    return this.attention?.weights.size("head") ?? 1;
  }

  get head() {
    return Math.max(0, Math.min(this.heads - 1, this.context.selection.current.head ?? 0));
  }

  /** The position that is read at this step, whose query is compared with all keys. */
  get position() {
    return this.prompt + this.transport.step;
  }

  draw() {
    if (!this.attention) return;
    if (this.chosen !== null && this.chosen > this.position) this.chosen = null;
    this.drawText();
    this.drawCache();
    this.drawOutput();
  }

  drawText() {
    const { position } = this;
    const tokens = [...this.read.slice(0, this.prompt + 1), ...this.context.trace.header.sequences.target];
    const kinds = tokens.map((token, i) => {
      const step = i - this.prompt - 1;
      const [kind, note] =
        i === position
          ? [" reading", "is read at this step"]
          : i === position + 1
            ? [" picked", "is generated"]
            : ["", ""];
      const name = `token${step < 0 ? " source" : " target"}${kind}${i > position + 1 ? " later" : ""}`;
      if (step < 0) return h("span", { class: name, title: note || null }, word(token.label));
      const onclick = () => this.transport.go(step);
      const props = { type: "button", class: name, "aria-pressed": String(i === position + 1), title: note || null };
      return h("button", { ...props, onclick }, word(token.label));
    });
    replace(this.text, ...kinds);
  }

  /** Choice of attention and head. */
  controls() {
    const names = this.modules.map((base) => ({ value: base, text: `${shortName(`${base}.x`)} — ${base}` }));
    const heads = Array.from({ length: this.heads }, (_, i) => ({ value: String(i), text: `head ${i}` }));
    return h(
      "div",
      { class: "row wrap" },
      h("h2", {}, "KV cache"),
      names.length > 1 ? selectField("Attention", names, this.base, (base) => this.choose(base)) : null,
      heads.length > 1 ? selectField("Head", heads, String(this.head), (head) => this.chooseHead(Number(head))) : null,
    );
  }

  drawCache() {
    const { position, head } = this;
    const attention = /** @type {Attention} */ (this.attention);
    const at = { head, query: position };
    const columns = ["key of", "k", "q · k", "score", "weight", "", "v"];
    const weights = attention.weights.vector("key", at);
    const rows = Array.from({ length: position + 1 }, (_, key) => this.cacheRow(key, weights));
    const first = this.transport.step === 0;
    const note = first
      ? `The prompt is read in one pass: ${position + 1} keys and values are computed and written into the cache.`
      : "One token is read: one query, one new key and one new value. The keys and values above it are from the cache.";
    const key = this.chosen ?? position;
    const box = table("Cached keys and values at this step", columns, rows, { kind: "numbers cache" });
    replace(
      this.cache,
      this.controls(),
      h("p", { class: "muted" }, note),
      this.vectorRow(["query of ", word(this.label(position))], "queries", "query", at),
      box,
      this.vectorRow(["key of ", word(this.label(key))], "keys", "key", { head, key }),
      this.vectorRow(["value of ", word(this.label(key))], "values", "value", { head, key }),
      this.vectorRow(["sum of weight · v"], "context", "attention", at),
    );
    // the newest key is below
    if (this.chosen === null) requestAnimationFrame(() => (box.scrollTop = box.scrollHeight));
  }

  /** A row of the table: a cached key, its score and weight, and the value. @param {number} key @param {Float64Array} weights */
  cacheRow(key, weights) {
    const { position, head, context } = this;
    const attention = /** @type {Attention} */ (this.attention);
    const at = { head, query: position, key };
    const number = (/** @type {"products"|"scores"|"weights"} */ kind) => {
      const onclick = () => context.drawer.open(`${this.base}.${kind}`, at);
      const label = `${kind === "weights" ? "weight" : kind === "scores" ? "score" : "q · k"} of ${this.label(key)}`;
      const value = formatNumber(attention[kind].at(at));
      return h("td", {}, h("button", { type: "button", class: "cell", title: `explain the ${label}`, onclick }, value));
    };
    const isNew = key === position || this.transport.step === 0;
    const isChosen = key === (this.chosen ?? position);
    const show = () => {
      this.chosen = key;
      this.drawCache();
    };
    const props = { type: "button", class: "cell", "aria-pressed": String(isChosen), onclick: show };
    const meter = h("span", { class: "meter" });
    meter.style.width = `${(100 * weights[key]).toFixed(2)}%`;
    return h(
      "tr",
      { class: isChosen ? "picked" : null },
      h(
        "th",
        { scope: "row" },
        h(
          "button",
          { ...props, "data-focus": `key${key}` },
          word(this.label(key)),
          isNew ? h("small", {}, " new") : null,
        ),
      ),
      h("td", {}, this.thumbnail("keys", key)),
      number("products"),
      number("scores"),
      number("weights"),
      h("td", { class: "bar" }, h("span", { class: "track" }, meter)),
      h("td", {}, this.thumbnail("values", key)),
    );
  }

  /** @param {number} i */
  label(i) {
    return this.read[i]?.label ?? String(i + 1);
  }

  /** A vector of the cache as colors. @param {"keys"|"values"} kind @param {number} key */
  thumbnail(kind, key) {
    const numbers = /** @type {Attention} */ (this.attention)[kind].vector("width", { head: this.head, key });
    const canvas = h("canvas", { "aria-hidden": "true" });
    const context = resizeCanvas(canvas, VECTOR, 14);
    const [top, wide] = [this.top(kind), VECTOR / numbers.length];
    numbers.forEach((number, i) => {
      context.fillStyle = css(rgb(number, top, "signed"));
      context.fillRect(i * wide, 0, Math.max(1, wide), 14);
    });
    return canvas;
  }

  /** Largest size of a number in a tensor, for its colors. @param {typeof KINDS[number]} kind */
  top(kind) {
    const { min, max } = this.context.trace.describe(`${this.base}.${kind}`);
    return Math.max(Math.abs(min), Math.abs(max));
  }

  /** A vector with a readout of its numbers. @param {(string|Node)[]} text @param {typeof KINDS[number]} kind @param {string} role @param {Record<string, number>} at */
  vectorRow(text, kind, role, at) {
    const name = `${this.base}.${kind}`;
    return h(
      "div",
      { class: "row vector" },
      h("span", { class: `vector-name ${role}` }, ...text),
      strip({
        numbers: /** @type {Attention} */ (this.attention)[kind].vector("width", at),
        top: this.top(kind),
        ramp: "signed",
        label: `${splitName(name)[1]} at this step`,
        onpick: (width) => this.context.drawer.open(name, { ...at, width }),
      }),
    );
  }

  drawOutput() {
    const { trace } = this.context;
    const { step } = this.transport;
    const { best, actual } = stepPrediction(trace.header.steps[step], this.read[this.position]);
    const bars = best
      .slice(0, BEST)
      .map((one, i) => ({
        ...one,
        note: one.token === actual?.token ? "chosen" : undefined,
        action: trace.live ? this.forceButton(trace.header.steps[step].best[i], step) : null,
      }));
    const below = actual && !bars.some((bar) => bar.note);
    replace(
      this.output,
      h("h2", {}, "Candidates for the next token"),
      h(
        "p",
        { class: "muted" },
        "After all layers, from the logits of this step; temperature and filters are in Decode.",
      ),
      candidateBars("Candidates at this step", bars),
      below ? h("p", {}, "chosen: ", word(actual.label), ` (probability ${formatNumber(actual.probability)})`) : null,
    );
  }

  /** @param {import("../core/types.js").Candidate} candidate @param {number} step */
  forceButton(candidate, step) {
    const label = `force: ${candidate.label} at step ${step + 1}`;
    const onclick = () => fork(this.context, { kind: "token", step, id: candidate.id }, { tab: "generation", step });
    return h("button", { type: "button", class: "small", "aria-label": label, title: label, onclick }, "force");
  }
}
