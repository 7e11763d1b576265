// @ts-check
/** What sampling would do with the logits of a step: the same rules in the same order as the decoder's own. */

/** @typedef {{temperature: number, topK: number, topP: number, minP: number}} Rules */

/** @param {ArrayLike<number>} numbers @returns {Float64Array} */
export function softmax(numbers) {
  let top = -Infinity;
  for (let i = 0; i < numbers.length; i++) if (numbers[i] > top) top = numbers[i];
  const out = new Float64Array(numbers.length);
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) {
    // what may not be said, and a key that was not there, weigh nothing
    out[i] = Number.isNaN(numbers[i]) || numbers[i] === -Infinity ? 0 : Math.exp(numbers[i] - top);
    sum += out[i];
  }
  for (let i = 0; i < out.length; i++) out[i] /= sum;
  return out;
}

/** @param {ArrayLike<number>} logits @param {number} temperature */
export function warmed(logits, temperature) {
  return Float64Array.from(logits, (logit) => logit / temperature);
}

/**
 * Probabilities after temperature, then top-k, top-p and min-p, made to sum to 1 again.
 * @param {ArrayLike<number>} logits @param {Rules} rules @returns {Float64Array}
 */
export function filtered(logits, rules) {
  const warm = warmed(logits, rules.temperature);
  const order = Array.from(warm.keys()).sort((a, b) => warm[b] - warm[a] || a - b);
  if (rules.topK > 0 && rules.topK < warm.length) {
    const least = warm[order[rules.topK - 1]];
    for (let i = 0; i < warm.length; i++) if (warm[i] < least) warm[i] = -Infinity;
  }
  if (rules.topP < 1) {
    const p = softmax(warm);
    let before = 0;
    for (const i of order) {
      if (before >= rules.topP) warm[i] = -Infinity;
      before += p[i];
    }
  }
  if (rules.minP > 0) {
    const least = warm[order[0]] + Math.log(rules.minP);
    for (let i = 0; i < warm.length; i++) if (warm[i] < least) warm[i] = -Infinity;
  }
  return softmax(warm);
}

/** In nats. @param {ArrayLike<number>} p */
export function entropy(p) {
  let sum = 0;
  for (let i = 0; i < p.length; i++) if (p[i] > 0) sum -= p[i] * Math.log(p[i]);
  return sum;
}
