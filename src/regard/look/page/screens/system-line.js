// @ts-check
/** The line of systems by year: what was new, file, recipe, result, lesson, and the models of each kind. */
import { h, word } from "../core/dom.js";

/** @typedef {import("../core/types.js").System} System */
/** @typedef {import("../core/types.js").LineEvent} LineEvent */
/** @typedef {import("../core/types.js").SystemLine} SystemLine */

const LEAD =
  "Every system below works here. Open one for its paper, what was new, the file that implements it, and what was measured.";

/** The content of the card. @param {SystemLine} line @param {(model: string) => void} choose @returns {HTMLElement[]} */
export function systemLine(line, choose) {
  const names = new Map(line.entries.map((system) => [system.id, system]));
  const rows = [
    ...line.entries.map((system) => ({ year: system.year, node: systemRow(system, line.parts, names, choose) })),
    ...line.events.map((event) => ({ year: event.year, node: eventRow(event) })),
  ].sort((a, b) => a.year - b.year);
  const legend = line.parts.map((part, number) =>
    h("li", {}, h("span", { class: `dot part${number}`, "aria-hidden": "true" }), part),
  );
  return [
    h("h2", {}, "The line, 1943 to 2023"),
    h("p", { class: "muted" }, LEAD),
    h("ul", { class: "line-legend" }, ...legend),
    h("ol", { class: "line" }, ...rows.map((row) => row.node)),
    h("p", { class: "muted" }, "In a terminal: ", h("code", {}, "regard line")),
  ];
}

/** @param {System} system @param {string[]} parts @param {Map<string, System>} names @param {(model: string) => void} choose */
function systemRow(system, parts, names, choose) {
  const dot = h("span", { class: `dot part${parts.indexOf(system.part)}`, "aria-hidden": "true" });
  const score = (system.result ?? "").split(";")[0].replace(/\.$/, "");
  return h(
    "li",
    {},
    h(
      "details",
      { "data-system": system.id },
      h(
        "summary",
        {},
        h("span", { class: "year" }, system.year),
        dot,
        h("b", {}, system.name),
        h("span", { class: "idea" }, system.idea),
        h("span", { class: "muted score" }, score),
      ),
      h("dl", {}, ...facts(system, names, choose)),
    ),
  );
}

/** @param {System} system @param {Map<string, System>} names @param {(model: string) => void} choose */
function facts(system, names, choose) {
  const before = system.after.map((id) => names.get(id)?.name ?? id).join(", ");
  const lesson = system.lesson && h("a", { href: `#/learn/${encodeURIComponent(system.lesson)}` }, system.lesson);
  const result = system.result && `${system.result}${system.logged ? ` (LOG.md, ${system.logged})` : ""}`;
  const models = system.models.map((model) =>
    h(
      "button",
      { type: "button", "aria-label": `Use ${model.name}`, onclick: () => choose(model.id) },
      word(model.name),
    ),
  );
  /** @type {[string, import("../core/dom.js").Child[]][]} */
  const rows = [
    ["part", [system.part]],
    ["paper", [system.paper]],
    [system.against ? `new against ${system.against}` : "new", [system.new]],
    ["builds on", [before]],
    ["file", [h("code", {}, system.file), `, ${system.lines} lines`]],
    ["recipe", [system.command && h("code", {}, system.command)]],
    ["result", [result || "not measured"]],
    ["lesson", [lesson]],
    ["models here", models],
  ];
  return rows
    .filter(([, content]) => content.some(Boolean))
    .flatMap(([label, content]) => [h("dt", {}, label), h("dd", {}, ...content)]);
}

/** @param {LineEvent} event */
function eventRow(event) {
  const years = event.until ? `${event.year} to ${event.until}` : String(event.year);
  const lesson = event.lesson && h("a", { href: `#/learn/${encodeURIComponent(event.lesson)}` }, "Lesson");
  return h(
    "li",
    { class: event.undisclosed ? "event undisclosed" : "event" },
    h("b", {}, `${years}: ${event.name}`),
    event.undisclosed ? ", undisclosed. " : ". ",
    event.text,
    " ",
    lesson,
  );
}
