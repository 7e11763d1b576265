// @ts-check
/** Roles of attention heads: measured statistics of each head on this text, with their definitions. */
import { colorize } from "../core/color.js";
import { h, word } from "../core/dom.js";
import { shortName } from "../trace/names.js";
import { table } from "../widgets/table.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").HeadRole} HeadRole */

/** Definitions, in the order of the columns; look/head_roles.py computes them. */
const DEFINITIONS = {
  "previous token": "mean weight of each query on the token before it",
  "current token": "mean weight of each query on its own position",
  "next token": "mean weight of each query on the token after it",
  "first token": "mean weight of each query but the first on the first token",
  "duplicate token": "mean weight on other positions with the query's own token, over queries whose token is repeated",
  induction:
    "mean weight on the token that followed an earlier occurrence of the query's token, over queries whose token occurred before",
  "diagonal alignment":
    "correlation of query and key positions, each pair weighted by its attention: 1 if aligned in order, 0 if position says nothing",
};

/** A table of all heads; null for a trace without roles. @param {Context} context */
export function headRoles({ trace, selection }) {
  const roles = trace.header.head_roles ?? [];
  if (!roles.length) return null;
  const names = Object.keys(DEFINITIONS).filter((name) => roles.some(({ statistics }) => name in statistics));
  const open = (/** @type {HeadRole} */ { name, head }) => selection.set({ tensor: name, head });
  const rows = roles.map((one) => {
    const title = `${shortName(one.name)} · ${one.head}`;
    const cells = names.map((name) => {
      const value = one.statistics[name] ?? null;
      const cell = h("td", { class: one.role === name ? "role" : null }, value === null ? "–" : formatShare(value));
      return value === null ? cell : colorize(cell, value, 1, "signed");
    });
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => open(one) }, title)),
      h("td", { class: "role-name" }, word(one.role || "–")),
      ...cells,
    );
  });
  return h(
    "section",
    { class: "card head-roles" },
    h("h2", {}, "Roles of the heads"),
    h(
      "p",
      { class: "muted" },
      "Measured on this text alone. A role is the largest statistic of a head, if it is at least 0.5 and the text has at least 4 tokens; – where no token of this text can show it.",
    ),
    table("Roles of the heads", ["head", "role", ...names], rows),
    h(
      "details",
      {},
      h("summary", {}, "Definitions"),
      h(
        "dl",
        {},
        ...names.flatMap((name) => [
          h("dt", {}, name),
          h("dd", {}, DEFINITIONS[/** @type {keyof typeof DEFINITIONS} */ (name)]),
        ]),
      ),
    ),
  );
}

/** @param {number} value */
function formatShare(value) {
  return value.toFixed(2).replace("-", "−");
}
