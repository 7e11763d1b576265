// @ts-check
/** Who looked at whom: one head as a matrix, the same as lines, and all heads. One selection for all three. */
import { h, replace, segments } from "./dom.js";
import { Grid, heads } from "./heads.js";
import { tell } from "./notice.js";
import { OneHead } from "./onehead.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Description} Description */

const BESIDE = 12;

/** The tensors that are attention weights: they have a query and a key. @param {import("./types.js").Header} header */
export function attentions(header) {
  return header.tensors.filter((t) => t.name.endsWith("weights") && t.axes.includes("query") && t.axes.includes("key"));
}

/** @param {Context} context */
export async function attentionTab(context) {
  const { trace, selection } = context;
  const all = attentions(trace.header);
  const crossing = (/** @type {string} */ name) => {
    const { sides } = trace.describe(name);
    return (sides.query === "source") !== (sides.key === "source");
  };
  if (!all.some((tensor) => tensor.name === selection.now.tensor)) {
    const across = all.filter((tensor) => crossing(tensor.name));
    const fitting = across.length ? across : all;
    selection.now.tensor = fitting[fitting.length - 1].name;
  }
  const one = new OneHead(context, all, crossing);
  await one.draw();
  const overview = later(context, all, crossing);
  context.onleave(
    selection.listen((changed) => {
      if ("tensor" in changed || "head" in changed) overview.show();
      if (["tensor", "head", "mode", "view"].some((name) => name in changed)) one.draw().catch(tell);
    }),
  );
  steer(context, all);
  const small = all.every((tensor) => size(tensor, "query") <= BESIDE && size(tensor, "key") <= BESIDE);
  return h(
    "div",
    { class: "stack" },
    h("div", { class: small ? "pair" : "stack" }, one.matrix, one.lines),
    overview.node,
  );
}

/** @param {Description} tensor @param {string} axis */
function size(tensor, axis) {
  return tensor.axes.includes(axis) ? tensor.shape[tensor.axes.indexOf(axis)] : 1;
}

/**
 * All heads at a glance, as soon as all of their numbers are there: nobody waits for them to see one.
 * @param {Context} context @param {Description[]} all @param {(name: string) => boolean} crossing
 */
function later(context, all, crossing) {
  const node = h("div", {}, h("section", { class: "card" }, h("h2", {}, "All heads"), h("p", { class: "muted" }, "…")));
  let show = () => {};
  let gone = false;
  context.onleave(() => {
    gone = true;
  });
  const load = async () => {
    const asked = all.map((tensor) => context.trace.tensor(tensor.name));
    const each = [];
    for (const [i, tensor] of all.entries()) {
      each.push(...(await heads(tensor.name, await asked[i], !crossing(tensor.name))));
      if (gone) return;
    }
    const found = everyHead(context, each);
    replace(node, found.node);
    show = found.show;
  };
  load().catch(tell);
  return { node, show: () => show() };
}

/** All heads at a glance, in either order. @param {Context} context @param {import("./heads.js").Head[]} all */
function everyHead(context, all) {
  const { selection } = context;
  const node = h("section", { class: "card" });
  const options = [
    { value: "layer", text: "by layer" },
    { value: "entropy", text: "sharpest first" },
  ];
  const chosen = () => ({ name: selection.now.tensor, head: selection.now.head });
  let drawn = draw("layer");

  /** @param {string} order */
  function draw(order) {
    const sorted = order === "layer" ? all : [...all].sort((a, b) => a.spread - b.spread);
    const found = new Grid(sorted, chosen(), (tensor, head) => selection.set({ tensor, head }));
    const orders = segments("Order", options, order, (value) => {
      drawn = draw(value);
    });
    replace(node, h("div", { class: "row" }, h("h2", {}, "All heads"), orders), found.node);
    return found;
  }
  return { node, show: () => drawn.show(chosen()) };
}

/** What the keys [ ] and { } do here. @param {Context} context @param {Description[]} all */
function steer(context, all) {
  const { selection } = context;
  const at = () => all.findIndex((tensor) => tensor.name === selection.now.tensor);
  context.layer = (step) => {
    if (all[at() + step]) selection.set({ tensor: all[at() + step].name });
  };
  context.head = (step) => {
    const next = (selection.now.head ?? -1) + step;
    if (next >= -1 && next < size(all[at()], "head")) selection.set({ head: next < 0 ? null : next });
  };
}
