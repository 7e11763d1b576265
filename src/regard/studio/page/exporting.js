// @ts-check
/** What is on the screen as a file. */
import { h } from "./dom.js";

/** @typedef {import("./inspector.js").Context} Context */

/** @param {Context} context */
export function exportDialog(context) {
  const { trace, selection } = context;
  const { tensor } = selection.now;
  const dialog = h(
    "dialog",
    { "aria-label": "Export", onclose: () => dialog.remove() },
    h("h2", {}, "Export"),
    selection.now.tab === "saliency" ? ofSaliency(context) : null,
    tensor !== null && trace.has(tensor) ? ofTensor(context, tensor) : null,
    h(
      "section",
      {},
      h("h3", {}, "The whole trace"),
      h(
        "ul",
        {},
        link(context, "HTML", "this page as one file: it needs no server", { format: "html", ...address(context) }),
        link(context, "safetensors", "every tensor; regard.Recording.load opens it", { format: "safetensors" }),
        link(context, "JSON", "the header: tokens, steps, beam", { format: "json" }),
      ),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {Context} context */
function ofSaliency(context) {
  const view = "saliency";
  return h(
    "section",
    {},
    h("h3", {}, "What the answer hung on"),
    h(
      "ul",
      {},
      link(context, "SVG", "the picture", { format: "svg", view }),
      link(context, "PNG", "the picture, as pixels", { format: "png", view }),
      link(context, "CSV", "one line a number", { format: "csv", view }),
      link(context, "JSON", "all numbers", { format: "json", view }),
    ),
  );
}

/** @param {Context} context @param {string} tensor */
function ofTensor(context, tensor) {
  const { head } = context.selection.now;
  const pictured = head === null ? "the picture, mean of all heads" : `the picture of head ${head}`;
  const what = { tensor, ...(head === null ? {} : { head: String(head) }) };
  return h(
    "section",
    {},
    h("h3", {}, h("code", {}, tensor)),
    h(
      "ul",
      {},
      ...(tensor.endsWith("weights")
        ? [
            link(context, "SVG", pictured, { format: "svg", ...what }),
            link(context, "PNG", `${pictured}, as pixels`, { format: "png", ...what }),
          ]
        : []),
      link(context, "CSV", "one line a number, with its words", { format: "csv", tensor }),
      link(context, "JSON", "nested lists and the header", { format: "json", tensor }),
    ),
  );
}

/** @param {Context} context @param {string} text @param {string} note @param {Record<string, string>} query */
function link({ trace }, text, note, query) {
  const file = h("a", { href: trace.source.file(query), download: true }, text);
  return h("li", {}, file, h("span", { class: "muted" }, ` ${note}`));
}

/** What is chosen now, so that the file opens there. @param {Context} context @returns {Record<string, string>} */
function address({ selection }) {
  const { tab, tensor, head } = selection.now;
  return { tab, ...(tensor === null ? {} : { tensor }), ...(head === null ? {} : { head: String(head) }) };
}
