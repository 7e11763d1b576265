// @ts-check
/** Attention as lines between words: two rows of words for cross-attention, arcs over one row for self-attention. */
import { drawingContext } from "../core/canvas.js";
import { h, replace, svg } from "../core/dom.js";
import { formatNumber } from "../core/format.js";

/**
 * @typedef {{numbers: Float64Array, rows: string[], columns: string[], same: boolean, query: number|null,
 *   onquery: (query: number|null) => void}} Arcs
 */

const FONT = 13;
const MAX_LINKS = 1000;
/** Lines per query at the first threshold. */
const LINKS_PER_QUERY = 3;

/** @param {Arcs} arcs */
export function arcs(arcs) {
  const count = h("span", { class: "muted", "aria-live": "polite" });
  const stage = h("div", { class: "scroll arcs", tabindex: "0", role: "region", "aria-label": "Lines between words" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: "100",
    step: "0.1",
    value: String(usefulThreshold(arcs)),
    "aria-label": "Threshold in percent",
    oninput: draw,
  });
  const percent = h("output", {});
  const node = h(
    "div",
    { class: "arcs-panel" },
    h("div", { class: "row" }, h("label", { class: "field" }, h("span", {}, "Threshold"), slider), percent, count),
    stage,
  );

  function draw() {
    const threshold = Number(slider.value) / 100;
    percent.textContent = `${slider.value} %`;
    const { lines, all } = strongestLinks(arcs, threshold);
    count.textContent = `showing ${lines.length} of ${all}${lines.length === MAX_LINKS ? ", the strongest" : ""}`;
    replace(stage, arcs.same ? drawArcs(arcs, lines) : drawLines(arcs, lines));
  }
  draw();
  return node;
}

/** Threshold in percent that leaves about three lines per query. @param {Arcs} arcs */
function usefulThreshold({ numbers, rows }) {
  const sorted = numbers.filter((weight) => weight > 0).sort();
  const wanted = Math.min(sorted.length, LINKS_PER_QUERY * rows.length, MAX_LINKS);
  return wanted ? Math.floor(1000 * sorted[sorted.length - wanted]) / 10 : 0;
}

/**
 * The links above the threshold, strongest first, and the number of all links.
 * @param {Arcs} arcs @param {number} threshold
 */
function strongestLinks({ numbers, columns, query }, threshold) {
  const n = columns.length;
  const matches = (/** @type {number} */ k) =>
    numbers[k] > 0 && numbers[k] >= threshold && (query === null || Math.floor(k / n) === query);
  let all = 0;
  for (let k = 0; k < numbers.length; k++) if (numbers[k] > 0) all++;
  const sorted = numbers.filter((_, k) => matches(k)).sort();
  const cutoff = sorted.length > MAX_LINKS ? sorted[sorted.length - MAX_LINKS] : 0; // sorting numbers is much faster than sorting pairs
  /** @type {[number, number, number][]} */
  const lines = [];
  numbers.forEach((weight, k) => {
    if (weight >= cutoff && matches(k)) lines.push([Math.floor(k / n), k % n, weight]);
  });
  lines.sort((a, b) => b[2] - a[2]).splice(MAX_LINKS);
  return { lines, all };
}

/** Center and end of each word. @param {string[]} words @param {number} start */
function wordPositions(words, start) {
  const context = drawingContext(document.createElement("canvas"));
  context.font = `${FONT}px system-ui, sans-serif`;
  let x = start;
  return words.map((text) => {
    const width = Math.max(12, context.measureText(text).width) + 16;
    x += width;
    return { middle: x - width / 2, end: x };
  });
}

/** @param {Arcs} arcs @param {[number, number, number][]} lines */
function drawLines(arcs, lines) {
  const [below, above] = [wordPositions(arcs.rows, 72), wordPositions(arcs.columns, 72)];
  const width = Math.max(below[below.length - 1]?.end ?? 0, above[above.length - 1]?.end ?? 0) + 8;
  const shapes = lines.map(([i, j, weight]) =>
    svg(
      "line",
      {
        x1: below[i].middle,
        x2: above[j].middle,
        y1: 128,
        y2: 28,
        class: "arc",
        "stroke-opacity": opacity(weight),
        "stroke-width": 1 + 3 * weight,
      },
      title(arcs, i, j, weight),
    ),
  );
  return svg(
    "svg",
    { width, height: 160, role: "group", "aria-label": `${lines.length} lines from target to source` },
    rowLabel("source", 20),
    rowLabel("target", 144),
    ...shapes,
    ...arcs.columns.map((text, j) => wordLabel(text, above[j].middle, 20, "source")),
    ...arcs.rows.map((text, i) =>
      wordLabel(text, below[i].middle, 144, "target", arcs.query === i, () =>
        arcs.onquery(arcs.query === i ? null : i),
      ),
    ),
  );
}

/** @param {Arcs} arcs @param {[number, number, number][]} lines */
function drawArcs(arcs, lines) {
  const at = wordPositions(arcs.rows.length >= arcs.columns.length ? arcs.rows : arcs.columns, 8);
  const width = (at[at.length - 1]?.end ?? 0) + 8;
  const height = Math.min(220, 40 + Math.max(0, ...lines.map(([i, j]) => Math.abs(at[i].middle - at[j].middle))) / 2);
  const shapes = lines.map(([i, j, weight]) => {
    const [a, b] = [at[i].middle, at[j].middle];
    const high = Math.min(height - 16, Math.abs(a - b) / 2 + 8);
    const path =
      i === j
        ? `M ${a - 5} ${height} c -8 -22 18 -22 10 0`
        : `M ${a} ${height} C ${a} ${height - high * 1.3} ${b} ${height - high * 1.3} ${b} ${height}`;
    return svg(
      "path",
      { d: path, class: "arc", fill: "none", "stroke-opacity": opacity(weight), "stroke-width": 1 + 3 * weight },
      title(arcs, i, j, weight),
    );
  });
  return svg(
    "svg",
    { width, height: height + 32, role: "group", "aria-label": `${lines.length} arcs over the words` },
    ...shapes,
    ...arcs.rows.map((text, i) =>
      wordLabel(text, at[i].middle, height + 16, "text", arcs.query === i, () =>
        arcs.onquery(arcs.query === i ? null : i),
      ),
    ),
  );
}

/** @param {number} weight */
function opacity(weight) {
  return (0.25 + 0.75 * weight).toFixed(2);
}

/** @param {Arcs} arcs @param {number} i @param {number} j @param {number} weight */
function title(arcs, i, j, weight) {
  return svg("title", {}, `\u2068${arcs.rows[i]}\u2069 → \u2068${arcs.columns[j]}\u2069: ${formatNumber(weight)}`);
}

/** @param {string} text @param {number} y */
function rowLabel(text, y) {
  return svg("text", { x: 8, y, class: "side", "dominant-baseline": "middle" }, text);
}

/** @param {string} text @param {number} x @param {number} y @param {string} kind @param {boolean} [chosen] @param {() => void} [onclick] */
function wordLabel(text, x, y, kind, chosen = false, onclick) {
  const own = onclick
    ? {
        onclick,
        tabindex: "0",
        role: "button",
        "aria-pressed": String(chosen),
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          onclick();
        },
      }
    : {};
  return svg(
    "text",
    {
      x,
      y,
      "text-anchor": "middle",
      "dominant-baseline": "middle",
      class: `arc-word ${kind}${chosen ? " picked" : ""}`,
      "unicode-bidi": "isolate",
      ...own,
    },
    text,
  );
}
