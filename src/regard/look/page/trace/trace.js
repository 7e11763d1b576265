// @ts-check
/** A trace: its header, and its tensors, loaded when needed and cached. */
import { FORECAST } from "../core/route.js";
import { ApiError } from "../core/api-error.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/** @typedef {import("../core/types.js").Header} Header */
/** @typedef {import("../core/types.js").Description} Description */
/**
 * Source of the tensors: the server, or the page itself.
 * @typedef {{tensor: (description: Description, slice: string) => Promise<Tensor>, live: boolean,
 *   gradients: (name: string|null) => Promise<import("../core/types.js").Gradients>,
 *   saliency: () => Promise<import("../core/types.js").Saliency>,
 *   explain: (query: Record<string, string>) => Promise<import("../core/types.js").Explanation>,
 *   file: (query: Record<string, string>) => string}} Source
 */

/** Format of a header with all parts; one of an earlier version lacks some. */
const FORMAT = "trace/3";

export class Trace {
  /** @param {Header} header @param {Source} source */
  constructor(header, source) {
    const tensors = header.tensors.map((tensor) => limitTensor(tensor, header.most_numbers ?? Infinity));
    this.header = { ...OLDER, ...header, tensors };
    this.source = source;
    /** @type {Map<string, Description>} */
    this.descriptions = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    /** @type {Map<string, Promise<Tensor>>} */
    this.requests = new Map();
  }

  /** Whether a server can run the model again: what-if changes, gradients, exports. */
  get live() {
    return this.source.live;
  }

  /** Whether an earlier version recorded this trace. */
  get isOutdated() {
    return this.header.format !== FORMAT;
  }

  /** Tensors that are too large to be sent as a whole. */
  get limited() {
    return this.header.tensors.filter(({ whole }) => whole);
  }

  /** @param {string} name */
  has(name) {
    return this.descriptions.has(name);
  }

  /** @param {string} name @returns {Description} */
  describe(name) {
    const description = this.descriptions.get(name);
    if (!description)
      throw new ApiError("unknown-tensor", `This trace has no tensor named ${name}.`, "Choose one from the list.");
    return description;
  }

  /** Tokens along an axis; null if it has none. @param {string} name @param {string} axis */
  tokens(name, axis) {
    const { whole, axes, shape } = this.describe(name);
    const all = this.allTokens(name, axis);
    return whole ? (all?.slice(0, shape[axes.indexOf(axis)]) ?? null) : all;
  }

  /** The same of all that was recorded, where only a part is sent. @param {string} name @param {string} axis */
  allTokens(name, axis) {
    const { sides, names, axes, shape } = this.describe(name);
    if (names[axis]) return names[axis].map((text) => ({ token: text, label: text }));
    if (sides[axis]) return this.header.sequences[sides[axis]] ?? null;
    return ["position", "query", "key"].includes(axis) ? this.seriesRows(shape[axes.indexOf(axis)]) : null;
  }

  /** Rows of the series that a forecaster reads, counted from its last, which is -1; null for other models. @param {number} count */
  seriesRows(count) {
    if (this.header.kind !== FORECAST) return null;
    return Array.from({ length: count }, (_, i) => ({ token: String(i - count), label: String(i - count) }));
  }

  /** @param {string} name @param {string} [slice] such as "head:2,query:0-9" @returns {Promise<Tensor>} */
  tensor(name, slice = "") {
    const key = `${name}?${slice}`;
    let tensor = this.requests.get(key);
    if (!tensor) {
      const description = this.describe(name);
      tensor = this.source.tensor(description, limitSlice(description, slice));
      this.requests.set(key, tensor);
      tensor.catch(() => this.requests.delete(key));
    }
    return tensor;
  }
}

/** Parts that headers of earlier versions may lack. */
const OLDER = { sequences: {}, steps: [], beam: [], fork: null };

/**
 * A description of as much as is sent at once: entries of the first axis, or if one is too large, of the next one.
 * @param {Description} tensor @param {number} most numbers @returns {Description}
 */
function limitTensor(tensor, most) {
  const complete = { ...tensor, sides: tensor.sides ?? {}, names: tensor.names ?? {} };
  let size = tensor.shape.reduce((a, b) => a * b, 1);
  if (size <= most) return complete;
  const shape = tensor.shape.map((entries) => {
    const one = size / entries; // numbers of one entry
    const sent = size <= most ? entries : Math.max(1, Math.floor(most / one));
    size = one * sent;
    return sent;
  });
  return { ...complete, shape, whole: tensor.shape };
}

/** A slice within what is sent at once. @param {Description} tensor @param {string} slice */
function limitSlice({ axes, shape, whole }, slice) {
  if (!whole) return slice;
  const named = slice.split(",").map((part) => part.split(":")[0]);
  const limits = axes
    .filter((axis, i) => shape[i] < whole[i] && !named.includes(axis))
    .map((axis) => `${axis}:0-${shape[axes.indexOf(axis)] - 1}`);
  return [slice, ...limits].filter(Boolean).join(",");
}
