// @ts-check
/** A trace: its header, and its tensors, loaded when needed and cached. */
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

export class Trace {
  /** @param {Header} header @param {Source} source */
  constructor(header, source) {
    this.header = header;
    this.source = source;
    /** @type {Map<string, Description>} */
    this.descriptions = new Map(header.tensors.map((tensor) => [tensor.name, tensor]));
    /** @type {Map<string, Promise<Tensor>>} */
    this.requests = new Map();
  }

  /** Whether a server can run the model again: what-if changes, gradients, exports. */
  get live() {
    return this.source.live;
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
    const { sides, names } = this.describe(name);
    if (names[axis]) return names[axis].map((text) => ({ token: text, label: text }));
    return sides[axis] ? this.header.sequences[sides[axis]] : null;
  }

  /** @param {string} name @param {string} [slice] such as "head:2,query:0-9" @returns {Promise<Tensor>} */
  tensor(name, slice = "") {
    const key = `${name}?${slice}`;
    let tensor = this.requests.get(key);
    if (!tensor) {
      tensor = this.source.tensor(this.describe(name), slice);
      this.requests.set(key, tensor);
      tensor.catch(() => this.requests.delete(key));
    }
    return tensor;
  }
}
