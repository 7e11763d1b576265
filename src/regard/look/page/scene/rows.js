// @ts-check
/** Rows of the picture: which parts are drawn at a level, and in what form. */

/** @typedef {import("../core/types.js").GraphNode} GraphNode */
/** @typedef {import("./model-graph.js").ModelGraph} ModelGraph */
/** @typedef {import("./model-graph.js").Stack} Stack */
/** @typedef {"tokens"|"strips"|"band"|"cells"|"maps"|"image"|"patches"|"vector"|"bars"|"output"} Form */
/**
 * @typedef {{node: GraphNode, form: Form, tensor: string|null, title: string, height: number, layer: string|null,
 *   zoom: string, thin?: boolean}} Row
 * zoom: where a click leads, a layer or a part; thin: the only row of its layer
 */

/** Heights of rows in pixels. */
const HEIGHTS = { tokens: 22, strips: 14, band: 60, cells: 42, maps: 56, image: 96, patches: 96, vector: 16, bars: 60 };
/** Stacks with at most so many layers are drawn with all their parts; longer ones with one row each in the middle. */
const [OPEN_LAYERS, MANY_LAYERS] = [2, 8];
/** Kinds that stand for a layer that is not drawn with all its parts. */
const MAIN = ["self-attention", "cross-attention", "ffn", "recurrent", "feature-map"];

/** Rows of a stack from the first to the last computed. @param {ModelGraph} graph @param {Stack} stack @returns {Row[]} */
export function modelRows(graph, stack) {
  const layers = graph.layers(stack);
  const images = stack.nodes.some(({ kind }) => kind === "image");
  const open = layers.length <= OPEN_LAYERS && !images;
  const rows = stack.nodes.flatMap((node) => {
    const at = node.layer ? layers.indexOf(node.layer) : -1;
    if (at < 0 || open) return nodeRows(graph, node, 1);
    const last = stack.nodes.findLast(({ layer }) => layer === node.layer) === node;
    if (layers.length > MANY_LAYERS && at > 0 && at < layers.length - 1)
      return last
        ? nodeRows(graph, node, 0.6)
            .slice(-1)
            .map((row) => asLayer(row, graph.layerTitle(row.layer ?? "")))
        : [];
    if (MAIN.includes(node.kind)) return nodeRows(graph, node, 0.75).map((row) => asLayer(row));
    return last ? nodeRows(graph, node, 0.75).map((row) => asLayer(row, "Output", false)) : [];
  });
  return rows;
}

/** Rows of one layer, with what it reads. @param {ModelGraph} graph @param {Stack} stack @param {string} layer @returns {Row[]} */
export function layerRows(graph, stack, layer) {
  const own = stack.nodes.filter((node) => node.layer === layer);
  const ids = new Set(own.map(({ id }) => id));
  const outside = own
    .flatMap(({ id }) => graph.inputs(id))
    .filter(({ from, kind }) => !ids.has(from) && (kind === "flow" || kind === "residual"))
    .map(({ from }) => from);
  const inputs = stack.nodes.filter(({ id, kind }) => outside.includes(id) && kind !== "tokens");
  const tokens = stack.nodes.filter(({ kind }) => kind === "tokens");
  const read = inputs.flatMap((node) => nodeRows(graph, node, 1.7).slice(-1));
  return [
    ...tokens.flatMap((node) => nodeRows(graph, node, 1)),
    ...read.map((row) => ({ ...row, layer: null, title: `Input: ${row.title.toLowerCase()}` })),
    ...own.flatMap((node) => nodeRows(graph, node, 1.7, true)),
  ];
}

/** A row that stands for its layer. @param {Row} row @param {string} [title] @param {boolean} [thin] @returns {Row} */
function asLayer(row, title, thin = title !== undefined) {
  return { ...row, zoom: row.layer ?? row.zoom, title: title ?? row.title, thin };
}

/** @param {ModelGraph} graph @param {GraphNode} node @param {number} scale of heights @param {boolean} [all] also what is inside @returns {Row[]} */
function nodeRows(graph, node, scale, all = false) {
  /** @param {Form} form @param {string|null} tensor @param {string} [title] @returns {Row} */
  const row = (form, tensor, title = node.title) => ({
    node,
    form,
    tensor,
    title,
    height: form === "output" ? 0 : Math.round(HEIGHTS[form] * (form === "tokens" ? 1 : scale)),
    layer: node.layer ?? null,
    zoom: node.id,
  });
  if (node.kind === "tokens") return [row("tokens", null)];
  if (node.kind === "output") return [row("output", node.tensor ?? null)];
  if (!graph.has(node.tensor)) return [];
  const tensor = /** @type {string} */ (node.tensor);
  const { axes } = graph.trace.describe(tensor);
  if (node.kind === "image") return graph.has("pixels") ? [row("image", "pixels")] : [];
  if (node.kind === "patches") return graph.has("pixels") ? [row("patches", "pixels")] : [];
  if (node.kind.endsWith("attention")) return attentionRows(graph, node, row, all);
  if (node.kind === "ffn") {
    const inner = own(graph, node, "activations");
    const rows = inner ? [row("strips", inner, all ? "Feed-forward: hidden" : "Feed-forward")] : [];
    return all || !rows.length ? [...rows, row("strips", tensor, "Feed-forward: output")] : rows;
  }
  if (node.kind === "recurrent") return [row("cells", tensor)];
  if (axes.includes("channel")) return axes.includes("row") ? [row("maps", tensor)] : [];
  if (node.kind === "mix") return [row("bars", tensor)];
  if (graph.place(tensor) === null) return axes.length === 1 ? [row("vector", tensor)] : [];
  return axes.length === 2 ? [row("strips", tensor)] : [];
}

/**
 * @param {ModelGraph} graph @param {GraphNode} node
 * @param {(form: Form, tensor: string|null, title?: string) => Row} row @param {boolean} all
 */
function attentionRows(graph, node, row, all) {
  const [weights, output] = [own(graph, node, "weights"), own(graph, node, "output")];
  const rows = weights ? [row("band", weights)] : [];
  return all && output ? [...rows, row("strips", output, "Output projection")] : rows;
}

/** A tensor of a part by its last name. @param {ModelGraph} graph @param {GraphNode} node @param {string} last */
export function own(graph, node, last) {
  return node.tensors.find((name) => name.endsWith(`.${last}`) && graph.has(name)) ?? null;
}
