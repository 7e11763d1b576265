// @ts-check
/** Input of a time series: a CSV file, read in the browser. */
import { ApiError } from "../core/api-error.js";
import { h } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { FORECAST } from "../core/route.js";

/** Title of an input: a sentence itself, a time series by its size. @param {string|undefined} kind @param {string} text */
export function inputTitle(kind, text) {
  if (kind !== FORECAST) return text;
  const [names, ...rows] = text.trim().split("\n");
  const columns = names.split(",").length - 1;
  return `${rows.length} rows of ${columns} ${columns === 1 ? "column" : "columns"}`;
}

/** Title of an output. @param {string|undefined} kind @param {string} text */
export function outputTitle(kind, text) {
  return kind === FORECAST ? `${text.trim().split("\n").length - 1} rows ahead` : text;
}

export class CsvInput {
  /** @param {number} limit maximum number of characters @param {() => string|null} example series of the chosen model */
  constructor(limit, example) {
    this.limit = limit;
    this.example = example;
    this.text = "";
    this.file = h("input", {
      type: "file",
      accept: ".csv,text/csv",
      "aria-label": "Series",
      onchange: () => this.read(),
    });
    this.status = h("span", { class: "muted" });
    this.button = h("button", { type: "button", onclick: () => this.showExample() }, "Its own series");
    this.node = h("span", { class: "series", hidden: true }, this.file, this.status, this.button);
  }

  /** Fits the button to a model: not all have a series of their own at hand. */
  adapt() {
    this.button.hidden = this.example() === null;
    this.button.title = "The last rows of the file that the model was trained on";
  }

  showExample() {
    this.file.value = "";
    this.show(this.example() ?? "");
  }

  async read() {
    try {
      const file = this.file.files?.[0];
      if (file) this.show(lastRows(await file.text(), this.limit));
    } catch {
      showError(new ApiError("no-file", "The file cannot be read.", "Choose another one."));
    }
  }

  /** @param {string} text */
  show(text) {
    this.text = text;
    this.status.textContent = text ? inputTitle(FORECAST, text) : "";
  }
}

/** Header and as many of the last rows as fit. @param {string} text @param {number} limit */
export function lastRows(text, limit) {
  const [names, ...rows] = text
    .replace(/^\ufeff/u, "")
    .trim()
    .split(/\r\n|\r|\n/u);
  let room = limit - names.length;
  let first = rows.length;
  while (first > 0 && room > rows[first - 1].length) room -= rows[--first].length + 1;
  return [names, ...rows.slice(first)].join("\n");
}
