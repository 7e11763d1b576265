// @ts-check
/** A trace: its header, and its tensors as they are asked for, wherever they come from. */
import { Refused } from "./refused.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Description} Description */
/**
 * Where the numbers come from: a server, or the page itself.
 * @typedef {{tensor: (description: Description, slice: string) => Promise<Tensor>, live: boolean,
 *   gradients: (name: string|null) => Promise<import("./types.js").Gradients>,
 *   saliency: () => Promise<import("./types.js").Saliency>,
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
    this.asked = new Map();
  }

  /** Whether somebody can be asked for another pass: what if, gradients, files. */
  get live() {
    return this.source.live;
  }

  /** @param {string} name */
  has(name) {
    return this.descriptions.has(name);
  }

  /** @param {string} name @returns {Description} */
  describe(name) {
    const found = this.descriptions.get(name);
    if (!found)
      throw new Refused("unknown-tensor", `This trace has no tensor called ${name}.`, "Pick one of the list.");
    return found;
  }

  /** The words along an axis; null if it wears none. @param {string} name @param {string} axis */
  words(name, axis) {
    const { sides, names } = this.describe(name);
    if (names[axis]) return names[axis].map((text) => ({ token: text, shown: text }));
    return sides[axis] ? this.header.sequences[sides[axis]] : null;
  }

  /** @param {string} name @param {string} [slice] such as "head:2,query:0-9" @returns {Promise<Tensor>} */
  tensor(name, slice = "") {
    const key = `${name}?${slice}`;
    let found = this.asked.get(key);
    if (!found) {
      found = this.source.tensor(this.describe(name), slice);
      this.asked.set(key, found);
      found.catch(() => this.asked.delete(key));
    }
    return found;
  }
}
