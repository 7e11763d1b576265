// @ts-check
/** Round numbers along an axis. */

/**
 * Round numbers between two limits, about `count` of them: multiples of 1, 2 or 5 times a power of ten.
 * @param {number} low @param {number} high @param {number} count @returns {number[]}
 */
export function roundTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Evenly spaced indices of a list, at most `count`, the first one included. @param {number} size @param {number} count */
export function spacedIndices(size, count) {
  const step = Math.max(1, Math.ceil((size - 1) / Math.max(1, count - 1)));
  return Array.from({ length: Math.ceil(size / step) }, (_, i) => i * step);
}
