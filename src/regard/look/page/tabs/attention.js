// @ts-check
/** Attention tab: one head as a heat map and as lines, and a grid of all heads, with one selection. */
import { buttonGroup, h, replace } from "../core/dom.js";
import { showError } from "../core/notice.js";
import { HeadGrid, loadHeads } from "./head-grid.js";
import { headRoles } from "./head-roles.js";
import { OneHead } from "./one-head.js";
import { rolloutPanel } from "./rollout.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */

/** Tokens up to which the heat map and the lines stand side by side. */
const SIDE_BY_SIDE = 12;

/** Tensors of attention weights. @param {import("../core/types.js").Header} header */
export function attentionTensors(header) {
  return header.tensors.filter((t) => t.name.endsWith("weights") && t.axes.includes("query") && t.axes.includes("key"));
}

/** The last cross-attention over the source. @param {import("../core/types.js").Header} header */
export function crossTensor(header) {
  return attentionTensors(header).findLast(({ sides }) => sides.key === "source" && sides.query !== "source");
}

/** @param {Context} context */
export async function attentionTab(context) {
  const { trace, selection } = context;
  const all = attentionTensors(trace.header);
  const isCross = (/** @type {string} */ name) => {
    const { sides } = trace.describe(name);
    return (sides.query === "source") !== (sides.key === "source");
  };
  const complete = () => {
    if (all.some((tensor) => tensor.name === selection.current.tensor)) return;
    const crossTensors = all.filter((tensor) => isCross(tensor.name));
    const preferred = crossTensors.length ? crossTensors : all;
    selection.current.tensor = preferred[preferred.length - 1].name;
  };
  complete();
  context.onleave(selection.listen(["tensor"], complete)); // an address may name none
  const one = new OneHead(context, all, isCross);
  await one.draw();
  const overview = lazyHeadGrid(context, all);
  context.onleave(selection.listen(["tensor", "head"], () => overview.show()));
  context.onleave(selection.listen(["tensor", "head", "mode", "view"], () => one.draw().catch(showError)));
  bindKeys(context, all);
  const small = all.every((tensor) => ["query", "key"].every((axis) => axisSize(tensor, axis) <= SIDE_BY_SIDE));
  return h(
    "div",
    { class: "stack" },
    h("div", { class: small ? "pair" : "stack" }, one.matrix, one.lines),
    overview.node,
    rolloutPanel(context),
    headRoles(context),
  );
}

/** @param {Description} tensor @param {string} axis */
function axisSize(tensor, axis) {
  return tensor.axes.includes(axis) ? tensor.shape[tensor.axes.indexOf(axis)] : 1;
}

/**
 * The grid of all heads, loaded after the single head is shown.
 * @param {Context} context @param {Description[]} all
 */
function lazyHeadGrid(context, all) {
  const node = h("div", {}, h("section", { class: "card" }, h("h2", {}, "All heads"), h("p", { class: "muted" }, "…")));
  let show = () => {};
  let closed = false;
  context.onleave(() => (closed = true));
  const load = async () => {
    const requests = all.map((tensor) => context.trace.tensor(tensor.name));
    const each = [];
    for (const [i, tensor] of all.entries()) {
      each.push(...(await loadHeads(context.trace, tensor.name, await requests[i])));
      if (closed) return;
    }
    const card = headGridCard(context, each);
    replace(node, card.node);
    show = card.show;
  };
  load().catch(showError);
  return { node, show: () => show() };
}

/** The grid of all heads, with a choice of order. @param {Context} context @param {import("./head-grid.js").Head[]} all */
function headGridCard(context, all) {
  const { selection } = context;
  const node = h("section", { class: "card" });
  const options = [
    { value: "layer", text: "by layer" },
    { value: "entropy", text: "lowest entropy first" },
  ];
  const chosen = () => ({ name: selection.current.tensor, head: selection.current.head });
  let current = draw("layer");

  /** @param {string} order */
  function draw(order) {
    const sorted = order === "layer" ? all : [...all].sort((a, b) => a.entropy - b.entropy);
    const grid = new HeadGrid(sorted, chosen(), (tensor, head) => selection.set({ tensor, head }));
    const orders = buttonGroup("Order", options, order, (value) => {
      current = draw(value);
    });
    replace(node, h("div", { class: "row" }, h("h2", {}, "All heads"), orders), grid.node);
    return grid;
  }
  return { node, show: () => current.show(chosen()) };
}

/** Bindings of the keys [ ] and { }. @param {Context} context @param {Description[]} all */
function bindKeys(context, all) {
  const { selection } = context;
  const at = () => all.findIndex((tensor) => tensor.name === selection.current.tensor);
  context.layer = (step) => {
    if (all[at() + step]) selection.set({ tensor: all[at() + step].name });
  };
  context.head = (step) => {
    const next = (selection.current.head ?? -1) + step;
    if (next >= -1 && next < axisSize(all[at()], "head")) selection.set({ head: next < 0 ? null : next });
  };
}
