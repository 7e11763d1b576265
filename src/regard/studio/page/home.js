// @ts-check
/** The start page: models, recent traces, and something to look at before anybody has trained anything. */
import { get, post } from "./api.js";
import { h, replace, word } from "./dom.js";
import { ago, shown } from "./format.js";
import { tell } from "./notice.js";
import { traceAddress } from "./route.js";

/** @typedef {import("./types.js").Model} Model */
/** @typedef {import("./types.js").Summary} Summary */

/** @param {(model: string) => void} choose @param {() => void} refresh @returns {Promise<import("./inspector.js").Screen>} */
export async function home(choose, refresh) {
  const models = h("section", { class: "card" });
  const traces = h("section", { class: "card" });
  let timer = 0;
  let state = "";

  async function draw() {
    const [listed, recent] = await Promise.all([get("models"), get("traces")]);
    replace(
      models,
      h(
        "div",
        { class: "row" },
        h("h2", {}, "Models"),
        listed.models.filter((/** @type {Model} */ model) => model.usable).length > 1
          ? h("a", { href: "#/compare" }, "Compare them")
          : null,
      ),
      ...modelTable(listed.models),
      ...exampleLine(listed.example, listed.models),
    );
    replace(
      traces,
      h("h2", {}, "Recent traces"),
      recent.traces.length
        ? traceList(recent.traces)
        : h("p", { class: "muted" }, "None yet: choose a model, type a sentence above and press Run."),
    );
    if (state && state !== listed.example.state) refresh();
    state = listed.example.state;
    if (state === "making") timer = window.setTimeout(() => draw().catch(tell), 1000);
  }
  /** @param {Model[]} all */
  function modelTable(all) {
    if (!all.length)
      return [
        h(
          "p",
          { class: "muted" },
          "No model was found where the studio looks. Train one with ",
          h("code", {}, "regard demo"),
          ".",
        ),
      ];
    return [
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Models" },
        h(
          "table",
          { class: "list" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ...["name", "model", "task", "steps", "best", "", ""].map((name) =>
                name
                  ? h("th", { scope: "col", class: name === "task" || name === "best" ? "optional" : null }, name)
                  : h("td", {}),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            ...all.map((model) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, word(model.name)),
                h("td", {}, model.model ?? "–"),
                h("td", { class: "optional" }, model.task ?? "–"),
                h("td", {}, model.step === null ? "–" : model.step.toLocaleString("en")),
                h("td", { class: "optional" }, scores(model.best)),
                h(
                  "td",
                  {},
                  model.usable
                    ? h("button", { type: "button", onclick: () => choose(model.id) }, "Use")
                    : h("span", { class: "muted" }, "no checkpoint yet"),
                ),
                h("td", {}, h("a", { href: `#/runs/${encodeURIComponent(model.id)}` }, "Training")),
              ),
            ),
          ),
        ),
      ),
    ];
  }
  /** @param {import("./types.js").ExampleState} example @param {Model[]} all */
  function exampleLine(example, all) {
    if (example.state === "making")
      return [
        h(
          "p",
          { role: "status" },
          h("progress", { "aria-label": "Training the example" }),
          ` Training a tiny translator on built-in phrases, so that there is something to look at (${Math.round(example.seconds ?? 0)} s; usually under a minute, once).`,
        ),
      ];
    const make = h(
      "button",
      { type: "button", onclick: () => post("example", {}).then(draw).catch(tell) },
      "Make the built-in example",
    );
    if (example.state === "failed")
      return [h("p", { class: "bad" }, example.message ?? "The example could not be made."), h("p", {}, make)];
    return example.state === "absent"
      ? [h("p", { class: "muted" }, "A tiny translator on built-in phrases, trained in under a minute: "), make]
      : [];
  }
  await draw();
  return {
    node: h(
      "main",
      { class: "home", tabindex: "-1" },
      h("h1", {}, "What did the model really do?"),
      h(
        "p",
        { class: "lead" },
        "Choose a model, type a sentence, press Run. Every number shown is the one the model used, and nothing leaves this machine.",
      ),
      traces,
      models,
    ),
    title: "Start",
    redraw: () => {},
    leave: () => clearTimeout(timer),
    key: () => false,
  };
}

/** @param {Record<string, number>} best */
function scores(best) {
  const told = Object.entries(best).filter(([name, value]) => name !== "step" && typeof value === "number");
  return told.map(([name, value]) => `${name} ${shown(value)}`).join(", ") || "–";
}

/** @param {Summary[]} all */
function traceList(all) {
  return h(
    "ul",
    { class: "traces" },
    ...all.map((trace) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: traceAddress(trace.id) },
          word(trace.text, "sentence source"),
          " → ",
          word(trace.answer || "(nothing)", "sentence target"),
        ),
        h("span", { class: "muted" }, ` ${trace.model.name}, ${ago(trace.made)}`),
      ),
    ),
  );
}
