// @ts-check
/** Word after word: what could have been said at each step, and what temperature and filters would make of it. */
import { attentions } from "./attention.js";
import { beamTree } from "./beam.js";
import { css, ink, rgb } from "./colour.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { tell } from "./notice.js";
import { filtered, softmax, warmed } from "./probability.js";
import { table } from "./table.js";
import { fork } from "./whatif.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Candidate} Candidate */
/** @typedef {import("./probability.js").Rules} Rules */

const [SHOWN, TICK] = [20, 900];

/** Whether there are steps to follow. @param {import("./trace.js").Trace} trace */
export function saidByWords(trace) {
  return trace.header.steps.length > 0 && trace.has("logits");
}

/** @param {Context} context */
export async function decodeTab(context) {
  const tab = new Decoding(context);
  await tab.begin();
  return tab.node;
}

class Decoding {
  /** @param {Context} context */
  constructor(context) {
    const { header } = context.trace;
    this.context = context;
    this.steps = header.steps;
    /** @type {Rules} */
    this.rules = { temperature: 1, topK: 0, topP: 1, minP: 0 };
    this.across = attentions(header)
      .filter((tensor) => tensor.sides.key === "source" && tensor.sides.query !== "source")
      .pop();
    /** @type {import("./tensor.js").Tensor|null} */
    this.looking = null;
    this.playing = 0;
    this.last = this.steps.length - 1;
    // a prompt of many words is read before the first is said
    this.offset = (header.sequences.read?.length ?? this.steps.length) - this.steps.length;
    this.bar = h("div", { class: "row transport", role: "group", "aria-label": "Steps" });
    this.sentence = h("section", { class: "card" });
    this.table = h("div", { class: "table" });
    const choices = h(
      "section",
      { class: "card" },
      h("h2", {}, "What could have been said"),
      sliders(this.rules, () => this.drawTable().catch(tell)),
      this.table,
    );
    const tree = header.beam.some((node) => !node.chosen) ? beamTree(header.beam) : null;
    this.node = h("div", { class: "stack" }, this.sentence, choices, tree);
  }

  async begin() {
    const { context } = this;
    if (this.across) this.looking = (await context.trace.tensor(this.across.name)).mean("head");
    this.drawBar();
    this.drawSentence();
    await this.drawTable();
    context.onleave(
      context.selection.listen((changed) => {
        if (!("step" in changed)) return;
        this.drawBar();
        this.drawSentence();
        this.drawTable().catch(tell);
      }),
    );
    context.onleave(() => this.stop());
    context.step = (by) => this.go(this.now + by);
    context.play = () => this.play();
  }

  get now() {
    return Math.max(0, Math.min(this.last, this.context.selection.now.step));
  }

  /** @param {number} step */
  go(step) {
    this.context.selection.set({ step: Math.max(0, Math.min(this.last, step)) });
  }

  stop() {
    clearInterval(this.playing);
    this.playing = 0;
  }

  play() {
    if (this.playing) this.stop();
    else {
      if (this.now === this.last) this.go(0);
      this.playing = window.setInterval(() => {
        if (this.now < this.last) return this.go(this.now + 1);
        this.stop();
        this.drawBar();
      }, TICK);
    }
    this.drawBar();
  }

