// @ts-check
/** Candidates with their probabilities as bars. */
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { table } from "./table.js";

/**
 * @typedef {{label: string, probability: number, note?: string, action?: Node|null}} Bar
 */

/** @param {string} title @param {Bar[]} bars @param {string} [kind] what the candidates are */
export function candidateBars(title, bars, kind = "token") {
  const rows = bars.map(({ label, probability, note, action }, rank) =>
    h(
      "tr",
      { class: note ? "picked" : null },
      h("td", {}, String(rank + 1)),
      h(
        "th",
        { scope: "row" },
        h("span", { class: "candidate" }, word(label), note ? h("small", {}, ` ${note}`) : (action ?? null)),
      ),
      h("td", {}, formatNumber(probability)),
      h("td", { class: "bar" }, bar(probability)),
    ),
  );
  return table(title, ["", kind, "probability", ""], rows, { kind: "numbers candidates bars" });
}

/** @param {number} share */
function bar(share) {
  const meter = h("span", { class: "meter" });
  meter.style.width = `${(100 * share).toFixed(2)}%`;
  return h("span", { class: "track" }, meter);
}
