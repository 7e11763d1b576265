// @ts-check
/** Selection of the inspector: shared by all its views and stored in the address. */
import { pushAddress, replaceAddress, traceAddress } from "./route.js";

/**
 * @typedef {{tab: string, tensor: string|null, head: number|null, query: number|null, key: number|null,
 *   step: number, layer: number|null, position: number|null, mode: string, view: string|null, at: string|null,
 *   number: string|null, frame: number|null, tour: string|null}} SelectionState
 * at: part of the model that the scene shows; number: an explained number; frame: a moment of the computation;
 * tour: a stop of the tour
 */

/** Tabs that had another name before. */
const RENAMED = /** @type {Record<string, string>} */ ({ story: "scene" });
/** Fields whose change is a level that Back returns to. */
const LEVELS = /** @type {const} */ (["tab", "at", "number", "tour"]);

export class Selection {
  /** @param {string} trace @param {URLSearchParams} query @param {string[]} tabs of this trace; the first is the default */
  constructor(trace, query, tabs) {
    this.trace = trace;
    this.tabs = tabs;
    /** @type {SelectionState} */
    this.current = readQuery(query, tabs);
    /** @type {Set<(changed: Partial<SelectionState>) => void>} */
    this.listeners = new Set();
    /** Called when another view is chosen: a tab, or a level of the picture. */
    this.onview = () => {};
  }

  /** Follows an address that Back or Forward led to. @param {URLSearchParams} query */
  follow(query) {
    const next = readQuery(query, this.tabs);
    const tab = next.tab === this.current.tab ? {} : { tab: next.tab };
    const { tab: _, ...rest } = next;
    Object.assign(this.current, next);
    this.notify({ ...rest, ...tab });
  }

  /** Calls the listeners, without those that an earlier one has stopped: of a tab that was left. @param {Partial<SelectionState>} changes */
  notify(changes) {
    for (const listener of [...this.listeners]) if (this.listeners.has(listener)) listener(changes);
  }

  /** @param {Partial<SelectionState>} changes */
  set(changes) {
    const before = { ...this.current };
    Object.assign(this.current, changes);
    const { tab, head } = this.current;
    const isHead = tab === "scene" && before.head !== head;
    const deeper = LEVELS.some((name) => before[name] !== this.current[name]);
    const change = deeper || isHead ? pushAddress : replaceAddress;
    change(this.address());
    if (isHead || before.tab !== tab || before.at !== this.current.at) this.onview();
    this.notify(changes);
  }

  /** Completes what the address leaves open: no level that Back returns to, and nothing is drawn again. @param {Partial<SelectionState>} changes */
  amend(changes) {
    Object.assign(this.current, changes);
    replaceAddress(this.address());
  }

  address() {
    const { step, mode } = this.current;
    return traceAddress(this.trace, { ...this.current, step: step || null, mode: mode === "softmax" ? null : mode });
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

/** @param {URLSearchParams} query @param {string[]} tabs @returns {SelectionState} */
function readQuery(query, tabs) {
  const integer = (/** @type {string} */ name) =>
    /^\d{1,9}$/.test(query.get(name) ?? "") ? Number(query.get(name)) : null;
  const asked = query.get("tab") ?? "";
  const tab = RENAMED[asked] ?? asked;
  return {
    tab: tabs.includes(tab) ? tab : tabs[0],
    tensor: query.get("tensor"),
    head: integer("head"),
    query: integer("query"),
    key: integer("key"),
    step: integer("step") ?? 0,
    layer: integer("layer"),
    position: integer("position"),
    mode: query.get("mode") ?? "softmax",
    view: query.get("view"),
    at: query.get("at"),
    number: query.get("number"),
    frame: integer("frame"),
    tour: query.get("tour"),
  };
}
