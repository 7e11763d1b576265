// @ts-check
/** List of all tensors of a trace, grouped by module. */
import { h, replace } from "../core/dom.js";
import { moduleTitle, splitName } from "../trace/names.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */

/** @param {Context} context */
export function outline(context) {
  const { trace, selection } = context;
  const list = h("div", { class: "outline-list" });
  const filter = h("input", {
    type: "search",
    placeholder: "Filter tensors",
    "aria-label": "Filter tensors",
    oninput: draw,
  });
  function draw() {
    const text = filter.value.trim().toLowerCase();
    const matching = trace.header.tensors.filter((tensor) => tensor.name.toLowerCase().includes(text));
    /** @type {Map<string, Description[]>} */
    const groups = new Map();
    for (const tensor of matching) {
      const [base] = splitName(tensor.name);
      groups.set(base, [...(groups.get(base) ?? []), tensor]);
    }
    replace(
      list,
      ...[...groups].map(([base, tensors]) =>
        h(
          "section",
          {},
          h("h3", {}, moduleTitle(base)),
          h("ul", {}, ...tensors.map((tensor) => item(context, tensor))),
        ),
      ),
      groups.size ? null : h("p", { class: "muted" }, "No matching tensor."),
    );
  }
  draw();
  const stop = selection.listen(["tensor"], draw);
  return { node: h("nav", { class: "outline", "aria-label": "Tensors" }, filter, list), stop };
}

/** @param {Context} context @param {Description} tensor */
function item({ selection }, tensor) {
  const onclick = () => {
    const isAttention = tensor.name.endsWith("weights") && tensor.axes.includes("query");
    const tab = isAttention ? "attention" : "numbers";
    selection.set(selection.current.tab === tab ? { tensor: tensor.name } : { tensor: tensor.name, tab });
  };
  const current = tensor.name === selection.current.tensor ? "true" : null;
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", class: "outline-item", "aria-current": current, onclick },
      splitName(tensor.name)[1],
      h("span", { class: "muted" }, ` ${(tensor.whole ?? tensor.shape).join("×")}`),
    ),
  );
}
