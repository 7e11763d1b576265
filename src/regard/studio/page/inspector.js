// @ts-check
/** One trace: tabs on the stage, its tensors on the left, the explanation on the right. */
import { Refused, Trace } from "./api.js";
import { attentions, attentionTab } from "./attention.js";
import { decodeTab } from "./decode.js";
import { h, replace, word } from "./dom.js";
import { Drawer } from "./drawer.js";
import { exportDialog } from "./exporting.js";
import { forked } from "./fork.js";
import { ago } from "./format.js";
import { differentiable, gradientsTab } from "./gradients.js";
import { numbersTab } from "./numbers.js";
import { outline } from "./outline.js";
import { Selection } from "./selection.js";
import { statesTab, vectors } from "./states.js";
import { storyTab } from "./story.js";

/**
 * What a tab is given, and where it leaves what the keys do while it is open.
 * @typedef {{trace: Trace, selection: Selection, drawer: Drawer, onleave: (undo: () => void) => void,
 *   layer?: (by: number) => void, head?: (by: number) => void, step?: (by: number) => void, play?: () => void}} Context
 */
/** @typedef {{node: HTMLElement, key: (event: KeyboardEvent) => boolean, leave: () => void, redraw: () => void, title: string,
 *   header?: import("./types.js").Header}} Screen */

/** @type {Record<string, {text: string, make: (context: Context) => Promise<HTMLElement>, fits: (header: import("./types.js").Header) => boolean}>} */
const TABS = {
  story: { text: "Story", make: storyTab, fits: () => true },
  attention: { text: "Attention", make: attentionTab, fits: (header) => attentions(header).length > 0 },
  decode: { text: "Decode", make: decodeTab, fits: (header) => header.steps.length > 0 },
  states: { text: "States", make: statesTab, fits: (header) => vectors(header).length > 0 },
  gradients: { text: "Gradients", make: gradientsTab, fits: (header) => differentiable(header).length > 0 },
  numbers: { text: "Numbers", make: numbersTab, fits: () => true },
};

/** @param {string} number @param {URLSearchParams} query @returns {Promise<Screen>} */
export async function inspector(number, query) {
  const trace = await Trace.open(number);
  const selection = new Selection(number, query);
  const tabs = Object.entries(TABS).filter(([, tab]) => tab.fits(trace.header));
  if (!tabs.some(([name]) => name === selection.now.tab)) selection.now.tab = tabs[1]?.[0] ?? "numbers";
  const drawer = new Drawer(trace);
  /** @type {(() => void)[]} */
  let undo = [];
  /** @type {Context} */
  const context = { trace, selection, drawer, onleave: (f) => undo.push(f) };
  const side = outline(context);
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const stage = h("div", { class: "panel", id: "panel", role: "tabpanel" });
  let turn = 0;

  function drawTabs() {
    replace(
      bar,
      ...tabs.map(([name, tab]) => {
        const chosen = name === selection.now.tab;
        return h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${name}`,
            "aria-selected": String(chosen),
            "aria-controls": "panel",
            tabindex: chosen ? "0" : "-1",
            onclick: () => selection.set({ tab: name }),
            onkeydown: (/** @type {KeyboardEvent} */ event) => walk(event, name),
          },
          tab.text,
        );
      }),
    );
    stage.setAttribute("aria-labelledby", `tab-${selection.now.tab}`);
    document.getElementById(`tab-${selection.now.tab}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  /** @param {KeyboardEvent} event @param {string} name */
  function walk(event, name) {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const at = tabs.findIndex(([other]) => other === name);
    const next = tabs[(at + by + tabs.length) % tabs.length][0];
    selection.set({ tab: next });
    document.getElementById(`tab-${next}`)?.focus();
  }
  function leaveTab() {
    for (const f of undo) f();
    undo = [];
    delete context.layer;
    delete context.head;
    delete context.step;
    delete context.play;
  }
  async function open() {
    const mine = ++turn;
    leaveTab();
    drawTabs();
    stage.setAttribute("aria-busy", "true");
    try {
      const node = await TABS[selection.now.tab].make(context);
      if (mine === turn) replace(stage, node);
    } catch (error) {
      if (mine !== turn) return;
      const [told, hint] =
        error instanceof Refused ? [error.message, error.hint] : [String(error), "Load the page again."];
      replace(stage, h("p", { class: "empty", role: "alert" }, h("b", {}, told), " ", hint));
    }
    stage.removeAttribute("aria-busy");
  }
  const stop = selection.listen((changed) => {
    if ("tab" in changed) open();
  });
  const sheet = h(
    "button",
    {
      type: "button",
      class: "sheet-button",
      "aria-expanded": "false",
      onclick: () => {
        const shown = node.classList.toggle("outline-open");
        sheet.setAttribute("aria-expanded", String(shown));
      },
    },
    "Tensors",
  );
  const { header } = trace;
  const node = h(
    "div",
    { class: "inspector" },
    side.node,
    h(
      "main",
      { class: "stage", tabindex: "-1" },
      h(
        "header",
        { class: "trace-head" },
        h(
          "h1",
          {},
          word(header.text, "sentence source"),
          h("span", { class: "arrow", "aria-label": "became" }, " → "),
          word(header.answer || "(nothing)", "sentence target"),
        ),
        h(
          "p",
          { class: "muted" },
          `${header.model.name}, ${header.decode.beam ? `beam ${header.decode.beam}` : "the model's own beam"}, ${header.seconds.toFixed(2)} s, ${ago(header.made)} `,
          h("button", { type: "button", class: "link", onclick: () => exportDialog(context) }, "Export"),
        ),
        forked(header),
      ),
      h("div", { class: "row tabs-row" }, bar, sheet),
      stage,
    ),
    drawer.node,
  );
  await open();
  return {
    node,
    title: header.text,
    header,
    redraw: open,
    leave: () => {
      stop();
      side.stop();
      leaveTab();
    },
    key: (event) => {
      /** @type {Record<string, (() => unknown)|undefined>} */
      const keys = {
        "[": context.layer && (() => context.layer?.(-1)),
        "]": context.layer && (() => context.layer?.(1)),
        "{": context.head && (() => context.head?.(-1)),
        "}": context.head && (() => context.head?.(1)),
        ",": context.step && (() => context.step?.(-1)),
        ".": context.step && (() => context.step?.(1)),
        " ": context.play,
        e: () => exportDialog(context),
        Escape: () => drawer.close(),
      };
      const act = keys[event.key];
      if (!act) return false;
      act();
      return true;
    },
  };
}
