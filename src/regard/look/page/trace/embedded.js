// @ts-check
/** The trace embedded in a single-file page: tensors one after the other, as base64. */
import { Tensor } from "./tensor.js";
import { Trace } from "./trace.js";

/** @typedef {import("../core/types.js").Header} Header */
/** @typedef {import("../core/types.js").Description} Description */
/** @typedef {import("./trace.js").Source} Source */

/** @implements {Source} */
class EmbeddedSource {
  /** @param {Header} header @param {ArrayBuffer} bytes */
  constructor(header, bytes) {
    this.live = false;
    this.header = header;
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
    let at = 0;
    for (const { name, axes, shape, dtype } of header.tensors) {
      const count = shape.reduce((a, b) => a * b, 1);
      const data = dtype === "f4" ? new Float32Array(bytes, at, count) : new Int32Array(bytes, at, count);
      this.tensors.set(name, new Tensor(axes, shape, data));
      at += 4 * count;
    }
  }

  /** @param {Description} description @param {string} slice @returns {Promise<Tensor>} */
  async tensor(description, slice) {
    return /** @type {Tensor} */ (this.tensors.get(description.name)).slice(slice);
  }

  /** @param {string|null} name @returns {Promise<import("../core/types.js").Gradients>} */
  async gradients(name) {
    const all = this.header.gradients ?? [];
    return all.find((gradients) => gradients.name === name) ?? all[0];
  }

  /** @returns {Promise<import("../core/types.js").Saliency>} */
  async saliency() {
    return /** @type {import("../core/types.js").Saliency} */ (this.header.saliency);
  }

  /** @returns {Promise<import("../core/types.js").Explanation>} */
  async explain() {
    throw new Error("a page without a server has no weights");
  }

  /** @returns {string} */
  file() {
    throw new Error("a page without a server cannot export files");
  }
}

/** Trace of the page. */
export function embeddedTrace() {
  const text = (/** @type {string} */ id) => document.getElementById(id)?.textContent ?? "";
  const header = JSON.parse(text("trace-header"));
  return new Trace(header, new EmbeddedSource(header, decodeBase64(text("trace-numbers").trim())));
}

/** @param {string} base64 */
function decodeBase64(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}
