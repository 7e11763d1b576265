// @ts-check
/** Signed numbers as bars around zero, in a table: the largest first, or in their own order. */
import { buttonGroup, h, replace, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { table } from "./table.js";

/** @typedef {{label: string, value: number, onclick?: () => void}} Bar */
/** @typedef {{title: string, columns: [string, string], bars: Bar[], own: string, note?: string}} BarData */

/** Bars that are shown at first. */
const SHOWN = 12;

/** @param {BarData} data own: name of their own order */
export function signedBars(data) {
  const node = h("div", { class: "signed-bars" });
  const top = data.bars.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0);
  let [order, all] = ["largest", false];
  const draw = () => {
    const sorted =
      order === "largest" ? [...data.bars].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)) : data.bars;
    const shown = all ? sorted : sorted.slice(0, SHOWN);
    const more = sorted.length - SHOWN;
    const options = [
      { value: "largest", text: "largest first" },
      { value: "own", text: data.own },
    ];
    const choose = (/** @type {string} */ value) => {
      order = value;
      draw();
    };
    const toggle = () => {
      all = !all;
      draw();
    };
    replace(
      node,
      data.bars.length > 2 ? buttonGroup("Order", options, order, choose) : null,
      table(
        data.title,
        [...data.columns, ""],
        shown.map((bar) => barRow(bar, top)),
        { kind: "numbers candidates" },
      ),
      more > 0
        ? h("button", { type: "button", class: "link", onclick: toggle }, all ? "Show fewer" : `Show ${more} more`)
        : null,
      data.note ? h("p", { class: "muted" }, data.note) : null,
    );
  };
  draw();
  return node;
}

/** @param {Bar} bar @param {number} top */
function barRow({ label, value, onclick }, top) {
  const meter = h("span", { class: value < 0 ? "meter negative" : "meter positive" });
  meter.style.width = `${top > 0 ? (98 * Math.abs(value)) / top : 0}%`;
  const name = onclick ? h("button", { type: "button", class: "link", onclick }, word(label)) : word(label);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    h("td", {}, formatNumber(value)),
    h(
      "td",
      { "aria-hidden": "true" },
      h("span", { class: "half" }, value < 0 ? meter : null),
      h("span", { class: "half" }, value < 0 ? null : meter),
    ),
  );
}
