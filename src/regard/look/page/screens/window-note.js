// @ts-check
/** Which part of a long generated text is shown, with links to the others. */
import { h } from "../core/dom.js";
import { traceAddress } from "../core/route.js";

/** @typedef {import("../core/types.js").Context} Context */

/** Null if the whole text was generated in one window. @param {Context} context */
export function windowNote({ trace, selection }) {
  const { window: part, windows = [] } = trace.header;
  if (!part) return null;
  const [first, last] = [part.before.length + 1, part.before.length + part.tokens];
  const text =
    `Shown: tokens ${first} to ${last} of the ${part.total} that were generated (window ${part.number + 1} of ` +
    `${part.count}). When the model's context is full, it reads its last half again and continues from there.`;
  const links = trace.live ? windows.map((id, i) => windowLink(id, i, part.number, selection.current.tab)) : [];
  const missing = trace.live ? part.count - windows.length : part.count - 1;
  const rest = missing > 0 ? ` ${missing === 1 ? "One window is" : `${missing} windows are`} not stored.` : "";
  return h(
    "section",
    { class: "windows", "aria-label": "Window" },
    h("p", {}, text, rest),
    links.length > 1 ? h("p", { class: "row wrap" }, h("span", { class: "muted" }, "Window"), ...links) : null,
  );
}

/** @param {string} id @param {number} number @param {number} now @param {string} tab */
function windowLink(id, number, now, tab) {
  const current = number === now ? { "aria-current": "true" } : {};
  return h("a", { class: "window-link", href: traceAddress(id, { tab }), ...current }, String(number + 1));
}
