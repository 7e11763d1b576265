// @ts-check
/** The bar on top: which model, which sentence, Run; light or dark; the keys. */
import { get, post } from "./api.js";
import { h, replace } from "./dom.js";
import { helpDialog } from "./help.js";
import { hush, tell } from "./notice.js";
import { route, traceAddress, WORDY, wordsAddress } from "./route.js";
import { SERIAL, Series } from "./series.js";
import { toggleTheme } from "./theme.js";

/** @typedef {import("./types.js").Model} Model */
/** @typedef {import("./types.js").Info} Info */

export class TopBar {
  /** @param {Info} info @param {() => void} themed */
  constructor(info, themed) {
    this.info = info;
    this.models = h("select", { "aria-label": "Model", name: "model", onchange: () => this.fit() });
    /** @type {Map<string, string|null>} */
    this.tasks = new Map();
    this.series = new Series(info.limits.series);
    this.input = h("input", {
      type: "text",
      "aria-label": "Sentence",
      name: "text",
      dir: "auto",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: info.limits.characters,
      placeholder: info.sentence,
    });
    this.beam = h(
      "select",
      { "aria-label": "Beam", name: "beam" },
      h("option", { value: "" }, "beam: as trained"),
      ...[1, 2, 4, 8].map((width) => h("option", { value: width }, width === 1 ? "greedy" : `beam ${width}`)),
    );
    this.button = h("button", { type: "submit", class: "primary" }, "Run");
    this.form = h(
      "form",
      {
        class: "ask",
        role: "search",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.run();
        },
      },
      this.models,
      this.input,
      this.series.node,
      this.beam,
      this.button,
    );
    this.node = h(
      "header",
      { class: "topbar" },
      h("a", { class: "brand", href: "#/" }, "regard"),
      h("a", { class: "learn-link", href: "#/learn" }, "Lessons"),
      this.form,
      ...always(themed),
    );
  }

  async refresh() {
    const { models } = await get("models");
    const usable = /** @type {Model[]} */ (models).filter((model) => model.usable);
    const before = this.models.value;
    replace(
      this.models,
      ...(usable.length
        ? usable.map((model) => h("option", { value: model.id }, model.name))
        : [h("option", { value: "" }, "no model yet")]),
    );
    if (usable.some((model) => model.id === before)) this.models.value = before;
    this.tasks = new Map(usable.map((model) => [model.id, model.task]));
    this.fit();
    this.button.disabled = !usable.length;
  }

  /** Whether the chosen model reads a series. */
  get serial() {
    return this.tasks.get(this.models.value) === SERIAL;
  }

  /** Whether the chosen model reads no sentence, and has words to look at. */
  get wordy() {
    return this.tasks.get(this.models.value) === WORDY;
  }

  /** A sentence, a file, or words, as the chosen model reads. */
  fit() {
    this.input.hidden = this.serial;
    this.beam.hidden = this.serial || this.wordy;
    this.series.node.hidden = !this.serial;
    this.input.placeholder = this.wordy ? "a word, or king - man + woman" : this.info.sentence;
    this.input.setAttribute("aria-label", this.wordy ? "Word or sum" : "Sentence");
  }

  /** @param {string} model */
  pick(model) {
    if ([...this.models.options].some((option) => option.value === model)) this.models.value = model;
    this.fit();
  }

  /** @param {string} model */
  choose(model) {
    this.pick(model);
    if (this.wordy) location.hash = wordsAddress(this.models.value);
    else (this.serial ? this.series.file : this.input).focus();
  }

  /** What a trace was made from, to be changed and run again. @param {import("./types.js").Header} header */
  show(header) {
    if (header.kind === SERIAL) this.series.show(header.text);
    else this.input.value = header.text;
    this.pick(header.model.id);
  }

  async run() {
    if (this.wordy) {
      location.hash = wordsAddress(this.models.value, asked(this.input.value.trim()));
      return;
    }
    const text = this.serial ? this.series.text : this.input.value.trim() || this.info.sentence;
    this.button.disabled = true;
    this.button.textContent = "Running";
    hush();
    try {
      const beam = this.beam.value && !this.serial ? { beam: Number(this.beam.value) } : {};
      const header = await post("traces", { model: this.models.value, text, decode: beam });
      location.hash = traceAddress(header.id, { tab: route().query.get("tab") });
    } catch (error) {
      tell(error);
    }
    this.button.textContent = "Run";
    this.button.disabled = false;
  }
}

/** What is asked of words: the neighbours of one, a sum, or a map of several. @param {string} text */
function asked(text) {
  if (!/\s/u.test(text)) return { word: text || null };
  return /(^|\s)[-+−–]\s/u.test(text) ? { sum: text } : { words: text };
}

/** What every page has on top: light or dark, and the keys. @param {() => void} themed */
export function always(themed) {
  const toggle = () => {
    toggleTheme();
    themed();
  };
  const named = (/** @type {string} */ name) => ({ type: "button", class: "icon", "aria-label": name });
  return [
    h("button", { ...named("Light or dark"), title: "Light or dark", onclick: toggle }, "◐"),
    h("button", { ...named("Keys"), title: "Keys (?)", onclick: helpDialog }, "?"),
  ];
}
