// @ts-check
/** Insight tab: what one chosen output depends on, by passes over the same input with something changed. */
import { ApiError } from "../core/api-error.js";
import { h, replace, selectField, word } from "../core/dom.js";
import { streamResult } from "../core/stream.js";
import { attributionPicture, importancePicture, inputPicture, patchPicture } from "./insight-parts.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {{token: string, label: string, place: string}} Output */
/**
 * A tool: its name on the server, what it shows, and whether it runs by itself when the tab opens.
 * @typedef {{name: string, title: string, note: string, button: string, auto?: boolean, fits?: (trace: Trace) => boolean,
 *   draw: (context: Context, result: any, at: number) => Node, all?: boolean, other?: boolean}} Tool
 * all: the result has all outputs; other: it needs another text
 */

/** Tasks whose outputs are words or labels. */
const KINDS = ["translate", "generate", "caption", "classify", "label", "fill"];

/** @type {Tool[]} */
const TOOLS = [
  {
    name: "attribution",
    title: "Direct logit attribution",
    note: "What each part of the model adds to the logit of this output. Norms divide by the deviation that they had in this pass, so the parts sum to the logit. Only the direct path counts: what a part changes in later layers is in their numbers.",
    button: "Attribute",
    auto: true,
    draw: attributionPicture,
  },
  {
    name: "importance",
    title: "Head importance",
    note: "Each attention head is switched off in turn (all of its weights are 0), in a pass of its own over the same input and answer. Below 0: the output is less probable without the head.",
    button: "Switch each head off",
    fits: ({ header }) => header.tensors.some(({ name, axes }) => name.endsWith("weights") && axes.includes("key")),
    all: true,
    draw: importancePicture,
  },
  {
    name: "integrated",
    title: "Attribution to the input",
    note: "What each token that was read contributes to the log-probability of this output. Gradient × input is a first-order estimate. Integrated gradients average the gradient on the line from embeddings of zero: they sum to the difference that the embeddings make, up to the completeness error.",
    button: "Integrate gradients",
    fits: (trace) => !trace.has("pixels"),
    draw: inputPicture,
  },
  {
    name: "patch",
    title: "Activation patching",
    note: "Each layer at each position is taken from the pass of another text, one at a time, and the change of the log-probability of this output is shown. Both texts need the same number of tokens; the answer that is read stays the same.",
    button: "Patch",
    other: true,
    fits: (trace) => !trace.has("pixels"),
    draw: patchPicture,
  },
];

/** Tasks whose outputs are at a token, and do not follow it. */
const AT = ["label", "fill"];
/** Parts that add to a logit, or can be switched off; a network of convolutions has none. */
const PARTS = ["embedding", "self-attention", "cross-attention", "ffn", "recurrent"];

/** Whether the trace has outputs that the tools can explain. @param {Trace} trace */
export function hasInsight(trace) {
  const { header } = trace;
  const { graph } = header;
  if (trace.has("pixels") && graph?.nodes.length && !graph.nodes.some(({ kind }) => PARTS.includes(kind))) return false;
  return KINDS.includes(header.kind ?? "") || (!header.kind && header.steps.length > 0);
}

/** Why the tools cannot run the pass of a trace again; "" if they can. @param {Trace} trace */
function refusal({ header, live }) {
  if (!live)
    return "These tools run the model again, and this page was saved without it. Open the text in regard studio, or use regard look with --view attribution, importance, integrated or patch.";
  if (header.window?.number)
    return "This is a later window of a long text, and these tools read the first one. Choose the first window above.";
  return "";
}

/** @param {Context} context */
export async function insightTab(context) {
  const message = refusal(context.trace);
  if (message) {
    const text = h("p", { class: "empty" }, message);
    return h("div", { class: "stack insight" }, h("section", { class: "card" }, h("h2", {}, "Insight"), text));
  }
  const view = new InsightView(context);
  await view.open();
  return view.node;
}

