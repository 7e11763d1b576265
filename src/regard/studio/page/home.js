// @ts-check
/** The start page: models, recent traces, and something to look at before anybody has trained anything. */
import { get, post } from "./api.js";
import { h, replace, word } from "./dom.js";
import { ago, shown } from "./format.js";
import { comparable } from "./lineup.js";
import { tell } from "./notice.js";
import { traceAddress, wordsAddress } from "./route.js";
import { answered, called } from "./series.js";
import { scrolled } from "./table.js";

/** @typedef {import("./types.js").Model} Model */
/** @typedef {import("./types.js").Summary} Summary */

const LEAD =
  "Choose a model, type a sentence, press Run. Every number shown is the one the model used, and nothing leaves this machine.";

/** @param {(model: string) => void} choose @param {() => void} refresh @returns {Promise<import("./inspector.js").Screen>} */
export async function home(choose, refresh) {
  const screen = new Home(choose, refresh);
  await screen.draw();
  return {
    node: screen.node,
    title: "Start",
    redraw: () => {},
    leave: () => clearTimeout(screen.timer),
    key: () => false,
  };
}

class Home {
  /** @param {(model: string) => void} choose @param {() => void} refresh */
  constructor(choose, refresh) {
    this.choose = choose;
    this.refresh = refresh;
    this.timer = 0;
    this.state = "";
    this.models = h("section", { class: "card" });
    this.traces = h("section", { class: "card" });
    this.node = h(
      "main",
      { class: "home", tabindex: "-1" },
      h("h1", {}, "What did the model really do?"),
      h("p", { class: "lead" }, LEAD),
      this.traces,
      this.models,
    );
  }

  async draw() {
    const [listed, recent] = await Promise.all([get("models"), get("traces")]);
    const compare = listed.models.filter(comparable).length > 1 ? h("a", { href: "#/compare" }, "Compare them") : null;
    replace(
      this.models,
      h("div", { class: "row" }, h("h2", {}, "Models"), compare),
      listed.models.length ? this.list(listed.models) : nothing(),
      ...this.example(listed.example),
    );
    const none = "None yet: choose a model, type a sentence above and press Run.";
    replace(
      this.traces,
      h("h2", {}, "Recent traces"),
      recent.traces.length ? traceList(recent.traces) : h("p", { class: "muted" }, none),
    );
    if (this.state && this.state !== listed.example.state) this.refresh();
    this.state = listed.example.state;
    if (this.state === "making") this.timer = window.setTimeout(() => this.draw().catch(tell), 1000);
  }

  /** @param {Model[]} all */
  list(all) {
    const optional = (/** @type {string} */ name) => (name === "task" || name === "best" ? "optional" : null);
    const head = ["name", "model", "task", "steps", "best", "", ""].map((name) =>
      name ? h("th", { scope: "col", class: optional(name) }, name) : h("td", {}),
    );
    const body = h("tbody", {}, ...all.map((model) => this.row(model)));
    return scrolled("Models", h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...head)), body));
  }

  /** @param {Model} model */
  row(model) {
    return h(
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
          ? h("button", { type: "button", onclick: () => this.choose(model.id) }, "Use")
          : h("span", { class: "muted" }, "no checkpoint yet"),
      ),
      h(
        "td",
        { class: "links" },
        h("a", { href: `#/runs/${encodeURIComponent(model.id)}` }, "Training"),
        model.usable && model.words ? h("a", { href: wordsAddress(model.id) }, "Words") : null,
      ),
    );
  }

  /** @param {import("./types.js").ExampleState} example */
  example(example) {
    if (example.state === "making") {
      const told = ` Training a tiny translator on built-in phrases, so that there is something to look at (${Math.round(example.seconds ?? 0)} s; usually under a minute, once).`;
      return [h("p", { role: "status" }, h("progress", { "aria-label": "Training the example" }), told)];
    }
    const begin = () =>
      post("example", {})
        .then(() => this.draw())
        .catch(tell);
    const make = h("button", { type: "button", onclick: begin }, "Make the built-in example");
    if (example.state === "failed")
      return [h("p", { class: "bad" }, example.message ?? "The example could not be made."), h("p", {}, make)];
    return example.state === "absent"
      ? [h("p", { class: "muted" }, "A tiny translator on built-in phrases, trained in under a minute: "), make]
      : [];
  }
}

function nothing() {
  const told = "No model was found where the studio looks. Train one with ";
  return h("p", { class: "muted" }, told, h("code", {}, "regard demo"), ".");
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
          word(called(trace.kind, trace.text), "sentence source"),
          " → ",
          word(answered(trace.kind, trace.answer) || "(nothing)", "sentence target"),
        ),
        h("span", { class: "muted" }, ` ${trace.model.name}, ${ago(trace.made)}`),
      ),
    ),
  );
}
