// @ts-check
/** Map of words: one dot per word, the same scale on both axes, labels where they fit. */
import { drawingContext } from "../core/canvas.js";
import { svg } from "../core/dom.js";

/** @typedef {import("../core/types.js").MapPoint} MapPoint */
/** @typedef {{x: number, y: number}} Position */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const [FONT, EDGE, DOT, TOUCH] = [13, 24, 4, 11];
const MAX_LABEL = 24;

export class WordMap {
  /** @param {MapPoint[]} points @param {(point: MapPoint) => void} onpick @param {(point: MapPoint) => void} onpoint */
  constructor(points, onpick, onpoint) {
    this.points = points;
    this.onpick = onpick;
    this.onpoint = onpoint;
    /** @type {Position[]} */
    this.positions = [];
    /** @type {SVGElement[]} */
    this.dots = [];
    this.node = svg("svg", { class: "word-map", role: "group", "aria-label": mapLabel(points) });
  }

  /** @param {number} width in pixels @param {string|null} chosen selected word */
  draw(width, chosen) {
    const { positions, height } = layout(this.points, width);
    this.positions = positions;
    const first = this.points.findIndex((point) => point.word === chosen);
    const names = placeLabels(this.points, positions, width, height, first);
    const focused = this.dots.findIndex((dot) => dot === document.activeElement);
    this.dots = this.points.map((point, i) => this.dot(point, i, names[i], i === first));
    this.node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.node.replaceChildren(...this.dots);
    this.setTabStop(Math.max(0, focused >= 0 ? focused : first));
    if (focused >= 0) this.dots[focused].focus();
  }

  /** @param {MapPoint} point @param {number} i @param {Box|null} box @param {boolean} chosen */
  dot(point, i, box, chosen) {
    const { x, y } = this.positions[i];
    const middle = box && { x: (box.left + box.right) / 2, y: box.bottom - FONT * 0.3 };
    return svg(
      "g",
      {
        class: chosen ? "map-point picked" : "map-point",
        role: "button",
        tabindex: "-1",
        "aria-label": point.label,
        "aria-pressed": String(chosen),
        onclick: () => this.onpick(point),
        onmouseenter: () => this.onpoint(point),
        onfocus: () => this.onpoint(point),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event, i),
      },
      svg("title", {}, point.label),
      svg("circle", { class: "touch", cx: x, cy: y, r: TOUCH }),
      svg("circle", { class: "point", cx: x, cy: y, r: DOT }),
      middle && svg("text", { ...middle, "text-anchor": "middle", "unicode-bidi": "isolate" }, truncate(point.label)),
    );
  }

  /** Makes one dot reachable with Tab; arrow keys continue from it. @param {number} i */
  setTabStop(i) {
    this.dots.forEach((dot, j) => dot.setAttribute("tabindex", i === j ? "0" : "-1"));
  }

  /** @param {KeyboardEvent} event @param {number} i */
  key(event, i) {
    const press = event.key === "Enter" || event.key === " ";
    const next = press ? i : nearestInDirection(this.positions, i, event.key);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (press) return this.onpick(this.points[i]);
    this.setTabStop(next);
    this.dots[next].focus();
  }
}

/** @param {MapPoint[]} points */
function mapLabel(points) {
  return `Map of ${points.length} words. Arrow keys move between words, Enter lists the neighbors.`;
}

/** A label of limited length. @param {string} text */
function truncate(text) {
  const letters = [...text];
  return letters.length > MAX_LABEL ? `${letters.slice(0, MAX_LABEL - 1).join("")}…` : text;
}

/** Position of each word and the height of the map. @param {MapPoint[]} points @param {number} width */
function layout(points, width) {
  const [left, right] = extent(points.map((point) => point.x));
  const [low, high] = extent(points.map((point) => point.y));
  const tallest = Math.max(320, Math.min(width, 640));
  const scale = Math.min((width - 4 * EDGE) / (right - left || 1e-12), (tallest - 2 * EDGE) / (high - low || 1e-12));
  const height = Math.max(160, (high - low) * scale + 2 * EDGE);
  const [x0, y0] = [(width - (right - left) * scale) / 2, (height - (high - low) * scale) / 2];
  return { height, positions: points.map(({ x, y }) => ({ x: x0 + (x - left) * scale, y: y0 + (high - y) * scale })) };
}

/** @param {number[]} numbers */
function extent(numbers) {
  return [Math.min(...numbers), Math.max(...numbers)];
}

/**
 * Box of each label on one of four sides of its dot; null if it would overlap. The selected word comes first.
 * @param {MapPoint[]} points @param {Position[]} positions @param {number} width @param {number} height @param {number} first
 * @returns {(Box|null)[]}
 */
function placeLabels(points, positions, width, height, first) {
  const context = drawingContext(document.createElement("canvas"));
  const taken = positions.map(({ x, y }) => ({ left: x - DOT, right: x + DOT, top: y - DOT, bottom: y + DOT }));
  /** @type {(Box|null)[]} */
  const boxes = points.map(() => null);
  const free = (/** @type {Box} */ box) =>
    box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height && !taken.some((b) => overlaps(box, b));
  for (const i of [...points.keys()].sort((a, b) => Number(b === first) - Number(a === first))) {
    context.font = `${i === first ? "700 " : ""}${FONT}px system-ui, sans-serif`;
    const box = labelBoxes(positions[i], context.measureText(truncate(points[i].label)).width).find(free);
    if (!box) continue;
    taken.push(box);
    boxes[i] = box;
  }
  return boxes;
}

/** @param {Position} place @param {number} wide @returns {Box[]} */
function labelBoxes({ x, y }, wide) {
  const at = (/** @type {number} */ left, /** @type {number} */ top) => ({
    left,
    top,
    right: left + wide,
    bottom: top + FONT * 1.2,
  });
  const [middle, gap] = [y - FONT * 0.6, DOT + 3];
  return [
    at(x + gap, middle),
    at(x - gap - wide, middle),
    at(x - wide / 2, y - gap - FONT * 1.1),
    at(x - wide / 2, y + gap - 1),
  ];
}

/** @param {Box} a @param {Box} b */
function overlaps(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** The nearest dot in the direction of an arrow key. @param {Position[]} positions @param {number} i @param {string} key */
function nearestInDirection(positions, i, key) {
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
  if (!way) return null;
  let [best, least] = [i, Infinity];
  positions.forEach(({ x, y }, j) => {
    const [dx, dy] = [x - positions[i].x, y - positions[i].y];
    const [ahead, aside] = [dx * way[0] + dy * way[1], Math.abs(dx * way[1] + dy * way[0])];
    const cost = ahead + 2 * aside;
    if (j !== i && ahead > 0 && cost < least) [best, least] = [j, cost];
  });
  return best;
}
