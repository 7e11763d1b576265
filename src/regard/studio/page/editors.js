// @ts-check
/** Fields for the inputs of a lesson: a number, a text, a choice, a list or a matrix; or any of them as one text. */
import { h, replace } from "./dom.js";
import { markup } from "./markup.js";

/**
 * @typedef {{name: string, sign: string, tree: any, axes: string[], labels: Record<string, string[]>, data: any,
 *   default: any, default_shown: string, about: string, choices: string[], changed: boolean}} Given
 */
/** @typedef {(name: string, given: any) => void} Changed */

const [MOST, LONG] = [256, 36];

export class Editors {
  /** @param {Given[]} inputs @param {Changed} changed */
  constructor(inputs, changed) {
    this.fields = new Map(inputs.map((given) => [given.name, new Field(given, changed)]));
    this.node = h("div", { class: "stack" }, ...[...this.fields.values()].map((field) => field.node));
  }

  /** What the server made of them. @param {Given[]} inputs */
  update(inputs) {
    for (const given of inputs) this.fields.get(given.name)?.update(given);
  }

  /** Say what is wrong beside the field that it is about; false if it is about none. @param {string} message */
  complain(message) {
    const name = message.split(":")[0];
    for (const field of this.fields.values()) field.complain(null);
    const field = this.fields.get(name);
    field?.complain(message.slice(name.length + 1).trim());
    return Boolean(field);
  }
}

class Field {
  /** @param {Given} given @param {Changed} changed */
  constructor(given, changed) {
    this.given = given;
    this.changed = changed;
    this.asText = tooLarge(given.data);
    this.wrong = h("p", { class: "bad wrong", role: "alert", id: `wrong-${given.name}`, hidden: true });
    this.yours = h("p", { class: "yours", hidden: true });
    this.editor = h("div", { class: "editor" });
    this.toggle = h("button", { type: "button", class: "link", onclick: () => this.flip() }, "as text");
    this.node = h(
      "div",
      { class: "lesson-field", "data-input": given.name },
      h(
        "p",
        { class: "lesson-label" },
        h("b", {}, markup(given.tree)),
        given.sign === given.name ? null : h("code", {}, ` ${given.name}`),
        h("span", { class: "muted" }, ` ${given.about}`),
        Array.isArray(given.data) && !tooLarge(given.data) ? h("span", {}, " ", this.toggle) : null,
      ),
      this.editor,
      this.wrong,
      this.yours,
    );
    this.draw(given.data);
  }

  flip() {
    this.asText = !this.asText;
    this.toggle.textContent = this.asText ? "as a table" : "as text";
    this.draw(this.given.data);
  }

  /** @param {any} data */
  draw(data) {
    this.inputs = /** @type {(HTMLInputElement|HTMLTextAreaElement)[]} */ ([]);
    replace(this.editor, this.asText ? this.whole(data) : this.shaped(data));
  }

  /** @param {Given} given */
  update(given) {
    const before = this.given;
    this.given = given;
    this.complain(null);
    this.yours.hidden = !given.changed;
    this.node.classList.toggle("changed", given.changed);
    this.yours.textContent = given.changed ? `yours; the lesson has ${given.default_shown}` : "";
    const typing = this.node.contains(document.activeElement);
    if (!typing && JSON.stringify(before.data) !== JSON.stringify(given.data)) this.draw(given.data);
  }

  /** @param {string|null} message */
  complain(message) {
    this.wrong.hidden = message === null;
    this.wrong.textContent = message ?? "";
    for (const input of this.inputs ?? []) {
      if (message === null) input.removeAttribute("aria-invalid");
      else input.setAttribute("aria-invalid", "true");
    }
  }

  /** @param {any} given */
  send(given) {
    const same = JSON.stringify(given) === JSON.stringify(this.given.default);
    this.changed(this.given.name, same ? undefined : given);
  }

  /** The whole of a list or matrix as one text: it may also change its size. @param {any} data */
  whole(data) {
    const text = h("textarea", {
      "aria-label": `${this.given.name} as text`,
      "aria-describedby": this.wrong.id,
      rows: Math.min(8, Array.isArray(data[0]) ? data.length + 1 : 2),
      spellcheck: "false",
      oninput: () => this.send(parsed(text.value)),
    });
    text.value = Array.isArray(data[0])
      ? `[${data.map((/** @type {any} */ row) => JSON.stringify(row)).join(",\n ")}]`
      : JSON.stringify(data);
    return text;
  }

