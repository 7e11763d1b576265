// @ts-check
/** The same sentence through two to four models, side by side: what each said, how sure it was, where it looked. */
import { get, openTrace, post } from "./api.js";
import { attentions } from "./attention.js";
import { h, replace, word } from "./dom.js";
import { fading } from "./fading.js";
import { shown, sizes } from "./format.js";
import { MatrixView } from "./matrix.js";
import { alone, wordRuns } from "./merging.js";
import { tell } from "./notice.js";
import { labels, roles } from "./onehead.js";
import { traceAddress, WORDY } from "./route.js";
import { SERIAL } from "./series.js";
import { table } from "./table.js";
import { common, paired } from "./words.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./types.js").Model} Model */
/** What is chosen in one column: a token that was said, one that was read; either may be none. @typedef {{said: number|null, read: number|null}} Choice */

const MOST = 4;

/** @param {URLSearchParams} query @param {string} sentence @returns {Promise<import("./inspector.js").Screen>} */
export async function lineup(query, sentence) {
  const { models } = await get("models");
  const usable = /** @type {Model[]} */ (models).filter(comparable);
  const wanted = (query.get("t") ?? "").split(",").filter(Boolean).slice(0, MOST);
  const opened = await Promise.all(wanted.map(openTrace));
  const columns = opened.map((trace) => new Column(trace, opened[0], (from, choice) => share(columns, from, choice)));
  await Promise.all(columns.map((column) => column.draw()));
  const form = new Form(usable, opened, sentence);
  const few = "There are fewer than two models to compare; train another one first.";
  const node = h(
    "main",
    { class: "wide", tabindex: "-1" },
    h("h1", {}, "Line-up"),
    usable.length < 2 ? h("p", {}, few) : form.node,
    h("div", { class: "lineup" }, ...columns.map((column) => column.node)),
    fading(opened),
  );
  const redraw = () => Promise.all(columns.map((column) => column.draw())).catch(tell);
  return { node, title: "Line-up", redraw, leave: () => {}, key: () => false };
}

/** Whether a model reads sentences, as others do. @param {Model} model */
export function comparable(model) {
  return model.usable && model.task !== SERIAL && model.task !== WORDY;
}

/** Which models, which sentence. */
class Form {
  /** @param {Model[]} usable @param {Trace[]} opened @param {string} sentence */
  constructor(usable, opened, sentence) {
    this.sentence = sentence;
    const ids = opened.length
      ? opened.map((trace) => trace.header.model.id)
      : usable.slice(0, 2).map((model) => model.id);
    const chosen = new Set(ids);
    this.boxes = usable.map((model) =>
      h("input", { type: "checkbox", value: model.id, checked: chosen.has(model.id) }),
    );
    this.input = h("input", {
      type: "text",
      dir: "auto",
      "aria-label": "Sentence for all models",
      value: opened[0]?.header.text ?? "",
      placeholder: sentence,
      autocomplete: "off",
    });
    this.button = h("button", { type: "submit", class: "primary" }, "Run all");
    this.told = h("span", { class: "muted", role: "status" });
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
      h("div", { class: "row ask" }, this.input, this.button),
      this.told,
    );
  }

  async run() {
    const chosen = this.boxes.filter((box) => box.checked).map((box) => box.value);
    if (chosen.length < 2 || chosen.length > MOST) {
      this.told.textContent = `Choose two to ${MOST} models.`;
      return;
    }
    this.button.disabled = true;
    try {
      const numbers = [];
      for (const model of chosen) {
        this.told.textContent = `${numbers.length + 1} of ${chosen.length} …`;
        const text = this.input.value.trim() || this.sentence;
        numbers.push((await post("traces", { model, text, decode: {} })).id);
      }
      location.hash = `#/compare?t=${numbers.map(encodeURIComponent).join(",")}`;
    } catch (error) {
      tell(error);
      this.told.textContent = "";
    }
    this.button.disabled = false;
  }
}

/** One model. */
class Column {
  /** @param {Trace} trace @param {Trace} first @param {(from: Column, choice: Choice) => void} onchoose */
  constructor(trace, first, onchoose) {
    this.trace = trace;
    this.first = first;
    this.onchoose = onchoose;
    const { sequences, model } = trace.header;
    /** Of each token that was said or read, the word it is part of. */
    this.words = { said: belonging(sequences.target), read: belonging(sequences.source) };
    this.across = attentions(trace.header)
      .filter((tensor) => tensor.sides.key === "source" && tensor.sides.query !== "source")
      .pop();
    /** @type {MatrixView|null} */
    this.matrix = null;
    this.tokens = h("div", {});
    this.node = h("section", { class: "card", "aria-label": model.name });
    /** @type {Choice} */
    this.choice = { said: null, read: null };
  }

