// @ts-check
/** Word after word: what could have been said at each step, and what temperature and filters would make of it. */
import { attentions } from "./attention.js";
import { beamTree } from "./beam.js";
import { css, ink, rgb } from "./colour.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { filtered, softmax, warmed } from "./probability.js";

/** @typedef {import("./inspector.js").Context} Context */

const SHOWN = 20;

/** @param {Context} context */
export async function decodeTab(context) {
  const { trace, selection } = context;
  const steps = trace.header.steps;
  if (!steps.length)
    return h("p", { class: "empty" }, "This model says nothing word by word, so there are no steps to follow.");
  const rules = { temperature: 1, topK: 0, topP: 1, minP: 0 };
  const across = attentions(trace.header)
    .filter((tensor) => tensor.sides.key === "source" && tensor.sides.query !== "source")
    .pop();
  const looking = across ? (await trace.tensor(across.name)).mean("head") : null;
  const bar = h("div", { class: "row transport", role: "group", "aria-label": "Steps" });
  const sentence = h("section", { class: "card" });
  const tableHolder = h("section", { class: "card" });
  let playing = 0;
  const last = steps.length - 1;
  // a prompt of many words is read before the first is said
  const offset = (trace.header.sequences.read?.length ?? steps.length) - steps.length;
  const now = () => Math.max(0, Math.min(last, selection.now.step));
  const go = (/** @type {number} */ step) => selection.set({ step: Math.max(0, Math.min(last, step)) });
  const stop = () => {
    clearInterval(playing);
    playing = 0;
  };
  const play = () => {
    if (playing) stop();
    else {
      if (now() === last) go(0);
      playing = window.setInterval(() => (now() < last ? go(now() + 1) : (stop(), transport())), 900);
    }
    transport();
  };
  function transport() {
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {() => void} */ onclick,
      disabled = false,
    ) => h("button", { type: "button", "aria-label": name, title: name, disabled, onclick }, text);
    replace(
      bar,
      button("⏮", "First step", () => go(0), now() === 0),
      button("◀", "Step back", () => go(now() - 1), now() === 0),
      h(
        "button",
        {
          type: "button",
          "aria-label": playing ? "Pause" : "Play",
          title: playing ? "Pause" : "Play",
          "data-focus": "play",
          onclick: play,
        },
        playing ? "⏸" : "▶",
      ),
      button("▶︎|", "Step on", () => go(now() + 1), now() === last),
      button("⏭", "Last step", () => go(last), now() === last),
      h("span", { class: "muted" }, `step ${now() + 1} of ${steps.length}`),
    );
  }
  function drawSentence() {
    const said = steps.map((step, i) =>
      h(
        "button",
        {
          type: "button",
          class: `token target${i === now() ? " picked" : ""}${i > now() ? " later" : ""}`,
          "aria-pressed": String(i === now()),
          onclick: () => go(i),
        },
        word(step.chosen.shown),
      ),
    );
    const weights = looking
      ? looking.along("key", { query: Math.min(now() + offset, looking.size("query") - 1) })
      : null;
    const top = weights ? weights.reduce((a, b) => Math.max(a, b), 0) : 0;
    const source = (trace.header.sequences.source ?? []).map((token, i) => {
      const node = h(
        "span",
        { class: "token source", title: weights ? shown(weights[i]) : null },
        word(token.shown),
        weights ? h("small", {}, weights[i].toFixed(2)) : null,
      );
      if (weights) {
        const colour = rgb(weights[i], top, "weight");
        node.style.background = css(colour);
        node.style.color = ink(colour);
      }
      return node;
    });
    replace(
      sentence,
      bar,
      source.length ? h("p", { class: "tokens" }, ...source) : null,
      h("p", { class: "tokens" }, ...said),
      across
        ? h(
            "p",
            { class: "muted" },
            `Coloured: where ${across.name} looked while this word was chosen, mean of its heads.`,
          )
        : null,
    );
  }
  async function drawTable() {
    const step = now();
    const logits = (await trace.tensor("logits", `step:${step}`)).data;
    if (step !== now()) return;
    const [plain, warm, kept] = [softmax(logits), softmax(warmed(logits, rules.temperature)), filtered(logits, rules)];
    let left = 0;
    for (let i = 0; i < kept.length; i++) if (kept[i] > 0) left++;
    const rows = steps[step].best.slice(0, SHOWN).map((candidate, rank) =>
      h(
        "tr",
        { class: candidate.id === steps[step].chosen.id ? "picked" : null },
        h("td", {}, String(rank + 1)),
        h(
          "th",
          { scope: "row" },
          word(candidate.shown),
          candidate.id === steps[step].chosen.id ? h("small", {}, " chosen") : null,
        ),
        h(
          "td",
          {},
          h(
            "button",
            {
              type: "button",
              class: "cell",
              onclick: () => context.drawer.open("logits", { step, vocabulary: candidate.id }),
            },
            shown(candidate.logit),
          ),
        ),
        h("td", {}, shown(plain[candidate.id])),
        h("td", {}, shown(warm[candidate.id])),
        h("td", {}, kept[candidate.id] > 0 ? shown(kept[candidate.id]) : "cut"),
        h("td", { class: "bar" }, meter(kept[candidate.id])),
      ),
    );
    replace(
      tableHolder.querySelector(".table") ?? tableHolder,
      h(
        "p",
        { class: "muted" },
        `${left.toLocaleString("en")} of ${kept.length.toLocaleString("en")} tokens are left to draw from; entropy ${shown(steps[step].entropy)} nats.`,
      ),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Best candidates" },
        h(
          "table",
          { class: "numbers candidates" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ...["", "token", "logit", "probability", "after temperature", "after filters", ""].map((name) =>
                name ? h("th", { scope: "col" }, name) : h("td", {}),
              ),
            ),
          ),
          h("tbody", {}, ...rows),
        ),
      ),
    );
  }
  replace(
    tableHolder,
    h("h2", {}, "What could have been said"),
    sliders(rules, drawTable),
    h("div", { class: "table" }),
  );
  transport();
  drawSentence();
  await drawTable();
  context.onleave(
    selection.listen((changed) => {
      if (!("step" in changed)) return;
      transport();
      drawSentence();
      drawTable();
    }),
  );
  context.onleave(stop);
  context.step = (by) => go(now() + by);
  context.play = play;
  const tree = trace.header.beam.some((node) => !node.chosen) ? beamTree(trace.header.beam) : null;
  return h("div", { class: "stack" }, sentence, tableHolder, tree);
}

