// @ts-check
/** Lessons: the list in its order, and one of them. What is computed is computed by the server, in Python. */
import { get } from "./api.js";
import { h } from "./dom.js";
import { lesson } from "./lesson.js";

/** @typedef {{name: string, part: string, title: string, learns: string}} Entry */

/** @param {string|undefined} name @param {URLSearchParams} query @returns {Promise<import("./inspector.js").Screen>} */
export async function learn(name, query) {
  if (name) return lesson(name, query);
  const { lessons } = /** @type {{lessons: Entry[]}} */ (await get("lessons"));
  const parts = [...new Set(lessons.map((entry) => entry.part))];
  return {
    node: h(
      "main",
      { class: "home learn", tabindex: "-1" },
      h("h1", {}, "Lessons"),
      h(
        "p",
        { class: "lead" },
        "How it works, number by number, from a word to a Transformer. Change any number: all that follows is computed anew, by the same code that the models here run on.",
      ),
      ...parts.map((part) => section(part, lessons)),
      h("p", { class: "muted" }, "The same in a terminal: ", h("code", {}, "regard lesson")),
    ),
    title: "Lessons",
    redraw: () => {},
    leave: () => {},
    key: () => false,
  };
}

/** @param {string} part @param {Entry[]} lessons */
function section(part, lessons) {
  const mine = lessons.filter((entry) => entry.part === part);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, part),
    h(
      "ol",
      { class: "lessons", start: lessons.indexOf(mine[0]) + 1 },
      ...mine.map((entry) =>
        h(
          "li",
          {},
          h("a", { href: `#/learn/${encodeURIComponent(entry.name)}` }, entry.title),
          h("span", { class: "muted" }, ` ${entry.learns.split(/(?<=[.?]) /)[0]}`),
        ),
      ),
    ),
  );
}
