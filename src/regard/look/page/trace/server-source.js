// @ts-check
/** Traces on the server: tensors, gradients, saliency and files are requested when they are needed. */
import { get, request } from "../core/api.js";
import { Tensor } from "./tensor.js";
import { Trace } from "./trace.js";

/** @typedef {import("./trace.js").Source} Source */
/** @typedef {import("../core/types.js").Description} Description */

/**
 * Tensors and views of a trace on the server.
 * @implements {Source}
 */
export class ServerSource {
  /** @param {string} path of the trace, under /api/v1 */
  constructor(path) {
    this.path = path;
    this.live = path.startsWith("traces/");
  }

  /** @param {Description} description @param {string} slice @returns {Promise<Tensor>} */
  async tensor(description, slice) {
    const path = `${this.path}/tensors/${encodeURIComponent(description.name)}`;
    const response = await request(slice ? `${path}?slice=${encodeURIComponent(slice)}` : path);
    const split = (/** @type {string} */ text) => (text ? text.split(",") : []);
    const axes = split(response.headers.get("x-axes") ?? "");
    const shape = split(response.headers.get("x-shape") ?? "").map(Number);
    const bytes = await response.arrayBuffer();
    return new Tensor(axes, shape, description.dtype === "f4" ? new Float32Array(bytes) : new Int32Array(bytes));
  }

  /** @param {string|null} name of the states; null: the default ones @returns {Promise<import("../core/types.js").Gradients>} */
  gradients(name) {
    return get(`${this.path}/gradients${name === null ? "" : `?name=${encodeURIComponent(name)}`}`);
  }

  /** @returns {Promise<import("../core/types.js").Saliency>} */
  saliency() {
    return get(`${this.path}/saliency`);
  }

  /** How a number was computed. @param {Record<string, string>} query @returns {Promise<import("../core/types.js").Explanation>} */
  async explain(query) {
    return readNumbers(await get(`${this.path}/explain?${new URLSearchParams(query)}`));
  }

  /** Address of an export. @param {Record<string, string>} query */
  file(query) {
    return `/api/v1/${this.path}/export?${new URLSearchParams(query)}`;
  }
}

/** Numbers that JSON cannot hold come as text. @param {any} part @returns {any} */
function readNumbers(part) {
  if (part === "nan") return NaN;
  if (part === "inf" || part === "-inf") return part === "inf" ? Infinity : -Infinity;
  if (Array.isArray(part)) return part.map(readNumbers);
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [key, key === "name" ? value : readNumbers(value)]),
  );
}

/** @param {string} id @returns {Promise<Trace>} */
export async function openTrace(id) {
  const path = `traces/${encodeURIComponent(id)}`;
  return new Trace(await get(path), new ServerSource(path));
}

/** Trace of the probe sentence at a training step. @param {string} run @param {number} step @returns {Promise<Trace>} */
export async function openProbe(run, step) {
  const path = `runs/${encodeURIComponent(run)}/probe/${step}`;
  return new Trace(await get(path), new ServerSource(path));
}
