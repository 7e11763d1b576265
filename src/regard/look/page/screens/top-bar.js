// @ts-check
/** Top bar: model, input, Run, theme, keys. */
import { get, post } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { clearNotices, showError } from "../core/notice.js";
import { FORECAST, parseRoute, traceAddress, VECTORS, wordsAddress } from "../core/route.js";
import { toggleTheme } from "../core/theme.js";
import { CsvInput } from "../widgets/csv-input.js";
import { ImageInput } from "../widgets/image-input.js";
import { helpDialog } from "../widgets/keys.js";
import { RunProgress } from "../widgets/run-progress.js";

/** @typedef {import("../core/types.js").Model} Model */
/** @typedef {import("../core/types.js").Info} Info */

/** Beams to choose from. */
const BEAMS = [1, 2, 4, 8];
/** What a text of each task is called. */
const INPUTS = /** @type {Record<string, string>} */ ({
  generate: "Beginning of a text",
  fill: "Text with [MASK]",
  vectors: "Word or sum",
});

export class TopBar {
  /** @param {Info} info @param {() => void} onThemeChange */
  constructor(info, onThemeChange) {
    this.info = info;
    this.models = h("select", { "aria-label": "Model", name: "model", onchange: () => this.adaptToModel() });
    /** @type {Map<string, Model>} */
    this.known = new Map();
    /** @type {Map<string, string|null>} example input of each model */
    this.examples = new Map();
    this.progress = new RunProgress();
    this.series = new CsvInput(info.limits.series, () => this.examples.get(this.models.value) ?? null);
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
    this.beam = h("select", { "aria-label": "Decoding", name: "beam" });
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
    this.node.append(this.progress.node);
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
    return this.examples.get(this.models.value) ?? (this.task === "translate" ? this.info.sentence : "");
  }

  /** Loads an example input of the chosen model, once. */
  async loadExample() {
    const model = this.models.value;
    if (!model || this.examples.has(model) || this.isVectors || this.isImage) return;
    this.examples.set(model, null);
    const { text } = await get(`models/${encodeURIComponent(model)}/example`);
    this.examples.set(model, text);
    if (this.models.value === model) this.adaptToModel();
  }

  /** Lists the ways of decoding that the chosen model has; that of its recipe is first. */
  listBeams() {
    const usual = this.known.get(this.models.value)?.search ?? null;
    const before = this.beam.value;
    const named = BEAMS.map((width) => ({ value: String(width), text: width === 1 ? "greedy" : `beam ${width}` }));
    replace(
      this.beam,
      h("option", { value: "" }, `${usual ?? ""} (recipe)`),
      ...named.map(({ value, text }) => h("option", { value }, text)),
    );
    this.beam.value = before;
    this.beam.hidden = usual === null;
  }

  /** Shows the kind of input that the chosen model reads. */
  adaptToModel() {
    this.input.hidden = this.isForecast || this.isImage;
    this.listBeams();
    this.image.node.hidden = !this.isImage;
    this.image.adapt(this.task, this.known.get(this.models.value)?.clip === true);
    this.series.node.hidden = !this.isForecast;
    this.series.adapt();
    this.input.placeholder = this.isVectors ? "a word, or king - man + woman" : this.isForecast ? "" : this.example;
    this.input.setAttribute("aria-label", INPUTS[this.task] ?? "Sentence");
    this.loadExample().catch(showError);
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
    this.pick(header.model.id);
    if (header.kind === FORECAST) this.series.show(header.text);
    else if (header.tensors.some((tensor) => tensor.name === "pixels")) this.image.show(header.text);
    else this.input.value = header.text;
    this.beam.value = String(header.decode?.beam ?? "");
    if (this.beam.selectedIndex < 0) this.beam.value = "";
  }

  /** What is sent to the server beside the model. */
  request() {
    const decode = this.beam.value && !this.beam.hidden ? { beam: Number(this.beam.value) } : {};
    if (this.isImage) return { ...this.image.request, decode };
    return { text: this.isForecast ? this.series.text : this.input.value.trim() || this.example, decode };
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
      const [model, request] = [this.models.value, this.request()];
      await this.loadModel(model);
      this.progress.show("Running the model");
      const header = await post("traces", { model, ...request });
      const { query } = parseRoute();
      location.hash = traceAddress(header.id, { tab: query.get("tab"), tour: query.get("tour") });
    } catch (error) {
      showError(error);
    }
    this.progress.hide();
    this.button.textContent = "Run";
    this.button.disabled = false;
  }

  /** Loads a model that is not in memory; the first one also waits for the libraries. @param {string} id */
  async loadModel(id) {
    const model = this.known.get(id);
    if (!model || model.loaded) return;
    this.progress.show(`Loading ${model.name}`);
    await post(`models/${encodeURIComponent(id)}/load`, {});
    model.loaded = true;
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
