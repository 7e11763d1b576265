// @ts-check
/** The list on the left: every tensor of the trace, under the part of the model that made it. */
import { h, replace } from "./dom.js";
import { parted } from "./explain.js";
import { titled } from "./story.js";

/** @typedef {import("./inspector.js").Context} Context */

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
    /** @type {Map<string, import("./types.js").Description[]>} */
    const groups = new Map();
    for (const tensor of trace.header.tensors) {
      if (!tensor.name.toLowerCase().includes(wanted)) continue;
      const [base] = parted(tensor.name);
      groups.set(base, [...(groups.get(base) ?? []), tensor]);
    }
    replace(
      list,
      ...[...groups].map(([base, tensors]) =>
        h(
          "section",
          {},
          h("h3", {}, titled(base)),
          h(
            "ul",
            {},
            ...tensors.map((tensor) =>
              h(
                "li",
                {},
                h(
                  "button",
                  {
                    type: "button",
                    class: "outline-item",
                    "aria-current": tensor.name === selection.now.tensor ? "true" : null,
                    onclick: () => {
                      const looks = tensor.name.endsWith("weights") && tensor.axes.includes("query");
                      const tab = looks ? "attention" : "numbers";
                      selection.set(selection.now.tab === tab ? { tensor: tensor.name } : { tensor: tensor.name, tab });
                    },
                  },
                  parted(tensor.name)[1],
                  h("span", { class: "muted" }, ` ${tensor.shape.join("×")}`),
                ),
              ),
            ),
          ),
        ),
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
