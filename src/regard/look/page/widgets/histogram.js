// @ts-check
/** Histogram of the numbers of a tensor: equal bins from the smallest to the largest, with counts, mean and deviation. */
import { h, svg } from "../core/dom.js";
import { formatNumber, formatShort } from "../core/format.js";
import { table, tableRow } from "./table.js";

const BINS = 40;
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [480, 140, 44, 20];

/** Counts per bin, and statistics; NaN and infinities are left out. @param {ArrayLike<number>} numbers */
export function countBins(numbers) {
  let [low, high, sum, squares, count] = [Infinity, -Infinity, 0, 0, 0];
  for (let i = 0; i < numbers.length; i++) {
    const value = numbers[i];
    if (!Number.isFinite(value)) continue;
    [low, high] = [Math.min(low, value), Math.max(high, value)];
    sum += value;
    count++;
  }
  const mean = sum / count;
  const bins = new Array(high > low ? BINS : count ? 1 : 0).fill(0);
  for (let i = 0; i < numbers.length; i++) {
    const value = numbers[i];
    if (!Number.isFinite(value)) continue;
    squares += (value - mean) ** 2;
    bins[Math.min(bins.length - 1, Math.floor(((value - low) / (high - low || 1)) * bins.length))]++;
  }
  return { bins, low, high, mean, deviation: Math.sqrt(squares / count), count, missing: numbers.length - count };
}

/** @param {string} name @param {ArrayLike<number>} numbers */
export function histogram(name, numbers) {
  const { bins, low, high, mean, deviation, count, missing } = countBins(numbers);
  if (!count) return h("p", { class: "muted" }, "No finite numbers.");
  const most = Math.max(...bins);
  const wide = (WIDTH - LEFT - 8) / bins.length;
  const edge = (/** @type {number} */ i) => low + ((high - low) * i) / bins.length;
  const tall = (/** @type {number} */ n) => ((HEIGHT - BOTTOM - 12) * n) / most;
  const bars = bins.map((n, i) =>
    svg(
      "rect",
      { class: "bin", x: LEFT + i * wide, y: HEIGHT - BOTTOM - tall(n), width: Math.max(1, wide - 1), height: tall(n) },
      svg("title", {}, `${formatShort(edge(i))} to ${formatShort(edge(i + 1))}: ${n.toLocaleString("en")}`),
    ),
  );
  const tick = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ text, anchor = "end") =>
    svg("text", { class: "tick", x, y, "text-anchor": anchor }, text);
  const summary = `${count.toLocaleString("en")} numbers, mean ${formatNumber(mean)}, standard deviation ${formatNumber(deviation)}, smallest ${formatNumber(low)}, largest ${formatNumber(high)}`;
  const rows = bins.map((n, i) => tableRow(`${formatShort(edge(i))} to ${formatShort(edge(i + 1))}`, [String(n)]));
  return h(
    "figure",
    { class: "figure histogram" },
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        class: "chart",
        role: "img",
        "aria-label": `Histogram of ${name}: ${summary}`,
      },
      ...bars,
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - 8, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
      tick(LEFT - 4, 16, most.toLocaleString("en")),
      tick(LEFT - 4, HEIGHT - BOTTOM, "0"),
      tick(LEFT, HEIGHT - 6, formatShort(low), "start"),
      tick(WIDTH - 8, HEIGHT - 6, formatShort(high)),
    ),
    h(
      "figcaption",
      { class: "muted" },
      missing ? `${summary}; ${missing.toLocaleString("en")} are not finite` : summary,
    ),
    h(
      "details",
      { class: "as-table" },
      h("summary", {}, "As a table"),
      table("Counts per bin", ["bin", "count"], rows),
    ),
  );
}
