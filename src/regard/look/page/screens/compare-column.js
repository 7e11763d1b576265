// @ts-check
/** One column of the comparison: answer, probabilities, tokens and attention of one model, on a color scale of all. */
import { commonIndices, commonSubsequence } from "../core/diff.js";
import { h, replace, word } from "../core/dom.js";
import { formatNumber, formatSeconds, formatSize } from "../core/format.js";
import { traceAddress } from "../core/route.js";
import { classBars, labeledTokens, maskBars } from "../tabs/answer.js";
import { crossTensor } from "../tabs/attention.js";
import { axisLabels, axisRoles } from "../tabs/one-head.js";
import { tokenSpans, wordSpans } from "../trace/merge-subwords.js";
import { labeledSentence } from "../widgets/labeled-words.js";
import { MatrixView } from "../widgets/matrix.js";
import { largest } from "../widgets/picture.js";
import { table } from "../widgets/table.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {{target: number|null, source: number|null}} Choice selected tokens of one column */

/** Column of one model. */
export class Column {
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
    /** @type {import("../trace/tensor.js").Tensor|null} mean of the heads of the cross-attention */
    this.weights = null;
    this.tokens = h("div", {});
    this.node = h("section", { class: "card", "aria-label": model.name });
    /** @type {Choice} */
    this.choice = { target: null, source: null };
  }

  /** Loads the attention; returns its largest weight. */
  async load() {
    if (!this.crossTensor) return 0;
    this.weights = (await this.trace.tensor(this.crossTensor.name)).mean("head");
    return largest(this.weights.data);
  }

  /** @param {number} top largest weight of all columns: they have one color scale */
  async draw(top) {
    const { header } = this.trace;
    const total = header.steps.reduce((sum, step) => sum + step.log_prob, 0);
    const name = this.crossTensor?.name ?? "";
    this.matrix = this.weights ? this.picture(name, this.weights, top) : null;
    const seconds = `${formatSeconds(header.seconds)} with recording`;
    const summary = header.steps.length
      ? `log-probability ${formatNumber(total)}, ${header.steps.length} ${header.steps.length === 1 ? "token" : "tokens"}, ${seconds}`
      : seconds;
    this.drawTokens();
    replace(
      this.node,
      h("h2", {}, word(header.model.name)),
      this.answer(),
      h("p", { class: "muted" }, summary),
      header.model.parameters ? h("p", { class: "muted size" }, formatSize(header.model)) : null,
      header.steps.length ? this.tokens : null,
      header.steps.length ? null : ((await classBars(this.trace)) ?? maskBars(this.trace)),
      this.matrix?.node ??
        (header.steps.length ? h("p", { class: "muted" }, "This model has no attention over its source.") : null),
      h("p", {}, h("a", { href: traceAddress(header.id) }, "Inspect")),
    );
  }

  /** The answer, with differences from the first model marked. */
  answer() {
    const labels = labeledTokens(this.trace.header);
    if (labels) return h("p", { class: "sentence" }, labeledSentence(labels));
    const words = (this.trace.header.answer || "(empty)").split(/\s+/);
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

  /** @param {string} name @param {import("../trace/tensor.js").Tensor} weights @param {number} top */
  picture(name, weights, top) {
    return new MatrixView({
      title: `${name}, mean of heads`,
      numbers: weights.plane("query", "key", {}),
      rows: axisLabels(this.trace, name, "query", weights.size("query")),
      columns: axisLabels(this.trace, name, "key", weights.size("key")),
      rowTitle: "query",
      columnTitle: "key",
      ramp: "weight",
      top,
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
export function syncChoice(columns, from, choice) {
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
