// @ts-check
/** What cannot be shown of a trace: of an earlier version, or with tensors that are too large to be sent. */
import { h } from "../core/dom.js";

/** @typedef {import("../trace/trace.js").Trace} Trace */
/** @typedef {import("../core/types.js").Description} Description */

/** Tensors that are named. */
const NAMED = 3;

/** Null if the trace is of this version. @param {Trace} trace */
export function outdatedNote(trace) {
  if (!trace.isOutdated) return null;
  const text = `This trace was recorded by an earlier version (${trace.header.format || "without a format"}): what it has is shown. Run the sentence again for the rest.`;
  return h("p", { class: "trace-note", role: "note" }, text);
}

/** Null if every tensor is sent as a whole. @param {Trace} trace */
export function limitNote({ limited, header }) {
  if (!limited.length) return null;
  const rest = limited.length > NAMED ? `, and of ${limited.length - NAMED} more` : "";
  const most = (header.most_numbers ?? 0).toLocaleString("en");
  return h(
    "p",
    { class: "trace-note", role: "note" },
    `At most ${most} numbers of a tensor are sent at once, so the views show a part of `,
    ...limited
      .slice(0, NAMED)
      .flatMap((tensor, i) => [i ? ", " : "", h("code", {}, tensor.name), ` (${part(tensor)})`]),
    `${rest}. The tab Numbers reads all of them, part by part.`,
  );
}

/** @param {Description} tensor */
function part({ axes, shape, whole = shape }) {
  const cut = axes.filter((_, i) => shape[i] < whole[i]);
  return cut.map((axis) => `${axis} 0 to ${shape[axes.indexOf(axis)] - 1} of ${whole[axes.indexOf(axis)]}`).join(", ");
}
