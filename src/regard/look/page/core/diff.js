// @ts-check
/** Longest common subsequence of two lists of words. */

/** Indices in `b` of the words it shares with `a`. @param {string[]} a @param {string[]} b */
export function commonIndices(a, b) {
  return new Set(commonSubsequence(a, b).map(([, j]) => j));
}

/** Pairs of indices in `a` and `b`. @param {string[]} a @param {string[]} b */
export function commonSubsequence(a, b) {
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}
