// @ts-check
/** The same sentence through two to four models, side by side: what each said, how sure it was, where it looked. */
import { get, post, Trace } from "./api.js";
import { attentions } from "./attention.js";
import { h, replace, word } from "./dom.js";
import { shown } from "./format.js";
import { matrix } from "./matrix.js";
import { labels } from "./onehead.js";
import { tell } from "./notice.js";
import { traceAddress } from "./route.js";

/** @typedef {import("./types.js").Model} Model */

const MOST = 4;

/** @param {URLSearchParams} query @param {string} sentence @returns {Promise<import("./inspector.js").Screen>} */
export async function lineup(query, sentence) {
  const { models } = await get("models");
  const usable = /** @type {Model[]} */ (models).filter((model) => model.usable);
  const opened = await Promise.all((query.get("t") ?? "").split(",").filter(Boolean).slice(0, MOST).map(Trace.open));
  const before = new Set(
    opened.length ? opened.map((trace) => trace.header.model.id) : usable.slice(0, 2).map((model) => model.id),
  );
  const boxes = usable.map((model) => h("input", { type: "checkbox", value: model.id, checked: before.has(model.id) }));
  const input = h("input", {
    type: "text",
    dir: "auto",
    "aria-label": "Sentence for all models",
    value: opened[0]?.header.text ?? "",
    placeholder: sentence,
    autocomplete: "off",
  });
  const button = h("button", { type: "submit", class: "primary" }, "Run all");
  const told = h("span", { class: "muted", role: "status" });

  async function run() {
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    if (chosen.length < 2 || chosen.length > MOST) {
      told.textContent = `Choose two to ${MOST} models.`;
      return;
    }
    button.disabled = true;
    try {
      const numbers = [];
      for (const model of chosen) {
        told.textContent = `${numbers.length + 1} of ${chosen.length} …`;
        numbers.push((await post("traces", { model, text: input.value.trim() || sentence, decode: {} })).id);
      }
      location.hash = `#/compare?t=${numbers.map(encodeURIComponent).join(",")}`;
    } catch (error) {
      tell(error);
      told.textContent = "";
    }
    button.disabled = false;
  }
  const columns = h("div", { class: "lineup" });
  replace(columns, ...(await Promise.all(opened.map((trace) => column(trace, opened[0])))));
  const node = h(
    "main",
    { class: "wide", tabindex: "-1" },
    h("h1", {}, "Line-up"),
    usable.length < 2
      ? h("p", {}, "There are fewer than two models to compare; train another one first.")
      : h(
          "form",
          {
            class: "card",
            onsubmit: (/** @type {Event} */ event) => {
              event.preventDefault();
              run();
            },
          },
          h(
            "fieldset",
            { class: "row" },
            h("legend", {}, "Models"),
            ...usable.map((model, i) => h("label", { class: "row" }, boxes[i], word(model.name))),
          ),
          h("div", { class: "row ask" }, input, button),
          told,
        ),
    columns,
  );
  return { node, title: "Line-up", redraw: () => location.reload(), leave: () => {}, key: () => false };
}

/** @param {Trace} trace @param {Trace} first */
async function column(trace, first) {
  const { header } = trace;
  const same = common(first.header.answer.split(/\s+/), header.answer.split(/\s+/));
  const total = header.steps.reduce((sum, step) => sum + step.log, 0);
  const across = attentions(header)
    .filter((tensor) => tensor.sides.key === "source" && tensor.sides.query !== "source")
    .pop();
  return h(
    "section",
    { class: "card", "aria-label": header.model.name },
    h("h2", {}, word(header.model.name)),
    h(
      "p",
      { class: "sentence target", dir: "auto" },
      ...header.answer
        .split(/\s+/)
        .flatMap((text, i) => [same.has(i) ? h("span", {}, text) : h("mark", {}, text), " "]),
    ),
    h(
      "p",
      { class: "muted" },
      `log-probability ${shown(total)}, ${header.steps.length} tokens, ${header.seconds.toFixed(2)} s with recording`,
    ),
    h(
      "table",
      { class: "numbers" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "token"),
          h("th", { scope: "col" }, "log-prob"),
          h("th", { scope: "col" }, "probability"),
        ),
      ),
      h(
        "tbody",
        {},
        ...header.steps.map((step) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, word(step.chosen.shown)),
            h("td", {}, shown(step.log)),
            h("td", {}, shown(Math.exp(step.log))),
          ),
        ),
      ),
    ),
    across
      ? await picture(trace, across.name)
      : h("p", { class: "muted" }, "This model does not look back at its source."),
    h("p", {}, h("a", { href: traceAddress(header.id) }, "Look inside")),
  );
}

/** @param {Trace} trace @param {string} name */
async function picture(trace, name) {
  const weights = (await trace.tensor(name)).mean("head");
  const numbers = weights.plane("query", "key", {});
  return matrix({
    title: `${name}, mean of heads`,
    numbers,
    rows: labels(trace, name, "query", weights.size("query")),
    columns: labels(trace, name, "key", weights.size("key")),
    rowTitle: "query",
    columnTitle: "key",
    ramp: "weight",
    top: numbers.reduce((a, b) => Math.max(a, b), 0),
    largest: 32,
    roles: ["target", "source"],
  });
}

/** Which words of `b` stand in the longest common subsequence with `a`. @param {string[]} a @param {string[]} b */
export function common(a, b) {
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const found = new Set();
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      found.add(j);
      i++;
      j++;
    } else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return found;
}
