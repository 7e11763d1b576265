// @ts-check
/** What the page asks its own server; nobody else is ever asked. */
import { Tensor } from "./tensor.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Description} Description */

/** A request that was refused: a code for us, a message and a way out for the reader. */
export class Refused extends Error {
  /** @param {string} code @param {string} message @param {string} hint */
  constructor(code, message, hint) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

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

/** A trace: its header, and its tensors as they are asked for. */
export class Trace {
  /** @param {Header} header */
  constructor(header) {
    this.header = header;
    /** @type {Map<string, Description>} */
    this.descriptions = new Map(header.tensors.map((tensor) => [tensor.name, tensor]));
    /** @type {Map<string, Promise<Tensor>>} */
    this.asked = new Map();
  }

  /** @param {string} number */
  static async open(number) {
    return new Trace(await get(`traces/${encodeURIComponent(number)}`));
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
      found = this.fetch(name, slice);
      this.asked.set(key, found);
      found.catch(() => this.asked.delete(key));
    }
    return found;
  }

  /** @param {string} name @param {string} slice */
  async fetch(name, slice) {
    const { dtype } = this.describe(name);
    const path = `traces/${encodeURIComponent(this.header.id)}/tensors/${encodeURIComponent(name)}`;
    const answer = await ask(slice ? `${path}?slice=${encodeURIComponent(slice)}` : path);
    const split = (/** @type {string} */ text) => (text ? text.split(",") : []);
    const axes = split(answer.headers.get("x-axes") ?? "");
    const shape = split(answer.headers.get("x-shape") ?? "").map(Number);
    const bytes = await answer.arrayBuffer();
    return new Tensor(axes, shape, dtype === "f4" ? new Float32Array(bytes) : new Int32Array(bytes));
  }

  /** Where a file of this trace is. @param {Record<string, string>} query */
  file(query) {
    return `/api/v1/traces/${encodeURIComponent(this.header.id)}/export?${new URLSearchParams(query)}`;
  }
}
