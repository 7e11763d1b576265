// @ts-check
/** Inspector of one trace: tabs, list of tensors on the left, explanation on the right. */
import { ApiError } from "../core/api-error.js";
import { h, replace, word } from "../core/dom.js";
import { formatAge, formatSeconds } from "../core/format.js";
import { FORECAST } from "../core/route.js";
import { Selection } from "../core/selection.js";
import { answerTab, hasAnswer, labeledTokens } from "../tabs/answer.js";
import { attentionTab, attentionTensors } from "../tabs/attention.js";
import { decodeTab, hasSteps } from "../tabs/decode.js";
import { generationTab, hasCache } from "../tabs/generation.js";
import { gradientsTab, gradientTensors } from "../tabs/gradients.js";
import { hasLayerMix, layerMixTab } from "../tabs/layer-mix.js";
import { hasLens, lensTab } from "../tabs/lens.js";
import { imageTab, isImage } from "../tabs/image.js";
import { hasInsight, insightTab } from "../tabs/insight.js";
import { numbersTab } from "../tabs/numbers.js";
import { hasPredictions, predictionsTab } from "../tabs/predictions.js";
import { FILL, hasSaliency, hasSingleAnswer, saliencyTab } from "../tabs/saliency.js";
import { statesTab, vectorTensors } from "../tabs/states.js";
import { sceneTab } from "../tabs/scene.js";
import { forkSummary, whatIfButtons } from "../tabs/what-if.js";
import { inputTitle, outputTitle } from "../widgets/csv-input.js";
import { Drawer } from "../widgets/drawer.js";
import { labeledSentence } from "../widgets/labeled-words.js";
import { exportDialog } from "./export.js";
import { limitNote, outdatedNote } from "./trace-notes.js";
import { windowNote } from "./window-note.js";
import { outline } from "./outline.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Header} Header */
/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Screen} Screen */
/** @typedef {{text: string, make: (context: Context) => Promise<HTMLElement>, fits: (trace: Trace) => boolean}} Tab */

/** Length of a heading above which it gets a scrollable box. */
const LONG = 240;
/** Milliseconds after which a view that is being loaded says so. */
const LATE = 400;

/** @type {Record<string, Tab>} */
const TABS = {
  answer: { text: "Answer", make: answerTab, fits: hasAnswer },
  scene: { text: "Scene", make: sceneTab, fits: () => true },
  image: { text: "Image", make: imageTab, fits: isImage },
  attention: { text: "Attention", make: attentionTab, fits: ({ header }) => attentionTensors(header).length > 0 },
  generation: { text: "Generation", make: generationTab, fits: hasCache },
  predictions: { text: "Predictions", make: predictionsTab, fits: hasPredictions },
  mix: { text: "Layer mix", make: layerMixTab, fits: hasLayerMix },
  lens: { text: "Lens", make: lensTab, fits: hasLens },
  decode: { text: "Decode", make: decodeTab, fits: hasSteps },
  states: { text: "States", make: statesTab, fits: ({ header }) => vectorTensors(header).length > 0 },
  gradients: { text: "Gradients", make: gradientsTab, fits: (trace) => gradientTensors(trace).length > 0 },
  saliency: { text: "Saliency", make: saliencyTab, fits: (trace) => hasSaliency(trace) && !isImage(trace) },
  insight: { text: "Insight", make: insightTab, fits: hasInsight },
  numbers: { text: "Numbers", make: numbersTab, fits: () => true },
};

/** @param {Trace} trace @param {URLSearchParams} query @returns {Promise<Screen>} */
export async function inspector(trace, query) {
  const screen = new Inspector(trace, query);
  await screen.open();
  requestAnimationFrame(() => screen.revealTab());
  return {
    node: screen.node,
    title: inputTitle(trace.header.kind, trace.header.text),
    header: trace.header,
    redraw: () => screen.open(),
    leave: () => screen.leave(),
    follow: (query) => screen.follow(query),
    key: (event) => screen.key(event),
  };
}

class Inspector {
  /** @param {Trace} trace @param {URLSearchParams} query */
  constructor(trace, query) {
    this.trace = trace;
    this.tabs = Object.entries(TABS).filter(([, tab]) => tab.fits(trace));
    const names = this.tabs.map(([name]) => name);
    const first = query.has("tour") ? ["scene"] : isImage(trace) ? ["image"] : []; // a tour is in the scene
    this.selection = new Selection(trace.header.id, query, [...first, ...names]);
    this.drawer = new Drawer(trace);
    /** @type {(() => void)[]} */
    this.cleanups = [];
    /** @type {Context} */
    this.context = {
      trace,
      selection: this.selection,
      drawer: this.drawer,
      onleave: (cleanup) => this.cleanups.push(cleanup),
    };
    this.side = outline(this.context);
    this.bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    this.stage = h("div", { class: "panel", id: "panel", role: "tabpanel" });
    this.request = 0;
    /** @type {Promise<void>|null} drawing of the latest tab */
    this.opening = null;
    this.unlisten = this.selection.listen(["tab"], () => {
      this.opening = this.open();
    });
    this.selection.onview = () => this.showTop();
    this.node = this.frame();
  }

