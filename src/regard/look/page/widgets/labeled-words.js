// @ts-check
/** Words of a text with a label above each of them. */
import { h, word } from "../core/dom.js";

/** @typedef {import("../core/types.js").LabeledToken} LabeledToken */

/** Color roles that tell labels apart; the text of the label says the same. */
const ROLES = ["query", "key", "value", "attention", "chosen", "source", "target"];
/** The label of words outside of all spans. */
const OUTSIDE = "O";

/** Color role of each label, by the order in which labels appear; parts of one span kind share it. @param {LabeledToken[]} tokens */
export function labelRoles(tokens) {
  const kinds = [...new Set(tokens.map(({ label }) => spanKind(label)))].filter((kind) => kind !== OUTSIDE);
  return (/** @type {string} */ label) => {
    const at = kinds.indexOf(spanKind(label));
    return at < 0 ? "muted" : ROLES[at % ROLES.length];
  };
}

/** "B-PER" and "I-PER" as "PER". @param {string} label */
function spanKind(label) {
  return label.replace(/^[BIESLU]-/u, "");
}

/**
 * The words in their order, for a heading.
 * @param {LabeledToken[]} tokens
 */
export function labeledSentence(tokens) {
  const role = labelRoles(tokens);
  return h("span", { class: "labeled" }, ...tokens.flatMap((token) => [labeledWord(token, role(token.label)), " "]));
}

/** @param {LabeledToken} token @param {string} role */
function labeledWord({ text, label }, role) {
  return h("span", { class: `labeled-word role-${role}` }, h("small", { class: "label-tag" }, label), word(text));
}

/**
 * The words as buttons, one of them chosen.
 * @param {LabeledToken[]} tokens @param {number} chosen @param {(i: number) => void} onchoose
 */
export function labeledButtons(tokens, chosen, onchoose) {
  const role = labelRoles(tokens);
  const buttons = tokens.map(({ text, label }, i) =>
    h(
      "button",
      {
        type: "button",
        class: `labeled-word role-${role(label)}${i === chosen ? " picked" : ""}`,
        "aria-pressed": String(i === chosen),
        "data-focus": String(i),
        onclick: () => onchoose(i),
      },
      h("small", { class: "label-tag" }, label),
      " ",
      word(text),
    ),
  );
  return h("p", { class: "labeled", role: "group", "aria-label": "Words with their labels" }, ...buttons);
}
