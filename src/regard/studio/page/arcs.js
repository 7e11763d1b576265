// @ts-check
/** Attention as lines between words: two rows of words when one sequence looks at another, arcs over one when at itself. */
import { h, replace, svg } from "./dom.js";
import { shown } from "./format.js";

/**
 * @typedef {{numbers: Float64Array, rows: string[], columns: string[], same: boolean, query: number|null,
 *   onquery: (query: number|null) => void}} Arcs
 */

const FONT = 13;
const MOST = 1000;

/** @param {Arcs} arcs */
export function arcs(arcs) {
  const count = h("span", { class: "muted", "aria-live": "polite" });
  const stage = h("div", { class: "scroll arcs", tabindex: "0", role: "region", "aria-label": "Lines between words" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: "100",
    value: "10",
    "aria-label": "Threshold in per cent",
    oninput: draw,
  });
  const shownAt = h("output", {});
  const node = h(
    "div",
    { class: "arcs-panel" },
    h("div", { class: "row" }, h("label", { class: "field" }, h("span", {}, "Threshold"), slider), shownAt, count),
    stage,
  );

  function draw() {
    const least = Number(slider.value) / 100;
    shownAt.textContent = `${slider.value} %`;
    const { lines, all } = strongest(arcs, least);
    count.textContent = `showing ${lines.length} of ${all}${lines.length === MOST ? ", the strongest" : ""}`;
    replace(stage, arcs.same ? over(arcs, lines) : between(arcs, lines));
  }
  draw();
  return node;
}

/**
 * The lines that are drawn, the strongest first, and how many there are at all.
 * @param {Arcs} arcs @param {number} least
 */
function strongest({ numbers, columns, query }, least) {
  const n = columns.length;
  const here = (/** @type {number} */ k) =>
    numbers[k] > 0 && numbers[k] >= least && (query === null || Math.floor(k / n) === query);
  let all = 0;
  for (let k = 0; k < numbers.length; k++) if (numbers[k] > 0) all++;
  const sorted = numbers.filter((_, k) => here(k)).sort();
  const bar = sorted.length > MOST ? sorted[sorted.length - MOST] : 0; // sorting numbers is far faster than pairs
  /** @type {[number, number, number][]} */
  const lines = [];
  numbers.forEach((weight, k) => {
    if (weight >= bar && here(k)) lines.push([Math.floor(k / n), k % n, weight]);
  });
  lines.sort((a, b) => b[2] - a[2]).splice(MOST);
  return { lines, all };
}

/** Where each word begins and how wide it is. @param {string[]} words @param {number} start */
function places(words, start) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  context.font = `${FONT}px system-ui, sans-serif`;
  let x = start;
  return words.map((text) => {
    const width = Math.max(12, context.measureText(text).width) + 16;
    x += width;
    return { middle: x - width / 2, end: x };
  });
}

/** @param {Arcs} arcs @param {[number, number, number][]} lines */
function between(arcs, lines) {
  const [below, above] = [places(arcs.rows, 72), places(arcs.columns, 72)];
  const width = Math.max(below[below.length - 1]?.end ?? 0, above[above.length - 1]?.end ?? 0) + 8;
  const drawn = lines.map(([i, j, weight]) =>
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
    side("read", 20),
    side("said", 144),
    ...drawn,
    ...arcs.columns.map((text, j) => label(text, above[j].middle, 20, "source")),
    ...arcs.rows.map((text, i) =>
      label(text, below[i].middle, 144, "target", arcs.query === i, () => arcs.onquery(arcs.query === i ? null : i)),
    ),
  );
}

/** @param {Arcs} arcs @param {[number, number, number][]} lines */
function over(arcs, lines) {
  const at = places(arcs.rows.length >= arcs.columns.length ? arcs.rows : arcs.columns, 8);
  const width = (at[at.length - 1]?.end ?? 0) + 8;
  const height = Math.min(220, 40 + Math.max(0, ...lines.map(([i, j]) => Math.abs(at[i].middle - at[j].middle))) / 2);
  const drawn = lines.map(([i, j, weight]) => {
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
    ...drawn,
    ...arcs.rows.map((text, i) =>
      label(text, at[i].middle, height + 16, "text", arcs.query === i, () => arcs.onquery(arcs.query === i ? null : i)),
    ),
  );
}

/** @param {number} weight */
function opacity(weight) {
  return (0.25 + 0.75 * weight).toFixed(2);
}

/** @param {Arcs} arcs @param {number} i @param {number} j @param {number} weight */
function title(arcs, i, j, weight) {
  return svg("title", {}, `\u2068${arcs.rows[i]}\u2069 → \u2068${arcs.columns[j]}\u2069: ${shown(weight)}`);
}

/** @param {string} text @param {number} y */
function side(text, y) {
  return svg("text", { x: 8, y, class: "side", "dominant-baseline": "middle" }, text);
}

/** @param {string} text @param {number} x @param {number} y @param {string} kind @param {boolean} [chosen] @param {() => void} [onclick] */
function label(text, x, y, kind, chosen = false, onclick) {
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
