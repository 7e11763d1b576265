// @ts-check
/** Word embeddings of a model: map, nearest neighbors, vector arithmetic. */
import { ApiError } from "../core/api-error.js";
import { get } from "../core/api.js";
import { buttonGroup, h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { replaceAddress, wordsAddress } from "../core/route.js";
import { table, tableRow } from "../widgets/table.js";
import { WordMap } from "../widgets/word-map.js";

/** @typedef {import("../core/types.js").Neighbor} Neighbor */
/** @typedef {import("../core/types.js").MapPoint} MapPoint */
/** @typedef {import("../core/types.js").EmbeddingMap} EmbeddingMap */
/** @typedef {{side: string|null, words: string|null, word: string|null, sum: string|null}} Query stored in the address */

/** @param {string} model @param {URLSearchParams} query @returns {Promise<import("../core/types.js").Screen>} */
export async function vocabulary(model, query) {
  const fields = Object.fromEntries(["side", "words", "word", "sum"].map((name) => [name, query.get(name) || null]));
  const screen = new Vocabulary(model, /** @type {Query} */ (fields));
  await screen.open();
  return {
    node: screen.node,
    title: `Words of ${screen.name}`,
    model,
    redraw: () => {},
    leave: () => screen.resizeObserver.disconnect(),
    key: () => false,
  };
}

class Vocabulary {
  /** @param {string} model @param {Query} query */
  constructor(model, query) {
    this.model = model;
    this.query = query;
    this.name = "";
    /** @type {WordMap|null} */
    this.map = null;
    this.title = h("h1", {});
    this.info = h("p", { class: "muted" });
    this.side = h("div", { class: "row" });
    this.requestCount = 0;
    this.stage = h("div", { class: "map-stage" });
    this.readout = h("output", { class: "readout" });
    this.variance = h("p", { class: "muted small" });
    this.resizeObserver = new ResizeObserver(() => this.redrawMap());
    this.resizeObserver.observe(this.stage);
    this.words = new WordField("Words on the map", "Draw", "chosen automatically", (words) =>
      this.set({ words }, () => this.drawMap()),
    );
    this.word = new WordField("Word", "Find", "a word", (text) => this.showNeighbors(text));
    this.sum = new WordField("Sum of words", "Calculate", "king - man + woman", (sum) =>
      this.set({ sum }, () => this.drawSum()),
    );
    this.node = this.frame();
  }

  frame() {
    const lead = "The words nearest to a sum of word vectors, such as king - man + woman.";
    return h(
      "main",
      { class: "wide", tabindex: "-1" },
      h("div", { class: "row" }, h("div", {}, this.title, this.info), this.side),
      h(
        "div",
        { class: "embeddings" },
        h("section", { class: "card" }, h("h2", {}, "Map"), this.words.node, this.stage, this.readout, this.variance),
        h(
          "div",
          { class: "stack" },
          h("section", { class: "card" }, h("h2", {}, "Neighbors"), this.word.node, this.word.result),
          h(
            "section",
            { class: "card" },
            h("h2", {}, "Analogy"),
            h("p", { class: "muted small" }, lead),
            this.sum.node,
            this.sum.result,
          ),
        ),
      ),
    );
  }

  /** Throws for an unknown model or one without word vectors. */
  async open() {
    const request = ++this.requestCount;
    /** @type {EmbeddingMap} */
    const plain = await this.request("map", {});
    if (request !== this.requestCount) return;
    this.showHeader(plain);
    if (this.query.words) await this.drawMap();
    else this.showMap(plain);
    this.query.word ??= (this.map?.points ?? plain.words)[0].word;
    await Promise.all([this.drawNeighbors(), this.drawSum()]);
  }

  /** @param {EmbeddingMap} map */
  showHeader({ model, side, sides, size, width }) {
    this.name = model.name;
    this.query.side = sides.length > 1 ? side : null;
    replace(this.title, "Words of ", word(model.name));
    const step = model.step.toLocaleString("en");
    this.info.textContent = `${size.toLocaleString("en")} words, ${width} dimensions, step ${step}`;
    const named = sides.map((value) => ({ value, text: value }));
    const choose = (/** @type {string} */ chosen) =>
      this.set({ side: chosen, words: null, word: null, sum: null }, () => {
        for (const field of [this.words, this.word, this.sum]) field.clear(); // late responses for the other side are dropped
        return this.open().catch(showError);
      });
    const choices = () => [h("span", { class: "muted" }, "Vocabulary"), buttonGroup("Vocabulary", named, side, choose)];
    replace(this.side, ...(sides.length > 1 ? choices() : []));
  }

  /** @param {string} what @param {Record<string, string>} query */
  request(what, query) {
    const search = new URLSearchParams(this.query.side ? { side: this.query.side, ...query } : query);
    return get(`embeddings/${encodeURIComponent(this.model)}/${what}?${search}`);
  }

  /** @param {Partial<Query>} changes @param {() => Promise<void>} draw @returns {Promise<void>} */
  set(changes, draw) {
    Object.assign(this.query, changes);
    replaceAddress(wordsAddress(this.model, this.query));
    return draw();
  }

  async drawMap() {
    this.words.input.value = this.query.words ?? "";
    await this.words.show(this.request("map", { words: this.query.words ?? "" }), (map) => this.showMap(map));
  }

  /** @param {EmbeddingMap} map */
  showMap({ words, explained_variance }) {
    if (!this.query.words) this.words.input.value = words.map((point) => point.label).join(" ");
    const showPoint = (/** @type {MapPoint} */ point) =>
      replace(this.readout, word(point.label), ` x ${formatNumber(point.x)}, y ${formatNumber(point.y)}`);
    this.map = new WordMap(words, (point) => this.showNeighbors(point.word).catch(showError), showPoint);
    replace(this.stage, this.map.node);
    replace(this.readout, h("span", { class: "muted" }, "Choose a dot to list its neighbors."));
    const [across, up] = explained_variance.map((share) => `${(100 * share).toFixed(1)} %`);
    this.variance.textContent = `${words.length} words on their two principal components: horizontal ${across}, vertical ${up} of the variance.`;
    this.redrawMap();
  }

  redrawMap() {
    const width = this.stage.clientWidth;
    if (width && this.map) this.map.draw(width, this.query.word);
  }

  /** @param {string|null} text @returns {Promise<void>} */
  showNeighbors(text) {
    return this.set({ word: text }, () => this.drawNeighbors());
  }

  /** @returns {Promise<void>} */
  async drawNeighbors() {
    const { word: text } = this.query;
    this.word.input.value = text ?? "";
    if (!text) return this.word.clear();
    await this.word.show(this.request("neighbors", { word: text }), (found) => {
      this.query.word = found.word;
      this.word.input.value = found.label;
      const within = this.word.result.contains(document.activeElement);
      replace(
        this.word.result,
        this.neighborTable(`Neighbors of ${found.label}`, found.neighbors),
        this.addButton(found),
      );
      if (within) this.word.result.querySelector("button")?.focus(); // keyboard users continue from word to word
      this.redrawMap();
    });
  }

  /** Adds a word and its neighbors to the map. @param {{word: string, label: string, neighbors: Neighbor[]}} found */
  addButton(found) {
    const onclick = () => {
      const present = this.words.input.value.split(/\s+/u).filter(Boolean);
      const words = [
        ...new Set([...present, ...[found, ...found.neighbors].filter(isTypable).map(({ label }) => label)]),
      ];
      this.set({ words: words.join(" ") }, () => this.drawMap()).catch(showError);
    };
    return h("p", {}, h("button", { type: "button", class: "small", onclick }, "Add to the map"));
  }

  /** @returns {Promise<void>} */
  async drawSum() {
    const { sum } = this.query;
    this.sum.input.value = sum ?? "";
    if (!sum) return this.sum.clear();
    await this.sum.show(this.request("analogy", { sum }), (found) =>
      replace(this.sum.result, this.neighborTable(`Nearest to ${found.sum}`, found.neighbors)),
    );
  }

  /** @param {string} label @param {Neighbor[]} near */
  neighborTable(label, near) {
    const rows = near.map((found) => {
      const onclick = () => this.showNeighbors(found.word).catch(showError);
      const name = h("button", { type: "button", class: "cell", onclick }, word(found.label));
      const bar = h("span", { class: found.cosine < 0 ? "meter negative" : "meter" });
      bar.style.width = `${Math.round(96 * Math.min(1, Math.abs(found.cosine)))}px`;
      return tableRow(name, [formatNumber(found.cosine), bar]);
    });
    return table(label, ["word", "cosine", ""], rows, { kind: "numbers neighbors" });
  }
}

/** Whether a word can be typed as it is shown in a list of words. @param {{word: string, label: string}} found */
function isTypable(found) {
  return found.label === found.word.replace(/^ /u, "") && !/\s/u.test(found.label);
}

/** A text field with a button, an error message and a result. */
class WordField {
  /** @param {string} label @param {string} verb @param {string} example @param {(text: string|null) => Promise<void>} submit */
  constructor(label, verb, example, submit) {
    this.requestCount = 0;
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
    this.error = h("p", { class: "bad", role: "alert" });
    this.result = h("div", { "aria-live": "polite" });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      submit(this.input.value.trim() || null).catch(showError);
    };
    this.node = h(
      "form",
      { onsubmit },
      h("div", { class: "row word-field" }, this.input, h("button", { type: "submit" }, verb)),
      this.error,
    );
  }

  clear() {
    this.requestCount++;
    replace(this.error);
    replace(this.result);
  }

  /** Shows the response to the latest request; late responses to earlier ones are dropped. @param {Promise<any>} response @param {(table: any) => void} draw */
  async show(response, draw) {
    const request = ++this.requestCount;
    try {
      const table = await response;
      if (request !== this.requestCount) return;
      replace(this.error);
      draw(table);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (request !== this.requestCount) return;
      this.clear();
      replace(this.error, error.message);
    }
  }
}