/** @param {number} share */
function meter(share) {
  const bar = h("span", { class: "meter" });
  bar.style.width = `${Math.round(share * 96)}px`;
  return bar;
}

/** @param {import("./probability.js").Rules} rules @param {() => void} changed */
function sliders(rules, changed) {
  const one = (
    /** @type {keyof typeof rules} */ name,
    /** @type {string} */ text,
    /** @type {number} */ min,
    /** @type {number} */ max,
    /** @type {number} */ step,
  ) => {
    const told = h("output", {}, String(rules[name]));
    const input = h("input", {
      type: "range",
      min,
      max,
      step,
      value: rules[name],
      "aria-label": text,
      oninput: () => {
        rules[name] = Number(input.value);
        told.textContent = name === "topK" && rules[name] === 0 ? "all" : String(rules[name]);
        changed();
      },
    });
    if (name === "topK") told.textContent = "all";
    return h("label", { class: "field slider" }, h("span", {}, text, " ", told), input);
  };
  return h(
    "div",
    { class: "row wrap sliders" },
    one("temperature", "temperature", 0.1, 3, 0.05),
    one("topK", "top-k", 0, 50, 1),
    one("topP", "top-p", 0.05, 1, 0.05),
    one("minP", "min-p", 0, 1, 0.02),
  );
}
