// @ts-check
/** Who looked at whom: one head as a matrix, the same as lines, and all heads. One selection for all three. */
import { h, replace, segments } from "./dom.js";
import { Grid, heads } from "./heads.js";
import { tell } from "./notice.js";
import { OneHead } from "./onehead.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./tensor.js").Tensor} Tensor */
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
  const loaded = await Promise.all(all.map((tensor) => trace.tensor(tensor.name)));
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
  const overview = everyHead(
    context,
    all.flatMap((tensor, i) => heads(tensor.name, loaded[i], !crossing(tensor.name))),
  );
  await one.draw();
  context.onleave(
    selection.listen((changed) => {
      if ("tensor" in changed || "head" in changed) overview.show();
      if (["tensor", "head", "mode", "view"].some((name) => name in changed)) one.draw().catch(tell);
    }),
  );
  steer(context, all, loaded);
  const small = loaded.every((weights) => weights.size("query") <= BESIDE && weights.size("key") <= BESIDE);
  return h(
    "div",
    { class: "stack" },
    h("div", { class: small ? "pair" : "stack" }, one.matrix, one.lines),
    overview.node,
  );
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

/** What the keys [ ] and { } do here. @param {Context} context @param {Description[]} all @param {Tensor[]} loaded */
function steer(context, all, loaded) {
  const { selection } = context;
  const at = () => all.findIndex((tensor) => tensor.name === selection.now.tensor);
  context.layer = (step) => {
    if (all[at() + step]) selection.set({ tensor: all[at() + step].name });
  };
  context.head = (step) => {
    const next = (selection.now.head ?? -1) + step;
    if (next >= -1 && next < loaded[at()].size("head")) selection.set({ head: next < 0 ? null : next });
  };
}
