// @ts-check
/** A trace that is in the page itself: its numbers are bytes, one tensor after the other, written in base 64. */
import { Tensor } from "./tensor.js";
import { Trace } from "./trace.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Description} Description */
/** @typedef {import("./trace.js").Source} Source */

/** @implements {Source} */
class Embedded {
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
    return /** @type {Tensor} */ (this.tensors.get(description.name)).cut(slice);
  }

  /** @param {string|null} name @returns {Promise<import("./types.js").Gradients>} */
  async gradients(name) {
    const all = this.header.gradients ?? [];
    return all.find((found) => found.name === name) ?? all[0];
  }

  /** @returns {Promise<import("./types.js").Saliency>} */
  async saliency() {
    return /** @type {import("./types.js").Saliency} */ (this.header.saliency);
  }

  /** @returns {string} */
  file() {
    throw new Error("a page without a server has no other files");
  }
}

/** The trace that the page holds. */
export function embeddedTrace() {
  const text = (/** @type {string} */ id) => document.getElementById(id)?.textContent ?? "";
  const header = JSON.parse(text("trace-header"));
  return new Trace(header, new Embedded(header, unpacked(text("trace-numbers").trim())));
}

/** @param {string} base64 */
function unpacked(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}
