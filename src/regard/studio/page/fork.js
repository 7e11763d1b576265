// @ts-check
/** What was changed in this trace, and what came of it. */
import { h, word } from "./dom.js";
import { short } from "./heads.js";
import { traceAddress } from "./route.js";

/** @param {import("./types.js").Header} header */
export function forked(header) {
  const { fork } = header;
  if (!fork) return null;
  const off = fork.off.map(([name, head]) => `${short(name)} head ${head}`).join(", ");
  return h(
    "p",
    { class: "fork" },
    h("b", {}, "What if: "),
    `${off} switched off. `,
    ...(fork.answer === header.answer
      ? ["The answer stays the same. "]
      : ["Before: ", word(fork.answer || "(nothing)", "sentence target"), ". "]),
    h("a", { href: traceAddress(fork.of, { tab: "attention" }) }, "Back to the model as it is"),
  );
}
