// @ts-check
/** What a lesson shows: its heading, its steps with formula and numbers, and what was expected. */
import { h } from "./dom.js";
import { markup } from "./markup.js";
import { named, value } from "./lessonvalue.js";

/** @typedef {import("./lessonvalue.js").Value} Value */
/** @typedef {{title: string, text: string, formula: {tree: any, text: string}|null, operands: Value[], results: Value[]}} Step */
/**
 * @typedef {{about: string, kind: "lecture"|"agreement", holds: boolean, expected_shown: string, found_shown: string,
 *   difference: number|null}} Check
 */
/**
 * @typedef {{name: string, title: string, part: string, learns: string, before: string|null, after: string|null,
 *   changed: string[], inputs: import("./editors.js").Given[], steps: Step[], checks: Check[],
 *   runs: {id: string, name: string}[], chosen: Record<string, string|string[]>}} Lesson
 */
/** @typedef {{making: string[], seconds: number, part: string, title: string, learns: string}} Making */

/** @param {{part: string, title: string, learns: string}} taught */
export function heading(taught) {
  return [
    h("p", { class: "muted crumbs" }, h("a", { href: "#/learn" }, "Lessons"), ` › ${taught.part}`),
    h("h1", {}, taught.title),
    h("p", { class: "lead" }, taught.learns),
  ];
}

/** @param {Step} step @param {number} number @param {string} [followed] */
export function step(step, number, followed) {
  const from = step.operands.map((operand) => named(operand));
  return h(
    "section",
    { class: "card lesson-step", "data-step": number },
    h("h2", { tabindex: "-1" }, h("span", { class: "lesson-number" }, `${number} `), step.title),
    step.text ? h("p", {}, step.text) : null,
    step.formula
      ? h(
          "div",
          { class: "formula", tabindex: "0", role: "group", "aria-label": step.formula.text },
          markup(step.formula.tree, true),
        )
      : null,
    from.length
      ? h(
          "details",
          { class: "lesson-from" },
          h("summary", {}, "from ", ...between(from)),
          ...step.operands.map((one) => value(one)),
        )
      : null,
    h("div", { class: "lesson-results" }, ...step.results.map((one) => value(one, true, followed))),
  );
}

/** @param {Node[]} nodes */
function between(nodes) {
  return nodes.flatMap((node, i) => (i ? [", ", node] : [node]));
}

/** @param {Lesson} taught */
export function checks(taught) {
  const told = taught.checks.map((check) => {
    const [mark, text, kind] = judged(check, taught.changed.length > 0);
    return h("li", { class: kind }, h("span", { "aria-hidden": "true" }, `${mark} `), text);
  });
  return h("section", { class: "card lesson-checks" }, h("h2", {}, "Check"), h("ul", {}, ...told));
}

/** @param {Check} check @param {boolean} changed @returns {[string, string, string]} */
function judged(check, changed) {
  if (check.kind === "agreement") {
    const apart =
      check.difference === 0
        ? "equal"
        : check.difference === null
          ? "not the same"
          : `${check.difference.toExponential(1).replace("-", "−")} apart`;
    return check.holds ? ["✓", `${check.about}: ${apart}`, "good"] : ["✗", `${check.about}: ${apart}`, "bad"];
  }
  if (check.holds) return ["✓", `${check.about}: ${check.expected_shown}`, "good"];
  const text = `${check.about}: ${check.found_shown}; the lesson has ${check.expected_shown}`;
  return changed ? ["·", text, "yours"] : ["✗", text, "bad"];
}

/** @param {Lesson} taught */
export function onward(taught) {
  const link = (/** @type {string|null} */ name, /** @type {string} */ text) =>
    name ? h("a", { href: `#/learn/${encodeURIComponent(name)}` }, text) : h("span", {});
  return h(
    "nav",
    { class: "row lesson-onward", "aria-label": "Other lessons" },
    link(taught.before, "← The lesson before"),
    link(taught.after, "The next lesson →"),
  );
}