  /** @param {any} data @returns {Node} */
  shaped(data) {
    const { axes, labels, choices, name } = this.given;
    if (choices.length) return this.chosen(choices, data);
    if (!axes.length) return this.cell(data, [], name, typeof data === "string");
    const rows = axes.length === 2 ? data : [data];
    const words = typeof rows[0][0] === "string";
    const across = labels[axes[axes.length - 1]];
    const down = axes.length === 2 ? labels[axes[0]] : null;
    if (axes.length === 1 && words) return this.lines(data);
    if (axes.length === 1 && !across) return this.row(data);
    const head = across
      ? h(
          "tr",
          {},
          down ? h("td", {}) : null,
          ...across.map((word) => h("th", { scope: "col" }, h("bdi", { dir: "auto" }, word))),
        )
      : null;
    const body = rows.map((/** @type {any[]} */ row, /** @type {number} */ i) =>
      h(
        "tr",
        {},
        down ? h("th", { scope: "row" }, h("bdi", { dir: "auto" }, down[i])) : null,
        ...row.map((number, j) =>
          h(
            "td",
            {},
            this.cell(
              number,
              axes.length === 2 ? [i, j] : [j],
              `${name}, ${where(axes, labels, axes.length === 2 ? [i, j] : [j])}`,
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

  /** A list of numbers, as many on a line as fit. @param {number[]} data */
  row(data) {
    const { axes, labels, name } = this.given;
    const fields = data.map((number, i) => this.cell(number, [i], `${name}, ${where(axes, labels, [i])}`, false));
    return h("div", { class: "cells vector" }, ...fields);
  }

  /** A list of texts, one under the other. @param {string[]} data */
  lines(data) {
    const { axes, labels, name } = this.given;
    return h(
      "div",
      { class: "stack lines" },
      ...data.map((text, i) => this.cell(text, [i], `${name}, ${where(axes, labels, [i])}`, true)),
    );
  }

  /** @param {any} data @param {number[]} place @param {string} label @param {boolean} words */
  cell(data, place, label, words) {
    const long = words && !place.length && String(data).length > LONG;
    const input = h(long ? "textarea" : "input", {
      type: long ? null : "text",
      rows: long ? 2 : null,
      "aria-label": label,
      "aria-describedby": this.wrong.id,
      inputmode: words ? null : "decimal",
      autocomplete: "off",
      spellcheck: "false",
      dir: words ? "auto" : null,
      class: words ? "words" : "number",
      size: words
        ? Math.max(6, Math.min(40, String(data).length + 1))
        : Math.max(4, Math.min(10, String(data).length + 1)),
      oninput: () => this.send(placed(this.latest(), place, words ? input.value : typed(input.value))),
    });
    input.value = words ? data : String(data);
    input.dataset.place = place.join(",");
    this.inputs?.push(input);
    return input;
  }

  /** What all fields say now. */
  latest() {
    let data = structuredClone(this.given.data);
    for (const input of this.inputs ?? []) {
      const place = (input.dataset.place ?? "").split(",").filter(Boolean).map(Number);
      data = placed(data, place, input.classList.contains("words") ? input.value : typed(input.value));
    }
    return data;
  }

  /** @param {string[]} choices @param {string} data */
  chosen(choices, data) {
    const select = h(
      "select",
      { "aria-label": this.given.name, onchange: () => this.send(select.value) },
      ...choices.map((one) => h("option", { value: one, selected: one === data }, one)),
    );
    return select;
  }

  /** Up and down go from row to row. @param {KeyboardEvent} event @param {number} columns */
  move(event, columns) {
    const step = event.key === "ArrowDown" ? columns : event.key === "ArrowUp" ? -columns : 0;
    const at = this.inputs?.indexOf(/** @type {HTMLInputElement} */ (event.target)) ?? -1;
    const next = step && at >= 0 ? this.inputs?.[at + step] : null;
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.select();
  }
}

/** Whether a value has too many numbers for a field each. @param {any} data */
function tooLarge(data) {
  return Array.isArray(data) && data.length * (Array.isArray(data[0]) ? data[0].length : 1) > MOST;
}

/** A number if it is one; else what was typed, and the server says what is wrong with it. @param {string} text */
function typed(text) {
  const bare = text.trim().replace("−", "-").replace(",", ".");
  return bare !== "" && Number.isFinite(Number(bare)) ? Number(bare) : text;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A copy of data with something else at a place. @param {any} data @param {number[]} place @param {any} item @returns {any} */
function placed(data, place, item) {
  if (!place.length) return item;
  return data.map((/** @type {any} */ part, /** @type {number} */ i) =>
    i === place[0] ? placed(part, place.slice(1), item) : part,
  );
}

/** @param {string[]} axes @param {Record<string, string[]>} labels @param {number[]} place */
function where(axes, labels, place) {
  return axes.map((axis, k) => `${axis} ${labels[axis]?.[place[k]] ?? place[k] + 1}`).join(", ");
}
