// @ts-check
/** Line-up: the same sentence through two to four models, with answers, probabilities and attention side by side. */
import { get, post } from "../core/api.js";
import { commonIndices, commonSubsequence } from "../core/diff.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber, formatSize } from "../core/format.js";
import { showError } from "../core/notice.js";
import { traceAddress, VECTORS } from "../core/route.js";
import { crossTensor } from "../tabs/attention.js";
import { axisLabels, axisRoles } from "../tabs/one-head.js";
import { tokenSpans, wordSpans } from "../trace/merge-subwords.js";
import { openTrace } from "../trace/server-source.js";
import { FORECAST } from "../widgets/csv-input.js";
import { MatrixView } from "../widgets/matrix.js";
import { table } from "../widgets/table.js";
import { gradientDecay } from "./gradient-decay.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Model} Model */
/** @typedef {{target: number|null, source: number|null}} Choice selected tokens of one column */

const MAX_MODELS = 4;

/** @param {URLSearchParams} query @param {string} sentence @returns {Promise<import("../core/types.js").Screen>} */
export async function lineup(query, sentence) {
  const { models } = await get("models");
  const usable = /** @type {Model[]} */ (models).filter(isComparable);
  const ids = (query.get("t") ?? "").split(",").filter(Boolean).slice(0, MAX_MODELS);
  const traces = await Promise.all(ids.map(openTrace));
  const columns = traces.map(
    (trace) => new Column(trace, traces[0], (from, choice) => syncChoice(columns, from, choice)),
  );
  await Promise.all(columns.map((column) => column.draw()));
  const form = new RunForm(usable, traces, sentence);
  const few = "There are fewer than two models to compare; train another one first.";
  const node = h(
    "main",
    { class: "wide", tabindex: "-1" },
    h("h1", {}, "Line-up"),
    usable.length < 2 ? h("p", {}, few) : form.node,
    h("div", { class: "lineup" }, ...columns.map((column) => column.node)),
    gradientDecay(traces),
  );
  const redraw = () => Promise.all(columns.map((column) => column.draw())).catch(showError);
  return { node, title: "Line-up", redraw, leave: () => {}, key: () => false };
}

/** Whether a model reads sentences. @param {Model} model */
export function isComparable(model) {
  return model.usable && model.task !== FORECAST && model.task !== VECTORS;
}

/** Form with the models and the sentence. */
class RunForm {
  /** @param {Model[]} usable @param {Trace[]} traces @param {string} sentence */
  constructor(usable, traces, sentence) {
    this.sentence = sentence;
    const models = traces.length ? traces.map((trace) => trace.header.model) : usable.slice(0, 2);
    const chosen = new Set(models.map((model) => model.id));
    this.boxes = usable.map((model) =>
      h("input", { type: "checkbox", value: model.id, checked: chosen.has(model.id) }),
    );
    this.input = h("input", {
      type: "text",
      dir: "auto",
      "aria-label": "Sentence for all models",
      value: traces[0]?.header.text ?? "",
      placeholder: sentence,
      autocomplete: "off",
    });
    this.button = h("button", { type: "submit", class: "primary" }, "Run all");
    this.status = h("span", { class: "muted", role: "status" });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.run();
    };
    this.node = h(
      "form",
      { class: "card", onsubmit },
      h(
        "fieldset",
        { class: "row" },
        h("legend", {}, "Models"),
        ...usable.map((model, i) => h("label", { class: "row" }, this.boxes[i], word(model.name))),
      ),
      h("div", { class: "row run-form" }, this.input, this.button),
      this.status,
    );
  }

  async run() {
    const chosen = this.boxes.filter((box) => box.checked).map((box) => box.value);
    if (chosen.length < 2 || chosen.length > MAX_MODELS) {
      this.status.textContent = `Choose two to ${MAX_MODELS} models.`;
      return;
    }
    this.button.disabled = true;
    try {
      const ids = [];
      for (const model of chosen) {
        this.status.textContent = `${ids.length + 1} of ${chosen.length} …`;
        const text = this.input.value.trim() || this.sentence;
        ids.push((await post("traces", { model, text, decode: {} })).id);
      }
      location.hash = `#/compare?t=${ids.map(encodeURIComponent).join(",")}`;
    } catch (error) {
      showError(error);
      this.status.textContent = "";
    }
    this.button.disabled = false;
  }
}

/** Column of one model. */
class Column {
  /** @param {Trace} trace @param {Trace} first @param {(from: Column, choice: Choice) => void} onchoose */
  constructor(trace, first, onchoose) {
    this.trace = trace;
    this.first = first;
    this.onchoose = onchoose;
    const { sequences, model } = trace.header;
    /** Word index of each token. */
    this.words = { target: wordIndices(sequences.target), source: wordIndices(sequences.source) };
    this.crossTensor = crossTensor(trace.header);
    /** @type {MatrixView|null} */
    this.matrix = null;
    this.tokens = h("div", {});
    this.node = h("section", { class: "card", "aria-label": model.name });
    /** @type {Choice} */
    this.choice = { target: null, source: null };
  }

