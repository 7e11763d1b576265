// @ts-check
/** The list on the left: every tensor of the trace, under the part of the model that made it. */
import { h, replace } from "./dom.js";
import { parted } from "./explain.js";
import { titled } from "./story.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Description} Description */

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
    const wanted = filter.value.trim().toLowerCase();
    const fitting = trace.header.tensors.filter((tensor) => tensor.name.toLowerCase().includes(wanted));
    /** @type {Map<string, Description[]>} */
    const groups = new Map();
    for (const tensor of fitting) {
      const [base] = parted(tensor.name);
      groups.set(base, [...(groups.get(base) ?? []), tensor]);
    }
    replace(
      list,
      ...[...groups].map(([base, tensors]) =>
        h("section", {}, h("h3", {}, titled(base)), h("ul", {}, ...tensors.map((tensor) => item(context, tensor)))),
      ),
      groups.size ? null : h("p", { class: "muted" }, "No tensor is called so."),
    );
  }
  draw();
  const stop = selection.listen((changed) => {
    if ("tensor" in changed) draw();
  });
  return { node: h("nav", { class: "outline", "aria-label": "Tensors" }, filter, list), stop };
}

/** @param {Context} context @param {Description} tensor */
function item({ selection }, tensor) {
  const onclick = () => {
    const looks = tensor.name.endsWith("weights") && tensor.axes.includes("query");
    const tab = looks ? "attention" : "numbers";
    selection.set(selection.now.tab === tab ? { tensor: tensor.name } : { tensor: tensor.name, tab });
  };
  const current = tensor.name === selection.now.tensor ? "true" : null;
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", class: "outline-item", "aria-current": current, onclick },
      parted(tensor.name)[1],
      h("span", { class: "muted" }, ` ${tensor.shape.join("×")}`),
    ),
  );
}
