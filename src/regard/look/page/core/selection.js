// @ts-check
/** Selection of the inspector: shared by all its views and stored in the address. */
import { replaceAddress, traceAddress } from "./route.js";

/**
 * @typedef {{tab: string, tensor: string|null, head: number|null, query: number|null, key: number|null,
 *   step: number, layer: number|null, position: number|null, mode: string, view: string|null}} SelectionState
 */

export class Selection {
  /** @param {string} trace @param {URLSearchParams} query */
  constructor(trace, query) {
    this.trace = trace;
    const integer = (/** @type {string} */ name) =>
      /^\d{1,9}$/.test(query.get(name) ?? "") ? Number(query.get(name)) : null;
    /** @type {SelectionState} */
    this.current = {
      tab: query.get("tab") ?? "attention",
      tensor: query.get("tensor"),
      head: integer("head"),
      query: integer("query"),
      key: integer("key"),
      step: integer("step") ?? 0,
      layer: integer("layer"),
      position: integer("position"),
      mode: query.get("mode") ?? "softmax",
      view: query.get("view"),
    };
    /** @type {Set<(changed: Partial<SelectionState>) => void>} */
    this.listeners = new Set();
  }

  /** @param {Partial<SelectionState>} changes */
  set(changes) {
    Object.assign(this.current, changes);
    const { tab, tensor, head, query, key, step, layer, position, mode, view } = this.current;
    replaceAddress(
      traceAddress(this.trace, {
        tab,
        tensor,
        head,
        query,
        key,
        step: step || null,
        layer,
        position,
        mode: mode === "softmax" ? null : mode,
        view,
      }),
    );
    for (const listener of [...this.listeners]) listener(changes);
  }

  /** Calls a function when any of the named fields is set; returns the way to stop it. @param {(keyof SelectionState)[]} names @param {() => void} act */
  listen(names, act) {
    const listener = (/** @type {Partial<SelectionState>} */ changes) => {
      if (names.some((name) => name in changes)) act();
    };
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
