// @ts-check
/** A vector as a strip of colours; pointing at it tells the number. */
import { css, rgb } from "./colour.js";
import { h } from "./dom.js";
import { shown } from "./format.js";
import { sized } from "./matrix.js";

/** @typedef {import("./colour.js").Ramp} Ramp */

/**
 * @param {{numbers: Float64Array, top: number, ramp: Ramp, label: string, names?: string[]|null,
 *   onpick?: (i: number) => void}} strip
 */
export function strip(strip) {
  const n = strip.numbers.length;
  const cell = Math.max(1, Math.min(16, Math.floor(320 / Math.max(1, n))));
  const shownCount = Math.min(n, Math.floor(320 / cell));
  const canvas = h("canvas", { "aria-hidden": "true" });
  const context = sized(canvas, shownCount * cell, 16);
  for (let i = 0; i < shownCount; i++) {
    context.fillStyle = css(rgb(strip.numbers[i], strip.top, strip.ramp));
    context.fillRect(i * cell, 0, cell - (cell > 4 ? 1 : 0), 16);
  }
  const told = h("span", { class: "strip-told muted" });
  let at = 0;
  const say = (/** @type {number} */ i) => {
    at = i;
    told.textContent = `${strip.names?.[i] ?? i}: ${shown(strip.numbers[i])}`;
  };
  const button = h(
    "button",
    {
      type: "button",
      class: "strip",
      "aria-label": `${strip.label}: ${n} numbers. Arrow keys move, Enter explains.`,
      onmousemove: (/** @type {MouseEvent} */ event) => {
        say(
          Math.max(
            0,
            Math.min(shownCount - 1, Math.floor((event.clientX - canvas.getBoundingClientRect().left) / cell)),
          ),
        );
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (!step) return;
        event.preventDefault();
        say(Math.max(0, Math.min(n - 1, at + step)));
      },
      onfocus: () => say(at),
      onclick: () => strip.onpick?.(at),
    },
    canvas,
  );
  const rest = n > shownCount ? h("span", { class: "muted" }, `+ ${n - shownCount}`) : null;
  return h("span", { class: "strip-row" }, button, rest, told);
}
