// @ts-check
/** Export dialog. */
import { h, openDialog } from "../core/dom.js";

/** @typedef {import("../core/types.js").Context} Context */

/** @param {Context} context */
export function exportDialog(context) {
  const { trace, selection } = context;
  const { tensor } = selection.current;
  openDialog(
    "Export",
    selection.current.tab === "saliency" ? saliencySection(context) : null,
    tensor !== null && trace.has(tensor) ? tensorSection(context, tensor) : null,
    h(
      "section",
      {},
      h("h3", {}, "Whole trace"),
      h(
        "ul",
        {},
        link(context, "HTML", "this page as one file, without a server", { format: "html", ...viewQuery(context) }),
        link(context, "safetensors", "all tensors; load with regard.Recording.load", { format: "safetensors" }),
        link(context, "JSON", "the header: tokens, steps, beam", { format: "json" }),
      ),
    ),
  );
}

/** @param {Context} context */
function saliencySection(context) {
  const view = "saliency";
  return h(
    "section",
    {},
    h("h3", {}, "Saliency of the answer"),
    h(
      "ul",
      {},
      link(context, "SVG", "the picture", { format: "svg", view }),
      link(context, "PNG", "the picture, as pixels", { format: "png", view }),
      link(context, "CSV", "one line per number", { format: "csv", view }),
      link(context, "JSON", "all numbers", { format: "json", view }),
    ),
  );
}

/** @param {Context} context @param {string} tensor */
function tensorSection(context, tensor) {
  const { head } = context.selection.current;
  const caption = head === null ? "the picture, mean of all heads" : `the picture of head ${head}`;
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
            link(context, "SVG", caption, { format: "svg", ...what }),
            link(context, "PNG", `${caption}, as pixels`, { format: "png", ...what }),
          ]
        : []),
      link(context, "CSV", "one line per number, with its tokens", { format: "csv", tensor }),
      link(context, "JSON", "nested lists and the header", { format: "json", tensor }),
    ),
  );
}

/** @param {Context} context @param {string} text @param {string} note @param {Record<string, string>} query */
function link({ trace }, text, note, query) {
  const file = h("a", { href: trace.source.file(query), download: true }, text);
  return h("li", {}, file, h("span", { class: "muted" }, ` ${note}`));
}

/** The current selection, so that the file opens with it. @param {Context} context @returns {Record<string, string>} */
function viewQuery({ selection }) {
  const { tab, tensor, head } = selection.current;
  return { tab, ...(tensor === null ? {} : { tensor }), ...(head === null ? {} : { head: String(head) }) };
}
