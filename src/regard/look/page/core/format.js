// @ts-check
/** Number formatting for people and for programs. */

/**
 * Four decimals, or scientific notation for very small and very large numbers.
 * @param {number} value
 */
export function formatNumber(value) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = value !== 0 && (size < 0.0005 || size >= 100000) ? value.toExponential(3) : value.toFixed(4);
  return text.replace(/-/g, "−");
}

/**
 * The fewest digits that round-trip a 32-bit float.
 * @param {number} value
 */
export function formatExact(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  for (let digits = 1; digits < 10; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === Math.fround(value)) return String(Number(text));
  }
  return String(value);
}

/** Four significant digits, for axis ticks. @param {number} value */
export function formatShort(value) {
  const size = Math.abs(value);
  if (value === 0 || !Number.isFinite(value)) return formatNumber(value).replace(".0000", "");
  const text = size >= 100000 || size < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
  return text.replace(/-/g, "−");
}

/** Size of a model. @param {{parameters?: number, bytes?: number}} model */
export function formatSize({ parameters = 0, bytes = 0 }) {
  return `${parameters.toLocaleString("en")} parameters, ${formatShort(bytes / 1e6)} MB`;
}

/** Duration of a pass; milliseconds below a tenth of a second. @param {number} seconds */
export function formatSeconds(seconds) {
  return seconds < 0.1 ? `${Math.max(1, Math.round(seconds * 1000))} ms` : `${seconds.toFixed(2)} s`;
}

/** Time since a date. @param {string} iso */
export function formatAge(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}
