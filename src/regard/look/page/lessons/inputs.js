// @ts-check
/** Editors of a lesson's inputs: number, text, choice, list or matrix, or any of them as JSON text. */
import { h, replace, word } from "../core/dom.js";
import { mathFromTree } from "../widgets/formula.js";

/**
 * @typedef {{name: string, sign: string, tree: any, axes: string[], labels: Record<string, string[]>, data: any,
 *   default: any, default_text: string, about: string, choices: string[], changed: boolean}} Input
 */
/** @typedef {(name: string, value: any) => void} OnChange */

const [MAX_CELLS, MAX_LINE] = [256, 36];

export class Inputs {
  /** @param {Input[]} inputs @param {OnChange} onchange */
  constructor(inputs, onchange) {
    this.fields = new Map(inputs.map((input) => [input.name, new Field(input, onchange)]));
    this.node = h("div", { class: "stack" }, ...[...this.fields.values()].map((field) => field.node));
  }

  /** Shows the inputs as the server accepted them. @param {Input[]} inputs */
  update(inputs) {
    for (const input of inputs) this.fields.get(input.name)?.update(input);
  }

  /** Shows an error at the field it names; false if it names none. @param {string} message */
  showError(message) {
    const name = message.split(":")[0];
    for (const field of this.fields.values()) field.showError(null);
    const field = this.fields.get(name);
    field?.showError(message.slice(name.length + 1).trim());
    return Boolean(field);
  }
}

class Field {
  /** @param {Input} input @param {OnChange} onchange */
  constructor(input, onchange) {
    this.input = input;
    this.onchange = onchange;
    this.asText = tooLarge(input.data);
    this.error = h("p", { class: "bad field-error", role: "alert", id: `error-${input.name}`, hidden: true });
    this.changeNote = h("p", { class: "changed-note", hidden: true });
    this.editor = h("div", { class: "editor" });
    this.toggle = h("button", { type: "button", class: "link", onclick: () => this.toggleText() }, "as text");
    this.node = h(
      "div",
      { class: "lesson-field", "data-input": input.name },
      h(
        "p",
        { class: "lesson-label" },
        h("b", {}, mathFromTree(input.tree)),
        input.sign === input.name ? null : h("code", {}, ` ${input.name}`),
        h("span", { class: "muted" }, ` ${input.about}`),
        Array.isArray(input.data) && !tooLarge(input.data) ? h("span", {}, " ", this.toggle) : null,
      ),
      this.editor,
      this.error,
      this.changeNote,
    );
    this.draw(input.data);
  }

  toggleText() {
    this.asText = !this.asText;
    this.toggle.textContent = this.asText ? "as a table" : "as text";
    this.draw(this.input.data);
  }

  /** @param {any} data */
  draw(data) {
    this.elements = /** @type {(HTMLInputElement|HTMLTextAreaElement)[]} */ ([]);
    replace(this.editor, this.asText ? this.textEditor(data) : this.valueEditor(data));
  }

  /** @param {Input} input */
  update(input) {
    const before = this.input;
    this.input = input;
    this.showError(null);
    this.changeNote.hidden = !input.changed;
    this.node.classList.toggle("changed", input.changed);
    this.changeNote.textContent = input.changed ? `changed; the lesson has ${input.default_text}` : "";
    const typing = this.node.contains(document.activeElement);
    if (!typing && JSON.stringify(before.data) !== JSON.stringify(input.data)) this.draw(input.data);
  }

  /** @param {string|null} message */
  showError(message) {
    this.error.hidden = message === null;
    this.error.textContent = message ?? "";
    for (const element of this.elements ?? []) {
      if (message === null) element.removeAttribute("aria-invalid");
      else element.setAttribute("aria-invalid", "true");
    }
  }

  /** @param {any} value */
  send(value) {
    const same = JSON.stringify(value) === JSON.stringify(this.input.default);
    this.onchange(this.input.name, same ? undefined : value);
  }

  /** A list or matrix as JSON, which can also change its size. @param {any} data */
  textEditor(data) {
    const text = h("textarea", {
      "aria-label": `${this.input.name} as text`,
      "aria-describedby": this.error.id,
      rows: Math.min(8, Array.isArray(data[0]) ? data.length + 1 : 2),
      spellcheck: "false",
      oninput: () => this.send(parseJson(text.value)),
    });
    text.value = Array.isArray(data[0])
      ? `[${data.map((/** @type {any} */ row) => JSON.stringify(row)).join(",\n ")}]`
      : JSON.stringify(data);
    return text;
  }

