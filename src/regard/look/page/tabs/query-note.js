// @ts-check
/** Which word names a query or a key of an attention. */

/** @typedef {import("../core/types.js").Description} Description */

/** A sentence on the rows of an attention matrix; empty if they have no words. @param {Description} weights */
export function queryNote({ sides }) {
  if (sides.query === "source") return "Each row is the query at a word of the source.";
  if (sides.query === "read")
    return "Each row is the query at a word that the decoder reads, which predicts the next one; the first is the start symbol or the prompt.";
  if (sides.query === "target")
    return "Each row is named by the word that was generated at this step; the query itself is computed from the words before it.";
  return "";
}
