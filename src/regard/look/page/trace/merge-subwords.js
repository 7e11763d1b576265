// @ts-check
/** Merging of subwords into words: attention from a word is the mean over its tokens, attention to it the sum. */

/** @typedef {import("../core/types.js").Token} Token */
/** @typedef {[number, number][]} Spans first and last token of each word */

const SPECIAL = /^(<[A-Z]+>|\[[A-Z]+\])$/;

/**
 * Tokens of each word: the first starts with a space (U+2581 in some vocabularies), the others do not.
 * @param {Token[]|null} tokens @returns {Spans|null} null if every token is a word
 */
export function wordSpans(tokens) {
  if (!tokens || !tokens.some(({ token }) => /^[ \u2581]/u.test(token))) return null;
  /** @type {Spans} */
  const spans = [];
  tokens.forEach(({ token }, i) => {
    const begins = !i || /^[ \u2581]/u.test(token) || SPECIAL.test(token) || SPECIAL.test(tokens[i - 1].token);
    if (begins) spans.push([i, i]);
    else spans[spans.length - 1][1] = i;
  });
  return spans.length < tokens.length ? spans : null;
}

/** One span per token. @param {number} size @returns {Spans} */
export function tokenSpans(size) {
  return Array.from({ length: size }, (_, i) => [i, i]);
}

/** @param {string[]} labels @param {Spans} spans */
export function joinLabels(labels, spans) {
  return spans.map(([first, last]) => labels.slice(first, last + 1).join(""));
}

/** @param {Float64Array} numbers @param {number} columns @param {Spans} down @param {Spans} across */
export function mergeSubwords(numbers, columns, down, across) {
  const merged = new Float64Array(down.length * across.length);
  down.forEach(([top, bottom], i) =>
    across.forEach(([left, right], j) => {
      let sum = 0;
      for (let r = top; r <= bottom; r++) for (let c = left; c <= right; c++) sum += numbers[r * columns + c];
      merged[i * across.length + j] = sum / (bottom - top + 1);
    }),
  );
  return merged;
}
