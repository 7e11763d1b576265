// @ts-check
/** Words on a plane: a dot each, one scale for both axes, and a name beside it where there is room. */
import { svg } from "./dom.js";

/** @typedef {import("./types.js").Spot} Spot */
/** @typedef {{x: number, y: number}} Place */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const [FONT, EDGE, DOT, TOUCH] = [13, 24, 4, 11];
const LONGEST = 24;

export class WordMap {
  /** @param {Spot[]} spots @param {(spot: Spot) => void} onpick @param {(spot: Spot) => void} onpoint */
  constructor(spots, onpick, onpoint) {
    this.spots = spots;
    this.onpick = onpick;
    this.onpoint = onpoint;
    /** @type {Place[]} */
    this.places = [];
    /** @type {SVGElement[]} */
    this.dots = [];
    this.node = svg("svg", { class: "word-map", role: "group", "aria-label": spoken(spots) });
  }

  /** @param {number} width of the picture @param {string|null} chosen the word that is looked at */
  draw(width, chosen) {
    const { places, height } = spread(this.spots, width);
    this.places = places;
    const first = this.spots.findIndex((spot) => spot.word === chosen);
    const names = named(this.spots, places, width, height, first);
    const held = this.dots.findIndex((dot) => dot === document.activeElement);
    this.dots = this.spots.map((spot, i) => this.dot(spot, i, names[i], i === first));
    this.node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.node.replaceChildren(...this.dots);
    this.enter(Math.max(0, held >= 0 ? held : first));
    if (held >= 0) this.dots[held].focus();
  }

  /** @param {Spot} spot @param {number} i @param {Box|null} box @param {boolean} chosen */
  dot(spot, i, box, chosen) {
    const { x, y } = this.places[i];
    const middle = box && { x: (box.left + box.right) / 2, y: box.bottom - FONT * 0.3 };
    return svg(
      "g",
      {
        class: chosen ? "spot picked" : "spot",
        role: "button",
        tabindex: "-1",
        "aria-label": spot.shown,
        "aria-pressed": String(chosen),
        onclick: () => this.onpick(spot),
        onmouseenter: () => this.onpoint(spot),
        onfocus: () => this.onpoint(spot),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event, i),
      },
      svg("title", {}, spot.shown),
      svg("circle", { class: "touch", cx: x, cy: y, r: TOUCH }),
      svg("circle", { class: "point", cx: x, cy: y, r: DOT }),
      middle && svg("text", { ...middle, "text-anchor": "middle", "unicode-bidi": "isolate" }, brief(spot.shown)),
    );
  }

  /** The one dot that Tab reaches; arrows go on from it. @param {number} i */
  enter(i) {
    this.dots.forEach((dot, j) => dot.setAttribute("tabindex", i === j ? "0" : "-1"));
  }

  /** @param {KeyboardEvent} event @param {number} i */
  key(event, i) {
    const press = event.key === "Enter" || event.key === " ";
    const next = press ? i : towards(this.places, i, event.key);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (press) return this.onpick(this.spots[i]);
    this.enter(next);
    this.dots[next].focus();
  }
}

/** @param {Spot[]} spots */
function spoken(spots) {
  return `Map of ${spots.length} words. Arrows go from one to the next, Enter tells its neighbours.`;
}

/** A name where there is little room. @param {string} text */
function brief(text) {
  const letters = [...text];
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : text;
}

/** Where each word goes, and how tall that is: what is near on the picture is near. @param {Spot[]} spots @param {number} width */
function spread(spots, width) {
  const [left, right] = ends(spots.map((spot) => spot.x));
  const [low, high] = ends(spots.map((spot) => spot.y));
  const tallest = Math.max(320, Math.min(width, 640));
  const scale = Math.min(
    (width - 4 * EDGE) / (right - left || 1e-12),
    (tallest - 2 * EDGE) / (high - low || 1e-12),
  );
  const height = Math.max(160, (high - low) * scale + 2 * EDGE);
  const [x0, y0] = [(width - (right - left) * scale) / 2, (height - (high - low) * scale) / 2];
  return { height, places: spots.map(({ x, y }) => ({ x: x0 + (x - left) * scale, y: y0 + (high - y) * scale })) };
}

/** @param {number[]} numbers */
function ends(numbers) {
  return [Math.min(...numbers), Math.max(...numbers)];
}

/**
 * The box of each name at one of four places beside its dot; null: other names and dots leave no room. The name of the
 * word that is looked at comes first.
 * @param {Spot[]} spots @param {Place[]} places @param {number} width @param {number} height @param {number} first
 * @returns {(Box|null)[]}
 */
function named(spots, places, width, height, first) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  const taken = places.map(({ x, y }) => ({ left: x - DOT, right: x + DOT, top: y - DOT, bottom: y + DOT }));
  /** @type {(Box|null)[]} */
  const found = spots.map(() => null);
  const free = (/** @type {Box} */ box) =>
    box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height && !taken.some((b) => touch(box, b));
  for (const i of [...spots.keys()].sort((a, b) => Number(b === first) - Number(a === first))) {
    context.font = `${i === first ? "700 " : ""}${FONT}px system-ui, sans-serif`;
    const box = beside(places[i], context.measureText(brief(spots[i].shown)).width).find(free);
    if (!box) continue;
    taken.push(box);
    found[i] = box;
  }
  return found;
}

/** @param {Place} place @param {number} wide @returns {Box[]} */
function beside({ x, y }, wide) {
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
function touch(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** The next dot in the direction of an arrow key: near, and not far aside. @param {Place[]} places @param {number} i @param {string} key */
function towards(places, i, key) {
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
  if (!way) return null;
  let [best, least] = [i, Infinity];
  places.forEach(({ x, y }, j) => {
    const [dx, dy] = [x - places[i].x, y - places[i].y];
    const [ahead, aside] = [dx * way[0] + dy * way[1], Math.abs(dx * way[1] + dy * way[0])];
    const cost = ahead + 2 * aside;
    if (j !== i && ahead > 0 && cost < least) [best, least] = [j, cost];
  });
  return best;
}