  /** @param {any} data @returns {Node} */
  valueEditor(data) {
    const { axes, labels, choices, name } = this.input;
    if (choices.length) return this.choiceEditor(choices, data);
    if (!axes.length) return this.cell(data, [], name, typeof data === "string");
    const rows = axes.length === 2 ? data : [data];
    const words = typeof rows[0][0] === "string";
    const columnLabels = labels[axes[axes.length - 1]];
    const rowLabels = axes.length === 2 ? labels[axes[0]] : null;
    if (axes.length === 1 && words) return this.textLines(data);
    if (axes.length === 1 && !columnLabels) return this.vectorEditor(data);
    const head = columnLabels
      ? h(
          "tr",
          {},
          rowLabels ? h("td", {}) : null,
          ...columnLabels.map((text) => h("th", { scope: "col" }, word(text))),
        )
      : null;
    const body = rows.map((/** @type {any[]} */ row, /** @type {number} */ i) =>
      h(
        "tr",
        {},
        rowLabels ? h("th", { scope: "row" }, word(rowLabels[i])) : null,
        ...row.map((number, j) =>
          h(
            "td",
            {},
            this.cell(
              number,
              axes.length === 2 ? [i, j] : [j],
              `${name}, ${cellLabel(axes, labels, axes.length === 2 ? [i, j] : [j])}`,
              words,
            ),
          ),
        ),
      ),
    );
    const table = h("table", { class: "cells" }, head ? h("thead", {}, head) : null, h("tbody", {}, ...body));
    table.addEventListener("keydown", (event) => this.move(event, rows[0].length));
    return h("div", { class: "scroll" }, table);
  }

  /** A list of numbers. @param {number[]} data */
  vectorEditor(data) {
    const { axes, labels, name } = this.input;
    const fields = data.map((number, i) => this.cell(number, [i], `${name}, ${cellLabel(axes, labels, [i])}`, false));
    return h("div", { class: "cells vector" }, ...fields);
  }

  /** A list of texts, one per line. @param {string[]} data */
  textLines(data) {
    const { axes, labels, name } = this.input;
    return h(
      "div",
      { class: "stack lines" },
      ...data.map((text, i) => this.cell(text, [i], `${name}, ${cellLabel(axes, labels, [i])}`, true)),
    );
  }

  /** @param {any} data @param {number[]} index @param {string} label @param {boolean} words */
  cell(data, index, label, words) {
    const long = words && !index.length && String(data).length > MAX_LINE;
    const input = h(long ? "textarea" : "input", {
      type: long ? null : "text",
      rows: long ? 2 : null,
      "aria-label": label,
      "aria-describedby": this.error.id,
      inputmode: words ? null : "decimal",
      autocomplete: "off",
      spellcheck: "false",
      dir: words ? "auto" : null,
      class: words ? "words" : "number",
      size: words
        ? Math.max(6, Math.min(40, String(data).length + 1))
        : Math.max(4, Math.min(10, String(data).length + 1)),
      oninput: () => this.send(setAt(this.currentData(), index, words ? input.value : parseNumber(input.value))),
    });
    input.value = words ? data : String(data);
    input.dataset.index = index.join(",");
    this.elements?.push(input);
    return input;
  }

  /** Values of all cells. */
  currentData() {
    let data = structuredClone(this.input.data);
    for (const element of this.elements ?? []) {
      const index = (element.dataset.index ?? "").split(",").filter(Boolean).map(Number);
      data = setAt(data, index, element.classList.contains("words") ? element.value : parseNumber(element.value));
    }
    return data;
  }

  /** @param {string[]} choices @param {string} data */
  choiceEditor(choices, data) {
    const select = h(
      "select",
      { "aria-label": this.input.name, onchange: () => this.send(select.value) },
      ...choices.map((value) => h("option", { value, selected: value === data }, value)),
    );
    return select;
  }

  /** Moves between rows with the up and down keys. @param {KeyboardEvent} event @param {number} columns */
  move(event, columns) {
    const step = event.key === "ArrowDown" ? columns : event.key === "ArrowUp" ? -columns : 0;
    const at = this.elements?.indexOf(/** @type {HTMLInputElement} */ (event.target)) ?? -1;
    const next = step && at >= 0 ? this.elements?.[at + step] : null;
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.select();
  }
}

/** Whether a value has too many numbers for one cell each. @param {any} data */
function tooLarge(data) {
  return Array.isArray(data) && data.length * (Array.isArray(data[0]) ? data[0].length : 1) > MAX_CELLS;
}

/** A number, or the text itself, which the server then refuses with a reason. @param {string} text */
function parseNumber(text) {
  const bare = text.trim().replace("−", "-").replace(",", ".");
  return bare !== "" && Number.isFinite(Number(bare)) ? Number(bare) : text;
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A copy of the data with one item replaced. @param {any} data @param {number[]} index @param {any} item @returns {any} */
function setAt(data, index, item) {
  if (!index.length) return item;
  return data.map((/** @type {any} */ part, /** @type {number} */ i) =>
    i === index[0] ? setAt(part, index.slice(1), item) : part,
  );
}

/** @param {string[]} axes @param {Record<string, string[]>} labels @param {number[]} index */
function cellLabel(axes, labels, index) {
  return axes.map((axis, k) => `${axis} ${labels[axis]?.[index[k]] ?? index[k] + 1}`).join(", ");
}
