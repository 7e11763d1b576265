// @ts-check
/** Parts of a lesson: heading, steps with formula and values, checks, links. */
import { h } from "../core/dom.js";
import { mathFromTree } from "../widgets/formula.js";
import { value, valueName } from "./value.js";

/** @typedef {import("./value.js").Value} Value */
/** @typedef {{title: string, text: string, formula: {tree: any, text: string}|null, operands: Value[], results: Value[]}} Step */
/**
 * @typedef {{about: string, kind: "lecture"|"agreement", holds: boolean, expected_text: string, found_text: string,
 *   difference: number|null}} Check
 */
/**
 * @typedef {{name: string, title: string, part: string, summary: string, previous: string|null, next: string|null,
 *   changed: string[], inputs: import("./inputs.js").Input[], steps: Step[], checks: Check[],
 *   runs: {id: string, name: string}[], chosen: Record<string, string|string[]>, exercises: string[],
 *   figure: import("./figure.js").Figure, reading: {source: string, terms: string[], papers: string[]}}} Lesson
 */
/** @typedef {{training: string[], seconds: number|null, part: string, title: string, summary: string}} TrainingStatus */

/** @param {{part: string, title: string, summary: string}} lesson */
export function heading(lesson) {
  return [
    h("p", { class: "muted crumbs" }, h("a", { href: "#/learn" }, "Lessons"), ` › ${lesson.part}`),
    h("h1", {}, lesson.title),
    h("p", { class: "lead" }, lesson.summary),
  ];
}

/** @param {Step} step @param {number} number @param {string} [selectedWord] */
export function step(step, number, selectedWord) {
  const from = step.operands.map((operand) => valueName(operand));
  return h(
    "section",
    { class: "card lesson-step", "data-step": number },
    h("h2", { tabindex: "-1" }, h("span", { class: "lesson-number" }, `${number} `), step.title),
    step.text ? h("p", {}, step.text) : null,
    step.formula
      ? h(
          "div",
          { class: "formula", tabindex: "0", role: "group", "aria-label": step.formula.text },
          mathFromTree(step.formula.tree, true),
        )
      : null,
    from.length
      ? h(
          "details",
          { class: "lesson-operands" },
          h("summary", {}, "from ", ...joinWithCommas(from)),
          ...step.operands.map((one) => value(one)),
        )
      : null,
    h("div", { class: "lesson-results" }, ...step.results.map((one) => value(one, true, selectedWord))),
  );
}

/** @param {Node[]} nodes */
function joinWithCommas(nodes) {
  return nodes.flatMap((node, i) => (i ? [", ", node] : [node]));
}

/** @param {Lesson} lesson */
export function checks(lesson) {
  const items = lesson.checks.map((check) => {
    const [mark, text, kind] = checkResult(check, lesson.changed.length > 0);
    return h("li", { class: kind }, h("span", { "aria-hidden": "true" }, `${mark} `), text);
  });
  return h("section", { class: "card lesson-checks" }, h("h2", {}, "Check"), h("ul", {}, ...items));
}

/** @param {Check} check @param {boolean} changed @returns {[string, string, string]} */
function checkResult(check, changed) {
  if (check.kind === "agreement") {
    const apart =
      check.difference === 0
        ? "equal"
        : check.difference === null
          ? "different"
          : `${check.difference.toExponential(1).replace("-", "−")} apart`;
    return check.holds ? ["✓", `${check.about}: ${apart}`, "good"] : ["✗", `${check.about}: ${apart}`, "bad"];
  }
  if (check.holds) return ["✓", `${check.about}: ${check.expected_text}`, "good"];
  const text = `${check.about}: ${check.found_text}; expected ${check.expected_text}`;
  return changed ? ["·", text, "changed-note"] : ["✗", text, "bad"];
}

/** Item of the course, usual terms and papers. @param {Lesson} lesson */
export function reading(lesson) {
  const { source, terms, papers } = lesson.reading;
  const rows = [
    ["In the course", [source]],
    ["Usual terms", [terms.join(", ")]],
    ["Papers", papers],
  ];
  const list = /** @type {[string, string[]][]} */ (rows).flatMap(([name, texts]) => [
    h("dt", {}, name),
    ...texts.map((text) => h("dd", {}, text)),
  ]);
  return h("section", { class: "card lesson-reading" }, h("h2", {}, "Read on"), h("dl", {}, ...list));
}

/** @param {Lesson} lesson */
export function lessonLinks(lesson) {
  const link = (/** @type {string|null} */ name, /** @type {string} */ text) =>
    name ? h("a", { href: `#/learn/${encodeURIComponent(name)}` }, text) : h("span", {});
  return h(
    "nav",
    { class: "row lesson-links", "aria-label": "Other lessons" },
    link(lesson.previous, "← Previous lesson"),
    link(lesson.next, "Next lesson →"),
  );
}
