// @ts-check
/** What the reader has chosen in the inspector: one choice, shared by all its views, and written into the address. */
import { note, traceAddress } from "./route.js";

/**
 * @typedef {{tab: string, tensor: string|null, head: number|null, query: number|null, key: number|null,
 *   step: number, mode: string, view: string|null}} Chosen
 */

export class Selection {
  /** @param {string} trace @param {URLSearchParams} query */
  constructor(trace, query) {
    this.trace = trace;
    const whole = (/** @type {string} */ name) =>
      /^\d{1,9}$/.test(query.get(name) ?? "") ? Number(query.get(name)) : null;
    /** @type {Chosen} */
    this.now = {
      tab: query.get("tab") ?? "attention",
      tensor: query.get("tensor"),
      head: whole("head"),
      query: whole("query"),
      key: whole("key"),
      step: whole("step") ?? 0,
      mode: query.get("mode") ?? "softmax",
      view: query.get("view"),
    };
    /** @type {Set<(changed: Partial<Chosen>) => void>} */
    this.listeners = new Set();
  }

  /** @param {Partial<Chosen>} changes */
  set(changes) {
    Object.assign(this.now, changes);
    const { tab, tensor, head, query, key, step, mode, view } = this.now;
    note(
      traceAddress(this.trace, {
        tab,
        tensor,
        head,
        query,
        key,
        step: step || null,
        mode: mode === "softmax" ? null : mode,
        view,
      }),
    );
    for (const listener of [...this.listeners]) listener(changes);
  }

  /** @param {(changed: Partial<Chosen>) => void} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
