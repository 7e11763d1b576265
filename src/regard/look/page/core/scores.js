// @ts-check
/** Metrics of a training for people: their titles, and as many digits as mean something. */

const TITLES = /** @type {Record<string, string>} */ ({
  bleu: "BLEU",
  ppl: "perplexity",
  bits: "bits per character",
  f1: "F1",
  macro_f1: "macro F1",
  exact: "exact match",
  mae: "MAE",
  rmse: "RMSE",
  mase: "MASE",
});
/** Metrics in percent, or on a scale to 100. */
const PERCENT = ["bleu", "accuracy", "f1", "macro_f1", "exact"];

/** @param {string} name of a metric, as in metrics.jsonl */
export function metricTitle(name) {
  return TITLES[name] ?? name.replaceAll("_", " ");
}

/** A title that begins a line. @param {string} text */
export function capitalize(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** One decimal of a percentage; else three significant digits, and no decimals from 1,000 on. @param {string} name @param {number} value */
export function formatMetric(name, value) {
  if (!Number.isFinite(value)) return "–";
  if (PERCENT.includes(name)) return value.toFixed(1);
  const size = Math.abs(value);
  if (size >= 1e9 || (value !== 0 && size < 0.001)) return value.toExponential(1).replace(/-/g, "−");
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(size < 1 ? 3 : 4))).replace(/-/g, "−");
}