  async draw() {
    const { header } = this.trace;
    const total = header.steps.reduce((sum, step) => sum + step.log_prob, 0);
    this.matrix = this.crossTensor ? await this.picture(this.crossTensor.name) : null;
    const summary = `log-probability ${formatNumber(total)}, ${header.steps.length} tokens, ${header.seconds.toFixed(2)} s with recording`;
    this.drawTokens();
    replace(
      this.node,
      h("h2", {}, word(header.model.name)),
      this.answer(),
      h("p", { class: "muted" }, summary),
      header.model.parameters ? h("p", { class: "muted size" }, formatSize(header.model)) : null,
      this.tokens,
      this.matrix?.node ?? h("p", { class: "muted" }, "This model has no attention over its source."),
      h("p", {}, h("a", { href: traceAddress(header.id) }, "Inspect")),
    );
  }

  /** The answer, with differences from the first model marked. */
  answer() {
    const words = this.trace.header.answer.split(/\s+/);
    const same = commonIndices(this.first.header.answer.split(/\s+/), words);
    const parts = words.flatMap((text, i) => [same.has(i) ? h("span", {}, text) : h("mark", {}, text), " "]);
    return h("p", { class: "sentence target", dir: "auto" }, ...parts);
  }

  drawTokens() {
    const rows = this.trace.header.steps.map((step, i) => {
      const chosen = this.choice.target === i;
      const onclick = () => this.onchoose(this, { target: i, source: this.choice.source });
      const name = h(
        "button",
        { type: "button", class: "cell", "aria-pressed": String(chosen), onclick },
        word(step.chosen.label),
      );
      return h(
        "tr",
        { class: chosen ? "picked" : null },
        h("th", { scope: "row" }, name),
        h("td", {}, formatNumber(step.log_prob)),
        h("td", {}, formatNumber(Math.exp(step.log_prob))),
      );
    });
    const label = `Tokens of ${this.trace.header.model.name}, ${this.trace.header.id}`;
    const columns = ["token", "log-prob", "probability"];
    replace(this.tokens, table(label, columns, rows, { kind: "numbers candidates" }));
  }

  /** @param {string} name */
  async picture(name) {
    const weights = (await this.trace.tensor(name)).mean("head");
    const numbers = weights.plane("query", "key", {});
    return new MatrixView({
      title: `${name}, mean of heads`,
      numbers,
      rows: axisLabels(this.trace, name, "query", weights.size("query")),
      columns: axisLabels(this.trace, name, "key", weights.size("key")),
      rowTitle: "query",
      columnTitle: "key",
      ramp: "weight",
      top: numbers.reduce((a, b) => Math.max(a, b), 0),
      largest: 32,
      roles: axisRoles(this.trace, name),
      onselect: (target, source) => this.onchoose(this, { target, source }),
    });
  }

  /** @param {Choice} choice */
  show(choice) {
    this.choice = choice;
    this.drawTokens();
    this.matrix?.show(choice.target !== null && choice.source !== null ? [choice.target, choice.source] : null);
  }
}

/**
 * Applies the selection of one column to all: the same source word, and the target word that corresponds in the longest
 * common subsequence of the answers; tokenizations may differ.
 * @param {Column[]} columns @param {Column} from @param {Choice} choice
 */
function syncChoice(columns, from, choice) {
  for (const column of columns) {
    if (column === from) column.show(choice);
    else {
      const source = choice.source === null ? null : column.words.source.indexOf(from.words.source[choice.source]);
      column.show({ target: matchingToken(from, column, choice.target), source: source === -1 ? null : source });
    }
  }
}

/** @param {Column} from @param {Column} to @param {number|null} target @returns {number|null} */
function matchingToken(from, to, target) {
  if (target === null) return null;
  const [mine, theirs] = [from, to].map(({ trace, words }) =>
    wordTexts(trace.header.sequences.target ?? [], words.target),
  );
  const pair = commonSubsequence(mine, theirs).find(([i]) => i === from.words.target[target]);
  return pair ? to.words.target.indexOf(pair[1]) : null;
}

/** Word index of each token. @param {import("../core/types.js").Token[]|undefined} tokens */
function wordIndices(tokens) {
  const spans = wordSpans(tokens ?? null) ?? tokenSpans(tokens?.length ?? 0);
  return spans.flatMap(([first, last], number) => Array.from({ length: last - first + 1 }, () => number));
}

/** Words spelled by the tokens. @param {import("../core/types.js").Token[]} tokens @param {number[]} indices */
function wordTexts(tokens, indices) {
  /** @type {string[]} */
  const words = [];
  tokens.forEach((token, i) => (words[indices[i]] = (words[indices[i]] ?? "") + token.label));
  return words;
}
