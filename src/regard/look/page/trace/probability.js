// @ts-check
/** Softmax, temperature, top-k, top-p and min-p, in the order that the decoder applies them. */

/** @typedef {{temperature: number, topK: number, topP: number, minP: number}} SamplingRules */

/** @param {ArrayLike<number>} numbers @returns {Float64Array} */
export function softmax(numbers) {
  let top = -Infinity;
  for (let i = 0; i < numbers.length; i++) if (numbers[i] > top) top = numbers[i];
  const out = new Float64Array(numbers.length);
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) {
    // forbidden tokens and missing keys have probability 0
    out[i] = Number.isNaN(numbers[i]) || numbers[i] === -Infinity ? 0 : Math.exp(numbers[i] - top);
    sum += out[i];
  }
  for (let i = 0; i < out.length; i++) out[i] /= sum;
  return out;
}

/** @param {ArrayLike<number>} logits @param {number} temperature */
export function applyTemperature(logits, temperature) {
  return Float64Array.from(logits, (logit) => logit / temperature);
}

/**
 * Probabilities after temperature, top-k, top-p and min-p, renormalized.
 * @param {ArrayLike<number>} logits @param {SamplingRules} rules @returns {Float64Array}
 */
export function filterProbabilities(logits, rules) {
  const scaled = applyTemperature(logits, rules.temperature);
  const order = Array.from(scaled.keys()).sort((a, b) => scaled[b] - scaled[a] || a - b);
  if (rules.topK > 0 && rules.topK < scaled.length) {
    const least = scaled[order[rules.topK - 1]];
    for (let i = 0; i < scaled.length; i++) if (scaled[i] < least) scaled[i] = -Infinity;
  }
  if (rules.topP < 1) {
    const p = softmax(scaled);
    let before = 0;
    for (const i of order) {
      if (before >= rules.topP) scaled[i] = -Infinity;
      before += p[i];
    }
  }
  if (rules.minP > 0) {
    const least = scaled[order[0]] + Math.log(rules.minP);
    for (let i = 0; i < scaled.length; i++) if (scaled[i] < least) scaled[i] = -Infinity;
  }
  return softmax(scaled);
}

/** Entropy in nats. @param {ArrayLike<number>} p */
export function entropy(p) {
  let sum = 0;
  for (let i = 0; i < p.length; i++) if (p[i] > 0) sum -= p[i] * Math.log(p[i]);
  return sum;
}

/**
 * Weight that gets the strongest color: the third quartile of the largest weight per query. A query with one visible
 * key, such as the first token under a causal mask, has the weight 1 whatever the head does, and does not count.
 * @param {ArrayLike<number>} numbers @param {number} rows @param {number} columns
 */
export function usualLargest(numbers, rows, columns) {
  /** @type {number[]} */
  const largest = [];
  let most = 0;
  for (let i = 0; i < rows; i++) {
    let [top, visible] = [0, 0];
    for (let j = 0; j < columns; j++) {
      const number = numbers[i * columns + j];
      if (number > 0) visible++;
      if (number > top) top = number;
    }
    most = Math.max(most, top);
    if (visible > 1) largest.push(top);
  }
  largest.sort((a, b) => a - b);
  return largest.length ? largest[Math.floor(0.75 * (largest.length - 1))] : most;
}
