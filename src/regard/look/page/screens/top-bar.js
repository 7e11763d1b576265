// @ts-check
/** Top bar: model, input, Run, theme, keys. */
import { get, post } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { clearNotices, showError } from "../core/notice.js";
import { parseRoute, traceAddress, VECTORS, wordsAddress } from "../core/route.js";
import { toggleTheme } from "../core/theme.js";
import { CsvInput, FORECAST } from "../widgets/csv-input.js";
import { ImageInput } from "../widgets/image-input.js";
import { helpDialog } from "../widgets/keys.js";

/** @typedef {import("../core/types.js").Model} Model */
/** @typedef {import("../core/types.js").Info} Info */

/** Tasks that answer in one pass, without a search. */
const SINGLE_PASS = ["classify", "label", "fill", "regress", FORECAST, VECTORS];
/** A text with masks, for models that fill them. */
const MASKED = "Let's make [MASK] chicken! [SEP] It [MASK] great with orange sauce";

export class TopBar {
  /** @param {Info} info @param {() => void} onThemeChange */
  constructor(info, onThemeChange) {
    this.info = info;
    this.models = h("select", { "aria-label": "Model", name: "model", onchange: () => this.adaptToModel() });
    /** @type {Map<string, Model>} */
    this.known = new Map();
    this.series = new CsvInput(info.limits.series);
    this.image = new ImageInput(info.limits.image);
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
      h("option", { value: "" }, "beam: default"),
      ...[1, 2, 4, 8].map((width) => h("option", { value: width }, width === 1 ? "greedy" : `beam ${width}`)),
    );
    this.button = h("button", { type: "submit", class: "primary" }, "Run");
    this.form = h(
      "form",
      {
        class: "run-form",
        role: "search",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.run();
        },
      },
      this.models,
      this.input,
      this.series.node,
      this.image.node,
      this.beam,
      this.button,
    );
    this.node = h(
      "header",
      { class: "topbar" },
      h("a", { class: "brand", href: "#/" }, "regard"),
      h("a", { class: "learn-link", href: "#/learn" }, "Lessons"),
      this.form,
      ...commonButtons(onThemeChange),
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
    this.known = new Map(usable.map((model) => [model.id, model]));
    this.adaptToModel();
    this.button.disabled = !usable.length;
  }

  /** Whether the chosen model reads a time series. */
  get isForecast() {
    return this.known.get(this.models.value)?.task === FORECAST;
  }

  /** Whether the chosen model has word vectors and reads no sentences. */
  get isVectors() {
    return this.known.get(this.models.value)?.task === VECTORS;
  }

  /** Whether the chosen model reads an image. */
  get isImage() {
    return this.known.get(this.models.value)?.image === true;
  }

  /** Task of the chosen model. */
  get task() {
    return this.known.get(this.models.value)?.task ?? "";
  }

  /** Text for the chosen model if none is typed. */
  get example() {
    return this.task === "fill" ? MASKED : this.info.sentence;
  }

  /** Shows the kind of input that the chosen model reads. */
  adaptToModel() {
    this.input.hidden = this.isForecast || this.isImage;
    this.beam.hidden = SINGLE_PASS.includes(this.task) || this.isImage;
    this.image.node.hidden = !this.isImage;
    this.image.adapt(this.task, this.known.get(this.models.value)?.clip === true);
    this.series.node.hidden = !this.isForecast;
    this.input.placeholder = this.isVectors ? "a word, or king - man + woman" : this.example;
    this.input.setAttribute("aria-label", this.isVectors ? "Word or sum" : "Sentence");
  }

  /** @param {string} model */
  pick(model) {
    if ([...this.models.options].some((option) => option.value === model)) this.models.value = model;
    this.adaptToModel();
  }

  /** @param {string} model */
  choose(model) {
    this.pick(model);
    if (this.isVectors) location.hash = wordsAddress(this.models.value);
    else (this.isForecast ? this.series.file : this.isImage ? this.image.file : this.input).focus();
  }

  /** Fills in the input of a trace, to be changed and run again. @param {import("../core/types.js").Header} header */
  show(header) {
    if (header.kind === FORECAST) this.series.show(header.text);
    else if (header.tensors.some((tensor) => tensor.name === "pixels")) this.image.show(header.text);
    else this.input.value = header.text;
    this.pick(header.model.id);
  }

  /** What is sent to the server beside the model. */
  request() {
    if (this.isImage) return this.image.request;
    const text = this.isForecast ? this.series.text : this.input.value.trim() || this.example;
    const beam = this.beam.value && !this.beam.hidden ? { beam: Number(this.beam.value) } : {};
    return { text, decode: beam };
  }

  async run() {
    if (this.isVectors) {
      location.hash = wordsAddress(this.models.value, wordsQuery(this.input.value.trim()));
      return;
    }
    this.button.disabled = true;
    this.button.textContent = "Running";
    clearNotices();
    try {
      const header = await post("traces", { model: this.models.value, ...this.request() });
      const { query } = parseRoute();
      location.hash = traceAddress(header.id, { tab: query.get("tab"), tour: query.get("tour") });
    } catch (error) {
      showError(error);
    }
    this.button.textContent = "Run";
    this.button.disabled = false;
  }
}

/** Query for one word (neighbors), a sum (analogy) or several words (map). @param {string} text */
function wordsQuery(text) {
  if (!/\s/u.test(text)) return { word: text || null };
  return /(^|\s)[-+−–]\s/u.test(text) ? { sum: text } : { words: text };
}

/** Buttons of every page: theme and keys. @param {() => void} themed */
export function commonButtons(themed) {
  const toggle = () => {
    toggleTheme();
    themed();
  };
  const iconProps = (/** @type {string} */ name) => ({ type: "button", class: "icon", "aria-label": name });
  return [
    h("button", { ...iconProps("Light or dark theme"), title: "Light or dark theme", onclick: toggle }, "◐"),
    h("button", { ...iconProps("Keys"), title: "Keys (?)", onclick: helpDialog }, "?"),
  ];
}