  drawBar() {
    const { now, last } = this;
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {() => void} */ onclick,
      disabled = false,
    ) => h("button", { type: "button", "aria-label": name, title: name, disabled, onclick }, text);
    const play = button(this.playing ? "⏸" : "▶", this.playing ? "Pause" : "Play", () => this.play());
    play.dataset.focus = "play";
    replace(
      this.bar,
      button("⏮", "First step", () => this.go(0), now === 0),
      button("◀", "Step back", () => this.go(now - 1), now === 0),
      play,
      button("▶︎|", "Step on", () => this.go(now + 1), now === last),
      button("⏭", "Last step", () => this.go(last), now === last),
      h("span", { class: "muted" }, `step ${now + 1} of ${this.steps.length}`),
    );
  }

  drawSentence() {
    const { now } = this;
    const source = this.source();
    const said = this.steps.map((step, i) =>
      h(
        "button",
        {
          type: "button",
          class: `token target${i === now ? " picked" : ""}${i > now ? " later" : ""}`,
          "aria-pressed": String(i === now),
          onclick: () => this.go(i),
        },
        word(step.chosen.shown),
      ),
    );
    const where = `Coloured: where ${this.across?.name} looked while this word was chosen, mean of its heads.`;
    replace(
      this.sentence,
      this.bar,
      source.length ? h("p", { class: "tokens" }, ...source) : null,
      h("p", { class: "tokens" }, ...said),
      this.across ? h("p", { class: "muted" }, where) : null,
    );
  }

  /** What was read, coloured by where the model looks now. */
  source() {
    const { looking } = this;
    const query = looking ? Math.min(this.now + this.offset, looking.size("query") - 1) : 0;
    const weights = looking ? looking.along("key", { query }) : null;
    const top = weights ? weights.reduce((a, b) => Math.max(a, b), 0) : 0;
    return (this.context.trace.header.sequences.source ?? []).map((token, i) => {
      if (!weights) return h("span", { class: "token source" }, word(token.shown));
      const colour = rgb(weights[i], top, "weight");
      const weight = h("small", {}, weights[i].toFixed(2));
      const node = h("span", { class: "token source", title: shown(weights[i]) }, word(token.shown), weight);
      node.style.background = css(colour);
      node.style.color = ink(colour);
      return node;
    });
  }

  async drawTable() {
    const { now, rules } = this;
    const logits = (await this.context.trace.tensor("logits", `step:${now}`)).data;
    if (now !== this.now) return;
    const shares = [softmax(logits), softmax(warmed(logits, rules.temperature)), filtered(logits, rules)];
    const left = shares[2].reduce((count, share) => count + (share > 0 ? 1 : 0), 0);
    const told = `${left.toLocaleString("en")} of ${logits.length.toLocaleString("en")} tokens are left to draw from`;
    const columns = ["", "token", "logit", "probability", "after temperature", "after filters", ""];
    const rows = this.steps[now].best.slice(0, SHOWN).map((candidate, rank) => this.row(candidate, rank, shares));
    replace(
      this.table,
      h("p", { class: "muted" }, `${told}; entropy ${shown(this.steps[now].entropy)} nats.`),
      table("Best candidates", columns, rows, { kind: "numbers candidates" }),
    );
  }

  /** @param {Candidate} candidate @param {number} rank @param {Float64Array[]} shares */
  row(candidate, rank, [plain, warm, kept]) {
    const { now: step, context } = this;
    const { id } = candidate;
    const chosen = id === this.steps[step].chosen.id;
    const explain = () => context.drawer.open("logits", { step, vocabulary: id });
    return h(
      "tr",
      { class: chosen ? "picked" : null },
      h("td", {}, String(rank + 1)),
      h(
        "th",
        { scope: "row" },
        h(
          "span",
          { class: "candidate" },
          word(candidate.shown),
          chosen ? h("small", {}, " chosen") : context.trace.live ? this.instead(candidate, step) : null,
        ),
      ),
      h("td", {}, h("button", { type: "button", class: "cell", onclick: explain }, shown(candidate.logit))),
      h("td", {}, shown(plain[id])),
      h("td", {}, shown(warm[id])),
      h("td", {}, kept[id] > 0 ? shown(kept[id]) : "cut"),
      h("td", { class: "bar" }, meter(kept[id])),
    );
  }

  /** @param {Candidate} candidate @param {number} step */
  instead(candidate, step) {
    const what = `say this: ${candidate.shown} at step ${step + 1}`;
    const onclick = () => fork(this.context, { kind: "token", step, id: candidate.id }, { tab: "decode", step });
    return h("button", { type: "button", class: "small", "aria-label": what, title: what, onclick }, "say this");
  }
}

/** @param {number} share */
function meter(share) {
  const bar = h("span", { class: "meter" });
  bar.style.width = `${Math.round(share * 96)}px`;
  return bar;
}

/** @param {Rules} rules @param {() => void} changed */
function sliders(rules, changed) {
  const one = (
    /** @type {keyof Rules} */ name,
    /** @type {string} */ text,
    /** @type {number} */ min,
    /** @type {number} */ max,
    /** @type {number} */ step,
  ) => {
    const value = () => (name === "topK" && rules[name] === 0 ? "all" : String(rules[name]));
    const told = h("output", {}, value());
    const oninput = () => {
      rules[name] = Number(input.value);
      told.textContent = value();
      changed();
    };
    const input = h("input", { type: "range", min, max, step, value: rules[name], "aria-label": text, oninput });
    return h("label", { class: "field slider" }, h("span", {}, text, " ", told), input);
  };
  return h(
    "div",
    { class: "row wrap sliders" },
    one("temperature", "temperature", 0.1, 3, 0.05),
    one("topK", "top-k", 0, 50, 1),
    one("topP", "top-p", 0.05, 1, 0.05),
    one("minP", "min-p", 0, 1, 0.02),
  );
}
