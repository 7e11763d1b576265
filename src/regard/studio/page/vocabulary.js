// @ts-check
/** The words of a model as points: a map of some of them, the neighbours of one, the words nearest to a sum. */
import { get } from "./api.js";
import { h, replace, segments, word } from "./dom.js";
import { shown } from "./format.js";
import { tell } from "./notice.js";
import { Refused } from "./refused.js";
import { note, wordsAddress } from "./route.js";
import { line, table } from "./table.js";
import { WordMap } from "./wordmap.js";

/** @typedef {import("./types.js").Near} Near */
/** @typedef {import("./types.js").Spot} Spot */
/** @typedef {import("./types.js").Drawn} Drawn */
/** What the address says; what is null was not asked for. @typedef {{side: string|null, words: string|null, word: string|null, sum: string|null}} Wanted */

/** @type {Record<string, string>} */
const SIDES = { source: "reads", target: "says" };

/** @param {string} model @param {URLSearchParams} query @returns {Promise<import("./inspector.js").Screen>} */
export async function vocabulary(model, query) {
  const wanted = Object.fromEntries(["side", "words", "word", "sum"].map((name) => [name, query.get(name) || null]));
  const screen = new Vocabulary(model, /** @type {Wanted} */ (wanted));
  await screen.open();
  return {
    node: screen.node,
    title: `Words of ${screen.name}`,
    model,
    redraw: () => {},
    leave: () => screen.watcher.disconnect(),
    key: () => false,
  };
}

class Vocabulary {
  /** @param {string} model @param {Wanted} wanted */
  constructor(model, wanted) {
    this.model = model;
    this.wanted = wanted;
    this.name = "";
    /** @type {WordMap|null} */
    this.map = null;
    this.title = h("h1", {});
    this.told = h("p", { class: "muted" });
    this.side = h("div", { class: "row" });
    this.turn = 0;
    this.stage = h("div", { class: "map-stage" });
    this.readout = h("output", { class: "readout" });
    this.share = h("p", { class: "muted small" });
    this.watcher = new ResizeObserver(() => this.picture());
    this.watcher.observe(this.stage);
    this.words = new Field("Words on the map", "Draw", "some of the model's own", (words) =>
      this.set({ words }, () => this.drawMap()),
    );
    this.word = new Field("Word", "Find", "a word", (text) => this.look(text));
    this.sum = new Field("Sum of words", "Calculate", "king - man + woman", (sum) =>
      this.set({ sum }, () => this.drawSum()),
    );
    this.node = this.frame();
  }

  frame() {
    const lead = "The words that point most nearly the way of a sum such as king - man + woman.";
    return h(
      "main",
      { class: "wide", tabindex: "-1" },
      h("div", { class: "row" }, h("div", {}, this.title, this.told), this.side),
      h(
        "div",
        { class: "words" },
        h(
          "section",
          { class: "card" },
          h("h2", {}, "Map"),
          this.words.node,
          this.stage,
          this.readout,
          this.share,
        ),
        h(
          "div",
          { class: "stack" },
          h("section", { class: "card" }, h("h2", {}, "Neighbours"), this.word.node, this.word.found),
          h(
            "section",
            { class: "card" },
            h("h2", {}, "Sum"),
            h("p", { class: "muted small" }, lead),
            this.sum.node,
            this.sum.found,
          ),
        ),
      ),
    );
  }

  /** A model that is not there, or has no words, is told instead of the screen. */
  async open() {
    const mine = ++this.turn;
    /** @type {Drawn} */
    const plain = await this.ask("map", {});
    if (mine !== this.turn) return;
    this.head(plain);
    if (this.wanted.words) await this.drawMap();
    else this.drawn(plain);
    this.wanted.word ??= (this.map?.spots ?? plain.words)[0].word;
    await Promise.all([this.drawNear(), this.drawSum()]);
  }

  /** @param {Drawn} told */
  head({ model, side, sides, size, width }) {
    this.name = model.name;
    this.wanted.side = sides.length > 1 ? side : null;
    replace(this.title, "Words of ", word(model.name));
    const step = model.step.toLocaleString("en");
    this.told.textContent = `${size.toLocaleString("en")} words, ${width} numbers each, step ${step}`;
    const named = sides.map((value) => ({ value, text: SIDES[value] }));
    const choose = (/** @type {string} */ chosen) =>
      this.set({ side: chosen, words: null, word: null, sum: null }, () => {
        for (const field of [this.words, this.word, this.sum]) field.empty(); // answers about the other side come too late
        return this.open().catch(tell);
      });
    const choices = () => [h("span", { class: "muted" }, "Words that it"), segments("Words that it", named, side, choose)];
    replace(this.side, ...(sides.length > 1 ? choices() : []));
  }

  /** @param {string} what @param {Record<string, string>} query */
  ask(what, query) {
    const asked = new URLSearchParams(this.wanted.side ? { side: this.wanted.side, ...query } : query);
    return get(`embeddings/${encodeURIComponent(this.model)}/${what}?${asked}`);
  }

