// @ts-check
/** A series that is given to a model: the rows of a CSV file, read in the browser. */
import { h } from "./dom.js";
import { tell } from "./notice.js";
import { Refused } from "./refused.js";

/** The job that reads one. */
export const SERIAL = "forecast";

/** A text where there is little room: a sentence as it is, a series by its size. @param {string|undefined} kind @param {string} text */
export function called(kind, text) {
  if (kind !== SERIAL) return text;
  const [names, ...rows] = text.trim().split("\n");
  const columns = names.split(",").length - 1;
  return `${rows.length} rows of ${columns} ${columns === 1 ? "column" : "columns"}`;
}

/** An answer likewise. @param {string|undefined} kind @param {string} text */
export function answered(kind, text) {
  return kind === SERIAL ? `${text.trim().split("\n").length - 1} rows ahead` : text;
}

export class Series {
  /** @param {number} most characters that may be sent */
  constructor(most) {
    this.most = most;
    this.text = "";
    this.file = h("input", {
      type: "file",
      accept: ".csv,text/csv",
      "aria-label": "Series",
      onchange: () => this.read(),
    });
    this.told = h("span", { class: "muted" });
    this.node = h("span", { class: "series", hidden: true }, this.file, this.told);
  }

  async read() {
    try {
      const file = this.file.files?.[0];
      if (file) this.show(last(await file.text(), this.most));
    } catch {
      tell(new Refused("no-file", "The file cannot be read.", "Choose another one."));
    }
  }

  /** @param {string} text */
  show(text) {
    this.text = text;
    this.told.textContent = text ? called(SERIAL, text) : "";
  }
}

/** The names of the columns and the last rows, as many as fit. @param {string} text @param {number} most */
export function last(text, most) {
  const [names, ...rows] = text
    .replace(/^\ufeff/u, "")
    .trim()
    .split(/\r\n|\r|\n/u);
  let room = most - names.length;
  let first = rows.length;
  while (first > 0 && room > rows[first - 1].length) room -= rows[--first].length + 1;
  return [names, ...rows.slice(first)].join("\n");
}
