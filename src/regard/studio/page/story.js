// @ts-check
/** From the words to the answer, part after part, in the order in which the model computed: each a real vector. */
import { thumbnail } from "./colour.js";
import { h, replace, word } from "./dom.js";
import { parted } from "./explain.js";
import { shown } from "./format.js";
import { tell } from "./notice.js";
import { whenSeen } from "./patience.js";
import { strip } from "./strip.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Description} Description */
/** @typedef {{base: string, tensors: Description[]}} Part */

/** What a part of the pass is, said in words; what has no words here is shown by its name alone. */
const SAID = {
  queries: "what each word asks",
  keys: "what each word answers to",
  values: "what each word has to say",
  scores: "how well question and answer fit: q·k/√d",
  weights: "the same as shares of 1 (softmax)",
  context: "the values, as heavy as their weights",
  residual: "the word's vector after this part",
  features: "what the last layer hands to the output",
  gates: "how much is let in, kept, let out",
  cell: "what is remembered",
  hidden: "what is passed on",
};
const SIDES = [
  ["source", "Word that was read"],
  ["target", "Word that was said"],
];
const STRIPS = 4;

/** @param {Context} context */
export async function storyTab(context) {
  const story = new Story(context);
  story.draw();
  return story.node;
}

class Story {
  /** @param {Context} context */
  constructor(context) {
    const { sequences, tensors } = context.trace.header;
    this.context = context;
    this.parts = grouped(tensors.filter((tensor) => tensor.name !== "answer" && tensor.name !== "logits"));
    const last = Math.max(0, (sequences.target?.length ?? 1) - 1);
    /** @type {Record<string, number>} */
    this.at = { source: 0, target: Math.min(context.selection.now.step, last) };
    // a prompt of many words is read before the first is said
    this.prompt = Math.max(0, (sequences.read?.length ?? 0) - (sequences.target?.length ?? 0));
    /** @type {Set<Part>} */
    this.open = new Set();
    this.node = h("div", { class: "stack" });
  }

  draw() {
    const { text, answer, sequences, steps } = this.context.trace.header;
    replace(
      this.node,
      h(
        "section",
        { class: "card" },
        h("h2", {}, "From the words to the answer"),
        h("p", {}, word(text, "sentence source"), " → ", word(answer, "sentence target")),
        ...SIDES.filter(([side]) => sequences[side]?.length).map(([side, name]) => this.words(side, name)),
      ),
      h(
        "ol",
        { class: "story" },
        ...this.parts.map((part) => h("li", {}, this.block(part))),
        steps.length ? h("li", {}, this.ending()) : null,
      ),
    );
  }

  /** @param {string} side @param {string} name */
  words(side, name) {
    const buttons = this.context.trace.header.sequences[side].map((token, i) => {
      const chosen = this.at[side] === i;
      const onclick = () => {
        this.at[side] = i;
        this.draw();
      };
      const kind = `token ${side}${chosen ? " picked" : ""}`;
      return h("button", { type: "button", class: kind, "aria-pressed": String(chosen), onclick }, word(token.shown));
    });
    return h(
      "div",
      { class: "row wrap", role: "group", "aria-label": name },
      h("span", { class: "muted" }, name),
      ...buttons,
    );
  }

  /** @param {Part} part */
  block(part) {
    const inside = h("div", { class: "inside" });
    const small = h("span", { class: "mini" });
    const names = part.tensors.map((tensor) => parted(tensor.name)[1]).join(" → ");
    const details = h(
      "details",
      { class: "card part", open: this.open.has(part) },
      h(
        "summary",
        {},
        h("span", { class: "part-name" }, titled(part.base)),
        h("span", { class: "muted part-parts" }, names),
        small,
      ),
      inside,
    );
    const looks = part.tensors.find((tensor) => tensor.name.endsWith("weights"));
    const glance = () => this.mini(looks ?? part.tensors[part.tensors.length - 1]);
    whenSeen(details, () => {
      glance()
        .then((canvas) => small.append(canvas))
        .catch(tell);
    });
    const load = async () => {
      if (!details.open || inside.childElementCount) return;
      replace(inside, ...(await Promise.all(part.tensors.map((tensor) => this.line(tensor)))));
    };
    details.addEventListener("toggle", () => {
      if (details.open) this.open.add(part);
      else this.open.delete(part);
      load().catch(tell);
    });
    load().catch(tell);
    return details;
  }

