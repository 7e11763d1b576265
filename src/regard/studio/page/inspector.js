// @ts-check
/** One trace: tabs on the stage, its tensors on the left, the explanation on the right. */
import { attentions, attentionTab } from "./attention.js";
import { decodeTab, saidByWords } from "./decode.js";
import { h, replace, word } from "./dom.js";
import { Drawer } from "./drawer.js";
import { exportDialog } from "./exporting.js";
import { ago } from "./format.js";
import { differentiable, gradientsTab } from "./gradients.js";
import { numbersTab } from "./numbers.js";
import { outline } from "./outline.js";
import { Refused } from "./refused.js";
import { hangs, hung, saliencyTab } from "./saliency.js";
import { Selection } from "./selection.js";
import { answered, called, SERIAL } from "./series.js";
import { statesTab, vectors } from "./states.js";
import { storyTab } from "./story.js";
import { changed, wishes } from "./whatif.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./types.js").Header} Header */
/**
 * What a tab is given, and where it leaves what the keys do while it is open.
 * @typedef {{trace: Trace, selection: Selection, drawer: Drawer, onleave: (undo: () => void) => void,
 *   layer?: (by: number) => void, head?: (by: number) => void, step?: (by: number) => void, play?: () => void}} Context
 */
/** @typedef {{node: HTMLElement, key: (event: KeyboardEvent) => boolean, leave: () => void, redraw: () => void, title: string,
 *   header?: Header, model?: string}} Screen */
/** @typedef {{text: string, make: (context: Context) => Promise<HTMLElement>, fits: (trace: Trace) => boolean}} Tab */

/** Characters of a heading that has a box of its own. */
const LONG = 240;

/** @type {Record<string, Tab>} */
const TABS = {
  story: { text: "Story", make: storyTab, fits: () => true },
  attention: { text: "Attention", make: attentionTab, fits: ({ header }) => attentions(header).length > 0 },
  decode: { text: "Decode", make: decodeTab, fits: saidByWords },
  states: { text: "States", make: statesTab, fits: ({ header }) => vectors(header).length > 0 },
  gradients: { text: "Gradients", make: gradientsTab, fits: (trace) => differentiable(trace).length > 0 },
  saliency: { text: "Saliency", make: saliencyTab, fits: hung },
  numbers: { text: "Numbers", make: numbersTab, fits: () => true },
};

/** @param {Trace} trace @param {URLSearchParams} query @returns {Promise<Screen>} */
export async function inspector(trace, query) {
  const screen = new Inspector(trace, query);
  await screen.open();
  return {
    node: screen.node,
    title: called(trace.header.kind, trace.header.text),
    header: trace.header,
    redraw: () => screen.open(),
    leave: () => screen.leave(),
    key: (event) => screen.key(event),
  };
}

class Inspector {
  /** @param {Trace} trace @param {URLSearchParams} query */
  constructor(trace, query) {
    this.trace = trace;
    this.selection = new Selection(trace.header.id, query);
    this.tabs = Object.entries(TABS).filter(([, tab]) => tab.fits(trace));
    if (!this.tabs.some(([name]) => name === this.selection.now.tab))
      this.selection.now.tab = this.tabs[1]?.[0] ?? "numbers";
    this.drawer = new Drawer(trace);
    /** @type {(() => void)[]} */
    this.undo = [];
    /** @type {Context} */
    this.context = { trace, selection: this.selection, drawer: this.drawer, onleave: (f) => this.undo.push(f) };
    this.side = outline(this.context);
    this.bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    this.stage = h("div", { class: "panel", id: "panel", role: "tabpanel" });
    this.turn = 0;
    this.stop = this.selection.listen((changed) => {
      if ("tab" in changed) this.open();
    });
    this.node = this.frame();
  }

  frame() {
    const sheet = h("button", { type: "button", class: "sheet-button", "aria-expanded": "false" }, "Tensors");
    const node = h(
      "div",
      { class: "inspector" },
      this.side.node,
      h(
        "main",
        { class: "stage", tabindex: "-1" },
        this.head(),
        h("div", { class: "row tabs-row" }, this.bar, sheet),
        this.stage,
      ),
      this.drawer.node,
    );
    sheet.addEventListener("click", () => {
      sheet.setAttribute("aria-expanded", String(node.classList.toggle("outline-open")));
    });
    return node;
  }