  /** @param {Partial<Wanted>} changes @param {() => Promise<void>} draw @returns {Promise<void>} */
  set(changes, draw) {
    Object.assign(this.wanted, changes);
    note(wordsAddress(this.model, this.wanted));
    return draw();
  }

  async drawMap() {
    this.words.input.value = this.wanted.words ?? "";
    await this.words.answered(this.ask("map", { words: this.wanted.words ?? "" }), (told) => this.drawn(told));
  }

  /** @param {Drawn} told */
  drawn({ words, shares }) {
    if (!this.wanted.words) this.words.input.value = words.map((spot) => spot.shown).join(" ");
    const point = (/** @type {Spot} */ spot) =>
      replace(this.readout, word(spot.shown), ` across ${shown(spot.x)}, up ${shown(spot.y)}`);
    this.map = new WordMap(words, (spot) => this.look(spot.word).catch(tell), point);
    replace(this.stage, this.map.node);
    replace(this.readout, h("span", { class: "muted" }, "Choose a dot: its neighbours are told."));
    const [across, up] = shares.map((share) => `${(100 * share).toFixed(1)} %`);
    this.share.textContent = `${words.length} words by their two principal components: across ${across}, up ${up} of the variance.`;
    this.picture();
  }

  picture() {
    const width = this.stage.clientWidth;
    if (width && this.map) this.map.draw(width, this.wanted.word);
  }

  /** The neighbours of a word. @param {string|null} wanted @returns {Promise<void>} */
  look(wanted) {
    return this.set({ word: wanted }, () => this.drawNear());
  }

  /** @returns {Promise<void>} */
  async drawNear() {
    const { word: wanted } = this.wanted;
    this.word.input.value = wanted ?? "";
    if (!wanted) return this.word.empty();
    await this.word.answered(this.ask("neighbors", { word: wanted }), (told) => {
      this.wanted.word = told.word;
      this.word.input.value = told.shown;
      const within = this.word.found.contains(document.activeElement);
      replace(this.word.found, this.list(`Neighbours of ${told.shown}`, told.near), this.adding(told));
      if (within) this.word.found.querySelector("button")?.focus(); // who goes from word to word by keyboard goes on
      this.picture();
    });
  }

  /** A word and its neighbours onto the map. @param {{word: string, shown: string, near: Near[]}} told */
  adding(told) {
    const onclick = () => {
      const there = this.words.input.value.split(/\s+/u).filter(Boolean);
      const words = [...new Set([...there, ...[told, ...told.near].filter(typed).map((found) => found.shown)])];
      this.set({ words: words.join(" ") }, () => this.drawMap()).catch(tell);
    };
    return h("p", {}, h("button", { type: "button", class: "small", onclick }, "Put them on the map"));
  }

  /** @returns {Promise<void>} */
  async drawSum() {
    const { sum } = this.wanted;
    this.sum.input.value = sum ?? "";
    if (!sum) return this.sum.empty();
    await this.sum.answered(this.ask("analogy", { sum }), (told) =>
      replace(this.sum.found, this.list(`Nearest to ${told.sum}`, told.near)),
    );
  }

  /** @param {string} label @param {Near[]} near */
  list(label, near) {
    const rows = near.map((found) => {
      const onclick = () => this.look(found.word).catch(tell);
      const name = h("button", { type: "button", class: "cell", onclick }, word(found.shown));
      const bar = h("span", { class: found.cosine < 0 ? "meter against" : "meter" });
      bar.style.width = `${Math.round(96 * Math.min(1, Math.abs(found.cosine)))}px`;
      return line(name, [shown(found.cosine), bar]);
    });
    return table(label, ["word", "cosine", ""], rows, { kind: "numbers near" });
  }
}

/** Whether a word can be typed as it is shown, such as ␣sea, among others. @param {{word: string, shown: string}} found */
function typed(found) {
  return found.shown.replace(/^␣/u, " ") === found.word && !/\s/u.test(found.shown);
}

/** A field with a button, and what is wrong with what stands in it. */
class Field {
  /** @param {string} label @param {string} verb @param {string} example @param {(text: string|null) => Promise<void>} onask */
  constructor(label, verb, example, onask) {
    this.turn = 0;
    this.input = h("input", {
      type: "text",
      "aria-label": label,
      dir: "auto",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      maxlength: 2000,
      placeholder: example,
    });
    this.wrong = h("p", { class: "bad", role: "alert" });
    this.found = h("div", { "aria-live": "polite" });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      onask(this.input.value.trim() || null).catch(tell);
    };
    this.node = h(
      "form",
      { onsubmit },
      h("div", { class: "row word-field" }, this.input, h("button", { type: "submit" }, verb)),
      this.wrong,
    );
  }

  empty() {
    this.turn++;
    replace(this.wrong);
    replace(this.found);
  }

  /** Do something with the answer to the last question; an earlier one that comes later is left. @param {Promise<any>} asked @param {(told: any) => void} act */
  async answered(asked, act) {
    const mine = ++this.turn;
    try {
      const told = await asked;
      if (mine !== this.turn) return;
      replace(this.wrong);
      act(told);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (mine !== this.turn) return;
      this.empty();
      replace(this.wrong, error.message);
    }
  }
}
