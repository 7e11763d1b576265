// @ts-check
/** All layers and heads at once: one small picture each, on one canvas. */
import { picture, role } from "./colour.js";
import { h } from "./dom.js";
import { shown } from "./format.js";
import { sized } from "./matrix.js";
import { entropy } from "./probability.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/**
 * @typedef {{name: string, head: number, rows: number, columns: number, numbers: Float64Array, label: string, spread: number,
 *   picture?: HTMLCanvasElement}} Head
 */

const [SIZE, GAP, TITLE] = [56, 12, 16];

/**
 * The heads of an attention, each with what was measured of it.
 * @param {string} name @param {Tensor} weights @param {boolean} same whether queries and keys are the same words
 * @returns {Head[]}
 */
export function heads(name, weights, same) {
  const [rows, columns] = [weights.size("query"), weights.size("key")];
  return Array.from({ length: weights.size("head") }, (_, head) => {
    const numbers = weights.plane("query", "key", { head });
    let spread = 0;
    for (let i = 0; i < rows; i++) spread += entropy(numbers.subarray(i * columns, (i + 1) * columns)) / rows;
    return { name, head, rows, columns, numbers, spread, label: habit(numbers, rows, columns, same) };
  });
}

/** What a head does most of the time, if it is plain: at least 60 % of all weight. @param {Float64Array} numbers @param {number} rows @param {number} columns @param {boolean} same */
function habit(numbers, rows, columns, same) {
  const share = (/** @type {(i: number) => number} */ where) => {
    let [sum, count] = [0, 0];
    for (let i = 0; i < rows; i++) {
      const j = where(i);
      if (j < 0 || j >= columns) continue;
      sum += numbers[i * columns + j];
      count++;
    }
    return count ? sum / count : 0;
  };
  const tried = same
    ? [
        ["itself", share((i) => i)],
        ["previous token", share((i) => i - 1)],
        ["next token", share((i) => i + 1)],
        ["first token", share(() => 0)],
        ["last token", share(() => columns - 1)],
      ]
    : [
        ["diagonal", share((i) => i)],
        ["first token", share(() => 0)],
        ["last token", share(() => columns - 1)],
      ];
  const best = tried.sort((a, b) => Number(b[1]) - Number(a[1]))[0];
  return rows > 1 && Number(best[1]) >= 0.6 ? `${best[0]} ${(100 * Number(best[1])).toFixed(0)} %` : "";
}

/**
 * @param {Head[]} all @param {{name: string|null, head: number|null}} chosen
 * @param {(name: string, head: number) => void} onchoose
 */
export function grid(all, chosen, onchoose) {
  const canvas = h("canvas", {
    role: "img",
    "aria-label": `${all.length} heads of ${new Set(all.map((head) => head.name)).size} attentions`,
  });
  const told = h("output", { class: "readout" });
  const stage = h(
    "div",
    {
      class: "heads",
      tabindex: "0",
      role: "group",
      "data-focus": "heads",
      "aria-label": "All heads. Arrow keys move from head to head.",
    },
    canvas,
  );
  const node = h("figure", { class: "figure" }, stage, told);
  let across = 1;
  let width = -1;
  const find = () =>
    Math.max(
      0,
      all.findIndex((head) => head.name === chosen.name && head.head === (chosen.head ?? 0)),
    );
  let at = find();

  const say = (/** @type {Head|undefined} */ head) => {
    told.textContent =
      head && chosen.head === null && head === all[at]
        ? `${chosen.name}, mean of its heads; point at a head, or choose one`
        : head
          ? `${head.name}, head ${head.head}: ${head.label ? `${head.label}, ` : ""}mean entropy ${shown(head.spread)}`
          : "";
  };
  function draw() {
    across = Math.max(1, Math.floor((node.clientWidth || 600) / (SIZE + GAP)));
    const context = sized(
      canvas,
      Math.min(across, all.length) * (SIZE + GAP),
      Math.ceil(all.length / across) * (SIZE + GAP + TITLE),
    );
    all.forEach((head, i) =>
      small(
        context,
        head,
        (i % across) * (SIZE + GAP),
        Math.floor(i / across) * (SIZE + GAP + TITLE),
        chosen.head === null ? head.name === chosen.name : i === at,
      ),
    );
    say(all[at]);
  }
  /** @param {MouseEvent} event */
  function under(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (SIZE + GAP));
    if (column >= across) return -1;
    return Math.floor((event.clientY - box.top) / (SIZE + GAP + TITLE)) * across + column;
  }
  /** @param {number} i */
  function choose(i) {
    if (i < 0 || i >= all.length) return;
    onchoose(all[i].name, all[i].head);
  }
  canvas.addEventListener("mousemove", (event) => say(all[under(event)] ?? all[at]));
  canvas.addEventListener("mouseleave", () => say(all[at]));
  canvas.addEventListener("click", (event) => choose(under(event)));
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(at + step);
  });
  new ResizeObserver(() => {
    if (node.clientWidth === width) return;
    width = node.clientWidth;
    draw();
  }).observe(node);
  /** @param {{name: string|null, head: number|null}} now */
  function show(now) {
    chosen = now;
    at = find();
    draw();
  }
  return { node, show };
}

/** @param {CanvasRenderingContext2D} context @param {Head} head @param {number} x @param {number} y @param {boolean} chosen */
function small(context, head, x, y, chosen) {
  context.fillStyle = role("muted");
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  context.fillText(`${short(head.name)} · ${head.head}`, x, y, SIZE + GAP - 2);
  const top = head.numbers.reduce((a, b) => Math.max(a, b), 0);
  context.imageSmoothingEnabled = head.columns > SIZE || head.rows > SIZE;
  context.drawImage(
    (head.picture ??= picture(head.numbers, head.rows, head.columns, top, "weight")),
    x,
    y + TITLE,
    SIZE,
    SIZE,
  );
  context.strokeStyle = role(chosen ? "chosen" : "line");
  context.lineWidth = chosen ? 3 : 1;
  context.strokeRect(x + 0.5, y + TITLE + 0.5, SIZE - 1, SIZE - 1);
}

/** "decoder.layers.1.cross.weights" as "d1 cross". @param {string} name */
export function short(name) {
  const parts = name.split(".").slice(0, -1);
  const number = parts.find((part) => /^\d+$/.test(part));
  const kind = parts.filter((part) => !/^\d+$/.test(part) && part !== "layers" && part !== "stack");
  const side = kind.length > 1 ? kind[0][0] : "";
  const own = kind[kind.length - 1] ?? name;
  return `${side}${number ?? ""} ${own === "attention" ? "self" : own}`.trim();
}