class InsightView {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    /** @type {Output[]} */
    this.outputs = [];
    /** What the outputs are, where the model chose them by more than their logits. */
    this.note = "";
    this.stop = new AbortController();
    this.chooser = h("section", { class: "card" });
    this.cards = TOOLS.filter((tool) => tool.fits?.(context.trace) ?? true).map((tool) => new ToolCard(this, tool));
    this.node = h("div", { class: "stack insight" }, this.chooser, ...this.cards.map((card) => card.node));
    context.step = (by) => this.choose(this.at + by);
    context.onleave(() => this.stop.abort());
    context.onleave(context.selection.listen(["step"], () => this.update()));
  }

  /** Number of the chosen output. */
  get at() {
    const { step } = this.context.selection.current;
    return this.outputs.length ? Math.min(step, this.outputs.length - 1) : step;
  }

  async open() {
    await Promise.all(this.cards.filter(({ tool }) => tool.auto).map((card) => card.run()));
    this.drawChooser();
  }

  /** @param {{outputs: Output[], note: string}} result */
  learn({ outputs, note }) {
    if (this.outputs.length) return;
    [this.outputs, this.note] = [outputs, note];
    this.drawChooser();
  }

  /** @param {number} at */
  choose(at) {
    if (at >= 0 && at < this.outputs.length) this.context.selection.set({ step: at });
  }

  update() {
    this.drawChooser();
    for (const card of this.cards) card.update();
  }

  drawChooser() {
    const { outputs, at } = this;
    const chosen = outputs[at];
    const where = AT.includes(this.context.trace.header.kind ?? "") ? "at" : "after";
    const options = outputs.map(({ label, place }, i) => ({
      value: String(i),
      text: place ? `${i + 1}. ${label} (${where} ${place})` : label,
    }));
    replace(
      this.chooser,
      h("h2", {}, "Chosen output"),
      h(
        "p",
        { class: "muted" },
        `The tools below explain one output: the token or label that the model chose there. They repeat the pass of this trace with the answer given (teacher forcing)${this.context.trace.header.fork ? ", and with the same changes" : ""}.`,
      ),
      this.note ? h("p", { class: "muted", "data-value": "note" }, this.note) : null,
      outputs.length > 1
        ? selectField("Output", options, String(at), (value) => this.choose(Number(value)))
        : chosen
          ? h("p", {}, word(chosen.label, "sentence target"))
          : null,
    );
  }
}

class ToolCard {
  /** @param {InsightView} view @param {Tool} tool */
  constructor(view, tool) {
    this.view = view;
    this.tool = tool;
    /** @type {any} */
    this.result = null;
    this.request = 0;
    this.body = h("div", { class: "tool-body" });
    this.text = h("input", { type: "text", "aria-label": "Other text", value: view.context.trace.header.text });
    this.node = h(
      "section",
      { class: "card", "data-tool": tool.name },
      h("h2", {}, tool.title),
      h("p", { class: "muted" }, tool.note),
      tool.other ? this.form() : null,
      this.body,
    );
    if (!tool.auto && !tool.other) this.offer();
  }

  offer() {
    replace(this.body, h("button", { type: "button", onclick: () => this.run() }, this.tool.button));
  }

  /** The other text, which starts as this one. */
  form() {
    const send = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.run();
    };
    const label = h("label", { class: "field other-text" }, h("span", {}, "Other text"), this.text);
    return h("form", { class: "row", onsubmit: send }, label, h("button", {}, this.tool.button));
  }

  /** Another output was chosen: results that have all outputs are drawn again, others are computed again. */
  update() {
    if (!this.result && !this.tool.auto) return;
    if (this.result && this.tool.all) this.draw();
    else this.run();
  }

  async run() {
    const request = ++this.request;
    const { context, at, stop } = this.view;
    const bar = h("progress", { "aria-label": this.tool.title });
    const text = h("span", { class: "muted", role: "status" }, "Computing …");
    replace(this.body, h("p", { class: "row" }, bar, text));
    const other = this.tool.other ? `&text=${encodeURIComponent(this.text.value)}` : "";
    const path = `traces/${encodeURIComponent(context.trace.header.id)}/insight/${this.tool.name}?at=${at}${other}`;
    try {
      const result = await streamResult(
        path,
        (done, total) => {
          [bar.value, bar.max] = [done, total];
          text.textContent = `${done} of ${total} passes`;
        },
        stop.signal,
      );
      if (request !== this.request) return;
      this.result = result;
      this.view.learn(result);
      this.draw();
    } catch (error) {
      if (stop.signal.aborted || request !== this.request) return;
      this.result = null;
      const [message, hint] = error instanceof ApiError ? [error.message, error.hint] : [String(error), ""];
      const known = error instanceof ApiError && error.code === "no-insight"; // its message says what to do
      replace(this.body, h("p", { class: "empty", role: "alert" }, h("b", {}, message), known ? null : ` ${hint}`));
    }
  }

  draw() {
    replace(this.body, this.tool.draw(this.view.context, this.result, this.view.at));
  }
}
