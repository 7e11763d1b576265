// @ts-check
/** From the words to the answer, part after part, in the order in which the model computed: each a real vector. */
import { css, rgb } from "./colour.js";
import { h, replace, word } from "./dom.js";
import { parted } from "./explain.js";
import { shown } from "./format.js";
import { sized } from "./matrix.js";
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

/** @param {Context} context */
export async function storyTab(context) {
  const { trace, selection } = context;
  const { sequences, steps } = trace.header;
  const parts = grouped(trace.header.tensors.filter((tensor) => tensor.name !== "answer" && tensor.name !== "logits"));
  const sides = [
    ["source", "Word that was read"],
    ["target", "Word that was said"],
  ].filter(([side]) => sequences[side]?.length);
  /** @type {Record<string, number>} */
  const at = { source: 0, target: Math.min(selection.now.step, Math.max(0, (sequences.target?.length ?? 1) - 1)) };
  // a prompt of many words is read before the first is said
  const prompt = (sequences.read?.length ?? 0) - (sequences.target?.length ?? 0);
  const body = h("div", { class: "stack" });
  /** @type {Set<Part>} */
  const open = new Set();

  function draw() {
    replace(
      body,
      h(
        "section",
        { class: "card" },
        h("h2", {}, "From the words to the answer"),
        h("p", {}, word(trace.header.text, "sentence source"), " → ", word(trace.header.answer, "sentence target")),
        ...sides.map(([side, text]) =>
          h(
            "div",
            { class: "row wrap", role: "group", "aria-label": text },
            h("span", { class: "muted" }, text),
            ...sequences[side].map((token, i) =>
              h(
                "button",
                {
                  type: "button",
                  class: `token ${side}${at[side] === i ? " picked" : ""}`,
                  "aria-pressed": String(at[side] === i),
                  onclick: () => {
                    at[side] = i;
                    draw();
                  },
                },
                word(token.shown),
              ),
            ),
          ),
        ),
      ),
      h(
        "ol",
        { class: "story" },
        ...parts.map((part) => h("li", {}, block(part))),
        steps.length ? h("li", {}, ending()) : null,
      ),
    );
  }

  /** @param {Part} part */
  function block(part) {
    const inside = h("div", { class: "inside" });
    const small = h("span", { class: "mini" });
    const details = h(
      "details",
      { class: "card part", open: open.has(part) },
      h(
        "summary",
        {},
        h("span", { class: "part-name" }, titled(part.base)),
        h("span", { class: "muted part-parts" }, part.tensors.map((tensor) => parted(tensor.name)[1]).join(" → ")),
        small,
      ),
      inside,
    );
    mini(part.tensors.find((tensor) => tensor.name.endsWith("weights")) ?? part.tensors[part.tensors.length - 1]).then(
      (canvas) => small.append(canvas),
    );
    const load = async () => {
      if (!details.open || inside.childElementCount) return;
      replace(inside, ...(await Promise.all(part.tensors.map((tensor) => line(tensor)))));
    };
    details.addEventListener("toggle", () => {
      if (details.open) open.add(part);
      else open.delete(part);
      load();
    });
    load();
    return details;
  }

  /** A part at a glance: its attention, mean of heads, or its vector at the chosen word. @param {Description} tensor */
  async function mini(tensor) {
    const numbers = (await trace.tensor(tensor.name)).mean("head").mean("gate");
    const looks = tensor.axes.includes("query") && tensor.axes.includes("key");
    const { own, place, last } = standing(tensor);
    const [rows, columns] = looks ? [numbers.size("query"), numbers.size("key")] : [1, numbers.size(last)];
    const values = looks ? numbers.plane("query", "key", {}) : numbers.along(last, own ? place : {});
    const canvas = h("canvas", { "aria-hidden": "true" });
    const [w, t] = looks
      ? [Math.max(2, Math.min(8, 160 / columns)), Math.max(2, Math.min(8, 48 / rows))]
      : [Math.max(1, Math.min(6, 160 / columns)), 16];
    const context = sized(canvas, w * columns, t * rows);
    const top = values.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0);
    values.forEach((value, i) => {
      context.fillStyle = css(rgb(value, top, looks ? "weight" : "signed"));
      context.fillRect((i % columns) * w, Math.floor(i / columns) * t, w, t);
    });
    return canvas;
  }

  /** Where a tensor is looked at: its own axis along the sentence at the chosen word. @param {Description} tensor */
  function standing(tensor) {
    const last = tensor.axes[tensor.axes.length - 1];
    const own = tensor.axes.find((axis) => axis !== last && ["query", "position", "step", "key"].includes(axis));
    if (!own) return { own, last, place: {}, side: null };
    const side = tensor.sides[own] === "source" ? "source" : "target";
    const shift = tensor.sides[own] === "read" ? Math.max(0, prompt) : 0;
    return {
      own,
      last,
      side,
      place: { [own]: Math.min(at[side] + shift, tensor.shape[tensor.axes.indexOf(own)] - 1) },
    };
  }

  /** One tensor at the chosen word: a vector a head, at most four. @param {Description} tensor */
  async function line(tensor) {
    const numbers = await trace.tensor(tensor.name);
    const { own, last, place, side } = standing(tensor);
    const many = tensor.axes.find((axis) => axis !== last && axis !== own);
    /** @type {Record<string, number>[]} */
    const rows = Array.from({ length: many ? Math.min(4, numbers.size(many)) : 1 }, (_, i) =>
      many ? { ...place, [many]: i } : place,
    );
    const top = Math.max(Math.abs(tensor.min), Math.abs(tensor.max));
    const names = trace.words(tensor.name, last)?.map((w) => w.shown) ?? null;
    const kind = parted(tensor.name)[1];
    return h(
      "section",
      { class: "line" },
      h(
        "h3",
        {},
        kind,
        own && side ? h("span", { class: "muted" }, ` at `) : null,
        own && side ? word(trace.words(tensor.name, own)?.[place[own]]?.shown ?? String(place[own])) : null,
      ),
      SAID[/** @type {keyof typeof SAID} */ (kind)]
        ? h("p", { class: "muted" }, SAID[/** @type {keyof typeof SAID} */ (kind)])
        : null,
      ...rows.map((row) =>
        h(
          "div",
          { class: "row" },
          many ? h("span", { class: "muted fixed" }, `${many} ${row[many]}`) : null,
          strip({
            numbers: numbers.along(last, row),
            top,
            ramp: kind === "weights" ? "weight" : "signed",
            label: `${tensor.name}${many ? ` ${many} ${row[many]}` : ""}`,
            names,
            onpick: (i) => context.drawer.open(tensor.name, { ...row, [last]: i }),
          }),
        ),
      ),
      many && numbers.size(many) > 4
        ? h("p", { class: "muted" }, `and ${numbers.size(many) - 4} more under Numbers`)
        : null,
    );
  }

  function ending() {
    const step = steps[Math.min(at.target, steps.length - 1)];
    const total = step.best.slice(0, 5);
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
        ...total.flatMap((candidate, i) => [i ? ", " : "", word(candidate.shown), ` ${shown(candidate.logit)}`]),
      ),
      h(
        "p",
        {},
        h(
          "button",
          { type: "button", class: "link", onclick: () => selection.set({ tab: "decode", step: at.target }) },
          "Follow it step by step",
        ),
      ),
    );
  }
  draw();
  return body;
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
