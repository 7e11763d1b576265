// @ts-check
/** Words of two sentences beside one another. */

/** Which words of `b` stand in the longest common subsequence with `a`. @param {string[]} a @param {string[]} b */
export function common(a, b) {
  return new Set(paired(a, b).map(([, j]) => j));
}

/** The longest common subsequence: places in `a` and in `b`. @param {string[]} a @param {string[]} b */
export function paired(a, b) {
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  /** @type {[number, number][]} */
  const found = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) found.push([i++, j++]);
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return found;
}