  async draw() {
    const { header } = this.trace;
    const total = header.steps.reduce((sum, step) => sum + step.log, 0);
    this.matrix = this.across ? await this.picture(this.across.name) : null;
    const sure = `log-probability ${shown(total)}, ${header.steps.length} tokens, ${header.seconds.toFixed(2)} s with recording`;
    this.drawTokens();
    replace(
      this.node,
      h("h2", {}, word(header.model.name)),
      this.answer(),
      h("p", { class: "muted" }, sure),
      header.model.parameters ? h("p", { class: "muted size" }, sizes(header.model)) : null,
      this.tokens,
      this.matrix?.node ?? h("p", { class: "muted" }, "This model does not look back at its source."),
      h("p", {}, h("a", { href: traceAddress(header.id) }, "Look inside")),
    );
  }

  /** What it said, with what the first model did not say. */
  answer() {
    const said = this.trace.header.answer.split(/\s+/);
    const same = common(this.first.header.answer.split(/\s+/), said);
    const parts = said.flatMap((text, i) => [same.has(i) ? h("span", {}, text) : h("mark", {}, text), " "]);
    return h("p", { class: "sentence target", dir: "auto" }, ...parts);
  }

  drawTokens() {
    const rows = this.trace.header.steps.map((step, i) => {
      const chosen = this.choice.said === i;
      const onclick = () => this.onchoose(this, { said: i, read: this.choice.read });
      const name = h(
        "button",
        { type: "button", class: "cell", "aria-pressed": String(chosen), onclick },
        word(step.chosen.shown),
      );
      return h(
        "tr",
        { class: chosen ? "picked" : null },
        h("th", { scope: "row" }, name),
        h("td", {}, shown(step.log)),
        h("td", {}, shown(Math.exp(step.log))),
      );
    });
    replace(
      this.tokens,
      table(
        `Tokens of ${this.trace.header.model.name}, ${this.trace.header.id}`,
        ["token", "log-prob", "probability"],
        rows,
        { kind: "numbers candidates" },
      ),
    );
  }

  /** @param {string} name */
  async picture(name) {
    const weights = (await this.trace.tensor(name)).mean("head");
    const numbers = weights.plane("query", "key", {});
    return new MatrixView({
      title: `${name}, mean of heads`,
      numbers,
      rows: labels(this.trace, name, "query", weights.size("query")),
      columns: labels(this.trace, name, "key", weights.size("key")),
      rowTitle: "query",
      columnTitle: "key",
      ramp: "weight",
      top: numbers.reduce((a, b) => Math.max(a, b), 0),
      largest: 32,
      roles: roles(this.trace, name),
      onselect: (said, read) => this.onchoose(this, { said, read }),
    });
  }

  /** @param {Choice} choice */
  show(choice) {
    this.choice = choice;
    this.drawTokens();
    this.matrix?.show(choice.said !== null && choice.read !== null ? [choice.said, choice.read] : null);
  }
}

/**
 * What is chosen in one column is chosen in all: the same word of the sentence, and the word of the answer that stands
 * for the same in the longest common part of both; models may cut both into other tokens.
 * @param {Column[]} columns @param {Column} from @param {Choice} choice
 */
function share(columns, from, choice) {
  for (const column of columns) {
    if (column === from) column.show(choice);
    else {
      const read = choice.read === null ? null : column.words.read.indexOf(from.words.read[choice.read]);
      column.show({ said: matching(from, column, choice.said), read: read === -1 ? null : read });
    }
  }
}

/** @param {Column} from @param {Column} to @param {number|null} said @returns {number|null} */
function matching(from, to, said) {
  if (said === null) return null;
  const [mine, theirs] = [from, to].map(({ trace, words }) => spelled(trace.header.sequences.target ?? [], words.said));
  const pair = paired(mine, theirs).find(([i]) => i === from.words.said[said]);
  return pair ? to.words.said.indexOf(pair[1]) : null;
}

/** Of each token, the number of the word it is part of. @param {import("./types.js").Word[]|undefined} tokens */
function belonging(tokens) {
  const runs = wordRuns(tokens ?? null) ?? alone(tokens?.length ?? 0);
  return runs.flatMap(([first, last], number) => Array.from({ length: last - first + 1 }, () => number));
}

/** The words that tokens make. @param {import("./types.js").Word[]} tokens @param {number[]} belongs */
function spelled(tokens, belongs) {
  /** @type {string[]} */
  const words = [];
  tokens.forEach((token, i) => (words[belongs[i]] = (words[belongs[i]] ?? "") + token.shown));
  return words;
}
