// @ts-check
/** Parts of words put together again: what a word looks at is the mean of its parts, what is looked at their sum. */

/** @typedef {import("./types.js").Word} Word */
/** @typedef {[number, number][]} Runs first and last token of each word */

const SPECIAL = /^(<[A-Z]+>|\[[A-Z]+\])$/;

/**
 * Which tokens make a word: one begins with a space (U+2581 in some vocabularies), its other parts do not.
 * @param {Word[]|null} tokens @returns {Runs|null} null where nothing can be put together
 */
export function wordRuns(tokens) {
  if (!tokens || !tokens.some(({ token }) => /^[ \u2581]/u.test(token))) return null;
  /** @type {Runs} */
  const runs = [];
  tokens.forEach(({ token }, i) => {
    const begins = !i || /^[ \u2581]/u.test(token) || SPECIAL.test(token) || SPECIAL.test(tokens[i - 1].token);
    if (begins) runs.push([i, i]);
    else runs[runs.length - 1][1] = i;
  });
  return runs.length < tokens.length ? runs : null;
}

/** Each token by itself. @param {number} size @returns {Runs} */
export function alone(size) {
  return Array.from({ length: size }, (_, i) => [i, i]);
}

/** @param {string[]} labels @param {Runs} runs */
export function joined(labels, runs) {
  return runs.map(([first, last]) => labels.slice(first, last + 1).join(""));
}

/** @param {Float64Array} numbers @param {number} columns @param {Runs} down @param {Runs} across */
export function merged(numbers, columns, down, across) {
  const found = new Float64Array(down.length * across.length);
  down.forEach(([top, bottom], i) =>
    across.forEach(([left, right], j) => {
      let sum = 0;
      for (let r = top; r <= bottom; r++) for (let c = left; c <= right; c++) sum += numbers[r * columns + c];
      found[i * across.length + j] = sum / (bottom - top + 1);
    }),
  );
  return found;
}
