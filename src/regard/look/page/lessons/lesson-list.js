// @ts-check
/** The list of lessons, in their order. */
import { get } from "../core/api.js";
import { h } from "../core/dom.js";

/** @typedef {{name: string, part: string, title: string, summary: string}} Entry */

const LEAD =
  "How it works, number by number: from a logical neuron through recurrent networks and attention to the Transformer and GPT. Change any number: everything after it is recomputed, by the code that the models here run on.";

/** @returns {Promise<import("../core/types.js").Screen>} */
export async function lessonList() {
  const { lessons } = /** @type {{lessons: Entry[]}} */ (await get("lessons"));
  const parts = [...new Set(lessons.map((entry) => entry.part))];
  const node = h(
    "main",
    { class: "home learn", tabindex: "-1" },
    h("h1", {}, "Lessons"),
    h("p", { class: "lead" }, LEAD),
    ...parts.map((part) => section(part, lessons)),
    h("p", { class: "muted" }, "In a terminal: ", h("code", {}, "regard lesson")),
  );
  return { node, title: "Lessons", redraw: () => {}, leave: () => {}, key: () => false };
}

/** @param {string} part @param {Entry[]} lessons */
function section(part, lessons) {
  const own = lessons.filter((entry) => entry.part === part);
  const items = own.map((entry) =>
    h(
      "li",
      {},
      h("a", { href: `#/learn/${encodeURIComponent(entry.name)}` }, entry.title),
      h("span", { class: "muted" }, ` ${entry.summary.split(/(?<=[.?]) /)[0]}`),
    ),
  );
  const list = h("ol", { class: "lessons", start: lessons.indexOf(own[0]) + 1 }, ...items);
  return h("section", { class: "card" }, h("h2", {}, part), list);
}