  /** A part at a glance: its attention, mean of heads, or its vector at the chosen word. @param {Description} tensor */
  async mini(tensor) {
    const numbers = (await this.context.trace.tensor(tensor.name)).mean("head").mean("gate");
    const looks = tensor.axes.includes("query") && tensor.axes.includes("key");
    const { own, place, last } = this.standing(tensor);
    const [rows, columns] = looks ? [numbers.size("query"), numbers.size("key")] : [1, numbers.size(last)];
    const values = looks ? numbers.plane("query", "key", {}) : numbers.along(last, own ? place : {});
    const top = values.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0);
    const [width, height] = looks
      ? [Math.min(160, 8 * columns), Math.min(48, 8 * rows)]
      : [Math.min(160, 6 * columns), 16];
    const canvas = thumbnail(values, rows, columns, top, looks ? "weight" : "signed", width, height);
    canvas.setAttribute("aria-hidden", "true");
    return canvas;
  }

  /** Where a tensor is looked at: its own axis along the sentence at the chosen word. @param {Description} tensor */
  standing(tensor) {
    const last = tensor.axes[tensor.axes.length - 1];
    const own = tensor.axes.find((axis) => axis !== last && ["query", "position", "step", "key"].includes(axis));
    if (!own) return { own, last, place: {}, side: null };
    const side = tensor.sides[own] === "source" ? "source" : "target";
    const shift = tensor.sides[own] === "read" ? this.prompt : 0;
    const most = tensor.shape[tensor.axes.indexOf(own)] - 1;
    return { own, last, side, place: { [own]: Math.min(this.at[side] + shift, most) } };
  }

  /** One tensor at the chosen word: a vector a head, at most four. @param {Description} tensor */
  async line(tensor) {
    const { trace, drawer } = this.context;
    const numbers = await trace.tensor(tensor.name);
    const { own, last, place, side } = this.standing(tensor);
    const many = tensor.axes.find((axis) => axis !== last && axis !== own);
    const kind = /** @type {keyof typeof SAID} */ (parted(tensor.name)[1]);
    const names = trace.words(tensor.name, last)?.map((w) => w.shown) ?? null;
    const count = many ? numbers.size(many) : 1;
    const rows = Array.from({ length: Math.min(STRIPS, count) }, (_, i) => {
      /** @type {Record<string, number>} */
      const row = many ? { ...place, [many]: i } : place;
      const drawn = strip({
        numbers: numbers.along(last, row),
        top: Math.max(Math.abs(tensor.min), Math.abs(tensor.max)),
        ramp: kind === "weights" ? "weight" : "signed",
        label: `${tensor.name}${many ? ` ${many} ${i}` : ""}`,
        names,
        onpick: (unit) => drawer.open(tensor.name, { ...row, [last]: unit }),
      });
      return h("div", { class: "row" }, many ? h("span", { class: "muted fixed" }, `${many} ${i}`) : null, drawn);
    });
    const where = own && side ? (trace.words(tensor.name, own)?.[place[own]]?.shown ?? String(place[own])) : null;
    const rest = count > STRIPS ? h("p", { class: "muted" }, `and ${count - STRIPS} more under Numbers`) : null;
    return h(
      "section",
      { class: "line" },
      h("h3", {}, kind, where ? h("span", { class: "muted" }, " at ") : null, where ? word(where) : null),
      SAID[kind] ? h("p", { class: "muted" }, SAID[kind]) : null,
      ...rows,
      rest,
    );
  }

  ending() {
    const { trace, selection } = this.context;
    const { steps } = trace.header;
    const step = steps[Math.min(this.at.target, steps.length - 1)];
    const best = step.best.slice(0, 5);
    const follow = () => selection.set({ tab: "decode", step: this.at.target });
    return h(
      "section",
      { class: "card part" },
      h("h3", {}, "logits → the word that is said"),
      h(
        "p",
        {},
        "Of all words of the vocabulary, ",
        word(step.chosen.shown, "word target"),
        ` was chosen, with probability ${shown(Math.exp(step.log))}.`,
      ),
      h(
        "p",
        { class: "muted" },
        "The largest logits: ",
        ...best.flatMap((candidate, i) => [i ? ", " : "", word(candidate.shown), ` ${shown(candidate.logit)}`]),
      ),
      h("p", {}, h("button", { type: "button", class: "link", onclick: follow }, "Follow it step by step")),
    );
  }
}

/** Neighbours in time that belong to one part of the model. @param {Description[]} tensors @returns {Part[]} */
function grouped(tensors) {
  /** @type {Part[]} */
  const parts = [];
  for (const tensor of tensors) {
    const base = parted(tensor.name)[0];
    const last = parts[parts.length - 1];
    if (last?.base === base) last.tensors.push(tensor);
    else parts.push({ base, tensors: [tensor] });
  }
  return parts;
}

/** "decoder.layers.0.cross" as "decoder · layer 0 · cross". @param {string} base */
export function titled(base) {
  return (
    base
      .replace(/(?:^|\.)(?:layers|stack\.layers)\.(\d+)/g, " · layer $1")
      .replace(/\./g, " · ")
      .replace(/^ · /, "") || "model"
  );
}
