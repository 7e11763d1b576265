// @ts-check
/** What is on the screen as a file. */
import { h } from "./dom.js";

/** @typedef {import("./inspector.js").Context} Context */

/** @param {Context} context */
export function exportDialog(context) {
  const { trace, selection } = context;
  const { tensor, head } = selection.now;
  const link = (/** @type {string} */ text, /** @type {string} */ note, /** @type {Record<string, string>} */ query) =>
    h("li", {}, h("a", { href: trace.file(query), download: true }, text), h("span", { class: "muted" }, ` ${note}`));
  const looks = tensor !== null && tensor.endsWith("weights");
  const dialog = h(
    "dialog",
    { "aria-label": "Export", onclose: () => dialog.remove() },
    h("h2", {}, "Export"),
    tensor !== null && trace.has(tensor)
      ? h(
          "section",
          {},
          h("h3", {}, h("code", {}, tensor)),
          h(
            "ul",
            {},
            looks
              ? link("SVG", head === null ? "the picture, mean of all heads" : `the picture of head ${head}`, {
                  format: "svg",
                  tensor,
                  ...(head === null ? {} : { head: String(head) }),
                })
              : null,
            link("CSV", "one line a number, with its words", { format: "csv", tensor }),
            link("JSON", "nested lists and the header", { format: "json", tensor }),
          ),
        )
      : null,
    h(
      "section",
      {},
      h("h3", {}, "The whole trace"),
      h(
        "ul",
        {},
        link("safetensors", "every tensor; regard.Recording.load opens it", { format: "safetensors" }),
        link("JSON", "the header: tokens, steps, beam", { format: "json" }),
      ),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