  /** Another view starts at its top: below the tabs, if they were scrolled out of sight. */
  showTop() {
    if (this.bar.getBoundingClientRect().top < 0) this.bar.scrollIntoView({ block: "start", inline: "nearest" });
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
    const labels = labeledTokens(header);
    const [input, answer] = [inputTitle(header.kind, header.text), outputTitle(header.kind, header.answer)];
    return h(
      "header",
      { class: "trace-head" },
      h(
        "h1",
        input.length + answer.length > LONG ? { class: "long", tabindex: "0" } : {},
        ...(labels
          ? [labeledSentence(labels)]
          : [
              word(input, "sentence source"),
              answer !== input ? h("span", { class: "arrow", "aria-label": "output" }, " → ") : null,
              answer !== input ? word(answer || "(empty)", "sentence target") : null,
            ]),
      ),
      header.kind === FORECAST && !header.parts
        ? h("details", {}, h("summary", {}, "Forecast"), h("pre", { tabindex: "0" }, header.answer))
        : null,
      h(
        "p",
        { class: "muted" },
        `${traceInfo(header)} `,
        live
          ? h("button", { type: "button", class: "link", onclick: () => exportDialog(this.context) }, "Export")
          : null,
      ),
      header.omitted?.length
        ? h("p", { class: "muted" }, `${header.omitted.length} tensors were too large for this file and were left out.`)
        : null,
      outdatedNote(this.trace),
      limitNote(this.trace),
      windowNote(this.context),
      forkSummary(this.context),
      whatIfButtons(this.context),
    );
  }

  drawTabs() {
    const now = this.selection.current.tab;
    replace(this.bar, ...this.tabs.map(([name, tab]) => this.tab(name, tab, name === now)));
    this.stage.setAttribute("aria-labelledby", `tab-${now}`);
    this.node.classList.toggle("wide", now === "scene"); // the picture takes the room of the outline
    this.revealTab();
  }

  /** Scrolls the chosen tab into view; at first the tabs are not in the document yet. */
  revealTab() {
    const { scrollX, scrollY } = window;
    const tab = document.getElementById(`tab-${this.selection.current.tab}`);
    tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
    window.scrollTo(scrollX, scrollY); // the tabs are moved, and the page is not
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
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.moveTab(event, name),
      },
      tab.text,
    );
  }

  /** @param {KeyboardEvent} event @param {string} name */
  moveTab(event, name) {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const at = this.tabs.findIndex(([other]) => other === name);
    const next = this.tabs[(at + by + this.tabs.length) % this.tabs.length][0];
    this.selection.set({ tab: next });
    document.getElementById(`tab-${next}`)?.focus();
  }

  /** Goes where Back or Forward leads within this trace. @param {URLSearchParams} query */
  async follow(query) {
    this.selection.follow(query);
    await this.opening;
  }

  leaveTab() {
    this.drawer.onclose = null;
    for (const cleanup of this.cleanups) cleanup();
    this.cleanups = [];
    delete this.context.layer;
    delete this.context.head;
    delete this.context.step;
    delete this.context.play;
    delete this.context.up;
  }

  leave() {
    this.unlisten();
    this.side.stop();
    this.leaveTab();
  }

  async open() {
    const request = ++this.request;
    this.leaveTab();
    this.drawTabs();
    this.stage.setAttribute("aria-busy", "true");
    const bar = h("p", { class: "muted row", role: "status" }, h("progress", { "aria-label": "Loading" }), "Loading");
    const late = window.setTimeout(() => request === this.request && replace(this.stage, bar), LATE);
    try {
      const node = await TABS[this.selection.current.tab].make(this.context);
      if (request === this.request) replace(this.stage, node);
    } catch (error) {
      clearTimeout(late);
      if (request !== this.request) return;
      const [message, hint] =
        error instanceof ApiError ? [error.message, error.hint] : [String(error), "Reload the page."];
      replace(this.stage, h("p", { class: "empty", role: "alert" }, h("b", {}, message), " ", hint));
    }
    clearTimeout(late);
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
      Escape: () => this.drawer.close() || context.up?.(),
    };
    const act = keys[event.key];
    if (!act) return false;
    act();
    return true;
  }
}

/** @param {NonNullable<Header["decode"]>} decode */
function decodingName({ beam, search, length }) {
  const name = beam === null ? (search ?? "default beam") : beam === 1 ? "greedy" : `beam ${beam}`;
  return length ? `${name}, at most ${length} tokens, as many as are recorded of this model` : name;
}

/** Model, step, beam and time, as far as the trace has them. @param {Header} header */
function traceInfo(header) {
  const beam = header.decode && !hasSingleAnswer(header) && header.kind !== FILL ? decodingName(header.decode) : null;
  const step = header.model?.step === undefined ? null : `step ${header.model.step.toLocaleString("en")}`;
  const seconds = header.seconds === undefined ? null : formatSeconds(header.seconds);
  return [header.model?.name, step, beam, seconds, header.created ? formatAge(header.created) : null]
    .filter(Boolean)
    .join(", ");
}
