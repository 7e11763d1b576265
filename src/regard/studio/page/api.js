// @ts-check
/** What the page asks its own server; nobody else is ever asked. */
import { Refused } from "./refused.js";
import { Tensor } from "./tensor.js";
import { Trace } from "./trace.js";

/** @typedef {import("./trace.js").Source} Source */
/** @typedef {import("./types.js").Description} Description */

/** @param {string} path @param {RequestInit} [options] */
async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}`, options);
  } catch {
    throw new Refused("no-server", "The server does not answer.", "Is `regard studio` still running in its terminal?");
  }
  if (answer.ok) return answer;
  let told;
  try {
    told = (await answer.json()).error;
  } catch {
    told = { code: "unreadable", message: `The server answered ${answer.status}.`, hint: "Try again." };
  }
  throw new Refused(told.code, told.message, told.hint);
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  return (await ask(path)).json();
}

/** @param {string} path @param {object} table @returns {Promise<any>} */
export async function post(path, table) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(table) };
  return (await ask(path, options)).json();
}

/**
 * The numbers of a trace as this server has them.
 * @implements {Source}
 */
export class Served {
  /** @param {string} path where the trace is, under /api/v1 */
  constructor(path) {
    this.path = path;
    this.live = path.startsWith("traces/");
  }

  /** @param {Description} description @param {string} slice @returns {Promise<Tensor>} */
  async tensor(description, slice) {
    const path = `${this.path}/tensors/${encodeURIComponent(description.name)}`;
    const answer = await ask(slice ? `${path}?slice=${encodeURIComponent(slice)}` : path);
    const split = (/** @type {string} */ text) => (text ? text.split(",") : []);
    const axes = split(answer.headers.get("x-axes") ?? "");
    const shape = split(answer.headers.get("x-shape") ?? "").map(Number);
    const bytes = await answer.arrayBuffer();
    return new Tensor(axes, shape, description.dtype === "f4" ? new Float32Array(bytes) : new Int32Array(bytes));
  }

  /** @param {string|null} name of the states; null: the usual ones @returns {Promise<import("./types.js").Gradients>} */
  gradients(name) {
    return get(`${this.path}/gradients${name === null ? "" : `?name=${encodeURIComponent(name)}`}`);
  }

  /** @returns {Promise<import("./types.js").Saliency>} */
  saliency() {
    return get(`${this.path}/saliency`);
  }

  /** Where a file of this trace is. @param {Record<string, string>} query */
  file(query) {
    return `/api/v1/${this.path}/export?${new URLSearchParams(query)}`;
  }
}

/** @param {string} number @returns {Promise<Trace>} */
export async function openTrace(number) {
  const path = `traces/${encodeURIComponent(number)}`;
  return new Trace(await get(path), new Served(path));
}

/** What a training made of its probe at a step. @param {string} run @param {number} step @returns {Promise<Trace>} */
export async function openProbe(run, step) {
  const path = `runs/${encodeURIComponent(run)}/probe/${step}`;
  return new Trace(await get(path), new Served(path));
}
