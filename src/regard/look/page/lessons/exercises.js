// @ts-check
/** Exercises of a lesson: a question, a field for the answer, and a check by the server. */
import { post } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { showError } from "../core/notice.js";

/** @typedef {{right?: boolean, message?: string, hint?: string, solution?: string, changes?: Record<string, any>}} Result */
/** @typedef {{name: string, exercises: string[], chosen: Record<string, string|string[]>}} Questions */

/** @param {Questions} lesson */
export function exercises(lesson) {
  return h(
    "section",
    { class: "card lesson-exercises" },
    h("h2", {}, "Exercises"),
    h("ol", {}, ...lesson.exercises.map((prompt, i) => exercise(lesson, prompt, i + 1))),
  );
}

/** @param {Questions} lesson @param {string} prompt @param {number} number */
function exercise(lesson, prompt, number) {
  const result = h("p", { class: "exercise-result", role: "status" });
  const field = h("input", {
    type: "text",
    id: `exercise-${number}`,
    autocomplete: "off",
    spellcheck: "false",
    maxlength: 500,
    "aria-label": `Answer to exercise ${number}`,
  });
  /** @param {string|null} answer */
  const send = async (answer) => {
    const body = { number, answer, chosen: lesson.chosen };
    const found = /** @type {Result} */ (await post(`lessons/${encodeURIComponent(lesson.name)}/exercises`, body));
    replace(result, ...(answer === null ? solution(lesson.name, found) : verdict(found)));
    result.className = `exercise-result ${found.right ? "good" : found.right === false ? "bad" : ""}`;
  };
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (field.value.trim()) send(field.value).catch(showError);
    else field.focus();
  };
  const reveal = h(
    "button",
    {
      type: "button",
      "aria-label": `Show the answer to exercise ${number}`,
      onclick: () => send(null).catch(showError),
    },
    "Show the answer",
  );
  const check = h("button", { type: "submit", "aria-label": `Check the answer to exercise ${number}` }, "Check");
  return h("li", {}, h("p", {}, prompt), h("form", { class: "row", onsubmit }, field, check, reveal), result);
}

/** @param {Result} found */
function verdict(found) {
  const mark = h("span", { "aria-hidden": "true" }, found.right ? "✓ " : "✗ ");
  const hint = found.right || !found.hint ? "" : `; hint: ${found.hint}`;
  return [mark, `${found.message}${hint}`];
}

/** @param {string} name @param {Result} found */
function solution(name, found) {
  const changes = Object.entries(found.changes ?? {});
  const query = new URLSearchParams(changes.map(([key, value]) => [key, JSON.stringify(value)])).toString();
  const link = h("a", { href: `#/learn/${encodeURIComponent(name)}?${query}` }, "the lesson with these inputs");
  return [h("b", {}, found.solution ?? ""), ...(changes.length ? [" · ", link] : [])];
}
