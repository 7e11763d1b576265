// @ts-check
/** A vector as a strip of colors, with a readout of the number under the pointer. */
import { css, rgb } from "../core/color.js";
import { h } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { resizeCanvas } from "./matrix.js";

/** @typedef {import("../core/color.js").Ramp} Ramp */

/**
 * @param {{numbers: Float64Array, top: number, ramp: Ramp, label: string, names?: string[]|null,
 *   onpick?: (i: number) => void}} strip
 */
export function strip(strip) {
  const n = strip.numbers.length;
  const cell = Math.max(1, Math.min(16, Math.floor(320 / Math.max(1, n))));
  const count = Math.min(n, Math.floor(320 / cell));
  const canvas = h("canvas", { "aria-hidden": "true" });
  const context = resizeCanvas(canvas, count * cell, 16);
  for (let i = 0; i < count; i++) {
    context.fillStyle = css(rgb(strip.numbers[i], strip.top, strip.ramp));
    context.fillRect(i * cell, 0, cell - (cell > 4 ? 1 : 0), 16);
  }
  const readout = h("span", { class: "strip-readout muted" });
  let at = 0;
  const show = (/** @type {number} */ i) => {
    at = i;
    readout.textContent = `${strip.names?.[i] ?? i}: ${formatNumber(strip.numbers[i])}`;
  };
  const button = h(
    "button",
    {
      type: "button",
      class: "strip",
      "aria-label": `${strip.label}: ${n} numbers. Arrow keys move, Enter explains.`,
      onmousemove: (/** @type {MouseEvent} */ event) => {
        show(
          Math.max(0, Math.min(count - 1, Math.floor((event.clientX - canvas.getBoundingClientRect().left) / cell))),
        );
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (!step) return;
        event.preventDefault();
        show(Math.max(0, Math.min(n - 1, at + step)));
      },
      onfocus: () => show(at),
      onclick: () => strip.onpick?.(at),
    },
    canvas,
  );
  const rest = n > count ? h("span", { class: "muted" }, `+ ${n - count}`) : null;
  return h("span", { class: "strip-row" }, button, rest, readout);
}