  head() {
    const { header, live } = this.trace;
    const [given, answer] = [called(header.kind, header.text), answered(header.kind, header.answer)];
    return h(
      "header",
      { class: "trace-head" },
      h(
        "h1",
        given.length + answer.length > LONG ? { class: "long", tabindex: "0" } : {},
        word(given, "sentence source"),
        answer !== given ? h("span", { class: "arrow", "aria-label": "became" }, " → ") : null,
        answer !== given ? word(answer || "(nothing)", "sentence target") : null,
      ),
      header.kind === SERIAL
        ? h("details", {}, h("summary", {}, "The forecast"), h("pre", { tabindex: "0" }, header.answer))
        : null,
      h(
        "p",
        { class: "muted" },
        `${madeBy(header)} `,
        live
          ? h("button", { type: "button", class: "link", onclick: () => exportDialog(this.context) }, "Export")
          : null,
      ),
      header.left?.length
        ? h("p", { class: "muted" }, `${header.left.length} tensors were too large for this file; they are not in it.`)
        : null,
      changed(this.context),
      wishes(this.context),
    );
  }

  drawTabs() {
    const now = this.selection.now.tab;
    replace(this.bar, ...this.tabs.map(([name, tab]) => this.tab(name, tab, name === now)));
    this.stage.setAttribute("aria-labelledby", `tab-${now}`);
    document.getElementById(`tab-${now}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @param {string} name @param {Tab} tab @param {boolean} chosen */
  tab(name, tab, chosen) {
    return h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-selected": String(chosen),
        "aria-controls": "panel",
        tabindex: chosen ? "0" : "-1",
        onclick: () => this.selection.set({ tab: name }),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.walk(event, name),
      },
      tab.text,
    );
  }

  /** @param {KeyboardEvent} event @param {string} name */
  walk(event, name) {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const at = this.tabs.findIndex(([other]) => other === name);
    const next = this.tabs[(at + by + this.tabs.length) % this.tabs.length][0];
    this.selection.set({ tab: next });
    document.getElementById(`tab-${next}`)?.focus();
  }

  leaveTab() {
    for (const f of this.undo) f();
    this.undo = [];
    delete this.context.layer;
    delete this.context.head;
    delete this.context.step;
    delete this.context.play;
  }

  leave() {
    this.stop();
    this.side.stop();
    this.leaveTab();
  }

  async open() {
    const mine = ++this.turn;
    this.leaveTab();
    this.drawTabs();
    this.stage.setAttribute("aria-busy", "true");
    try {
      const node = await TABS[this.selection.now.tab].make(this.context);
      if (mine === this.turn) replace(this.stage, node);
    } catch (error) {
      if (mine !== this.turn) return;
      const [told, hint] =
        error instanceof Refused ? [error.message, error.hint] : [String(error), "Load the page again."];
      replace(this.stage, h("p", { class: "empty", role: "alert" }, h("b", {}, told), " ", hint));
    }
    this.stage.removeAttribute("aria-busy");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { context } = this;
    /** @type {Record<string, (() => unknown)|undefined>} */
    const keys = {
      "[": context.layer && (() => context.layer?.(-1)),
      "]": context.layer && (() => context.layer?.(1)),
      "{": context.head && (() => context.head?.(-1)),
      "}": context.head && (() => context.head?.(1)),
      ",": context.step && (() => context.step?.(-1)),
      ".": context.step && (() => context.step?.(1)),
      " ": context.play,
      e: this.trace.live ? () => exportDialog(context) : undefined,
      Escape: () => this.drawer.close(),
    };
    const act = keys[event.key];
    if (!act) return false;
    act();
    return true;
  }
}

/** Which model, how it searched, how long it took; a trace out of a file may not know all of it. @param {Header} header */
function madeBy(header) {
  const beam =
    header.decode && !hangs(header)
      ? header.decode.beam
        ? `beam ${header.decode.beam}`
        : "the model's own beam"
      : null;
  const step = header.model?.step === undefined ? null : `step ${header.model.step.toLocaleString("en")}`;
  const seconds = header.seconds === undefined ? null : `${header.seconds.toFixed(2)} s`;
  return [header.model?.name, step, beam, seconds, header.made ? ago(header.made) : null].filter(Boolean).join(", ");
}
