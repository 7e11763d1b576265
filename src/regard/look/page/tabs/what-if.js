// @ts-check
/** What-if changes: the same input through the same model with one thing changed, and the differences. */
import { post } from "../core/api.js";
import { commonIndices } from "../core/diff.js";
import { h, word } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { clearNotices, showError } from "../core/notice.js";
import { traceAddress } from "../core/route.js";
import { shortName } from "../trace/names.js";
import { table, tableRow } from "../widgets/table.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Change} Change */
/** @typedef {import("../core/types.js").Fork} Fork */
/** @typedef {import("../core/types.js").Header} Header */

/** Changes that apply to the whole model. */
const CHANGES = {
  positions: { text: "Remove positions", note: "Runs the model without position encodings." },
  mask: { text: "Remove the causal mask", note: "Reads the answer again, with each word attending to later ones." },
};

/**
 * Requests a changed trace and opens it.
 * @param {Context} context @param {object} change @param {Record<string, string|number|null>} [query]
 */
export async function fork(context, change, query = {}) {
  const { header } = context.trace;
  const { tab, tensor, head } = context.selection.current;
  clearNotices();
  try {
    const made = await post(`traces/${encodeURIComponent(header.id)}/fork`, { change });
    location.hash = traceAddress(made.id, { tab, tensor, head, ...query });
  } catch (error) {
    showError(error);
  }
}

/** Buttons for changes of the whole model. @param {Context} context */
export function whatIfButtons(context) {
  const { header, live } = context.trace;
  const done = new Set(header.fork?.changes?.map((change) => change.kind));
  const can = /** @type {(keyof typeof CHANGES)[]} */ (header.supported_changes ?? []).filter(
    (kind) => CHANGES[kind] && !done.has(kind),
  );
  if (!live || !can.length) return null;
  return h(
    "p",
    { class: "row what-if", role: "group", "aria-label": "What if" },
    h("span", { class: "muted" }, "What if?"),
    ...can.map((kind) =>
      h(
        "button",
        { type: "button", class: "small", title: CHANGES[kind].note, onclick: () => fork(context, { kind }) },
        CHANGES[kind].text,
      ),
    ),
  );
}

/** The changes of this trace and their effect. @param {Context} context */
export function forkSummary(context) {
  const { header, live } = context.trace;
  const { fork } = header;
  if (!fork?.changes) return null;
  const back = h(
    "a",
    { href: traceAddress(fork.base, { tab: context.selection.current.tab }) },
    "Back to the unchanged model",
  );
  return h(
    "section",
    { class: "fork", "aria-label": "What was changed" },
    h(
      "p",
      {},
      h("b", {}, "What if: "),
      fork.changes.map((change) => describeChange(context.trace, change)).join("; "),
      ".",
    ),
    h("p", {}, ...compareAnswers(fork, header)),
    differences(context, fork),
    live ? h("p", {}, back) : null,
  );
}

/** Description of a change. @param {import("../trace/trace.js").Trace} trace @param {Change} change */
function describeChange(trace, change) {
  switch (change.kind) {
    case "head":
      return `${shortName(change.tensor)} head ${change.head} switched off`;
    case "row":
      return `attention of ${queryText(trace, change)} in ${shortName(change.tensor)} head ${change.head} edited`;
    case "token":
      return `“${change.label}” forced at step ${change.step + 1}`;
    case "positions":
      return "no positions";
    case "mask":
      return "no causal mask: the answer was read again, with each word attending to later ones";
  }
}

/** The word whose row was edited. @param {import("../trace/trace.js").Trace} trace @param {{tensor: string, query: number}} row */
function queryText(trace, { tensor, query }) {
  const word = trace.has(tensor) ? trace.tokens(tensor, "query")?.[query] : null;
  return word ? `“${word.label}”` : `row ${query}`;
}

/** @param {Fork} fork @param {Header} header */
function compareAnswers(fork, header) {
  const total = header.steps.reduce((sum, step) => sum + step.log_prob, 0);
  const likely = header.steps.length
    ? ` Log-probability ${formatNumber(total)}, before ${fork.log_prob === null ? "–" : formatNumber(fork.log_prob)}.`
    : "";
  const again = fork.changes.some((change) => change.kind === "mask");
  if (fork.answer === header.answer)
    return [`${again ? "The same answer, read again" : "The answer is the same"}.${likely}`];
  const [before, after] = [fork.answer.split(/\s+/), header.answer.split(/\s+/)];
  const same = commonIndices(before, after);
  return [
    "Before: ",
    word(fork.answer || "(empty)", "sentence target"),
    ". Now: ",
    h(
      "bdi",
      { class: "sentence target", dir: "auto" },
      ...after.flatMap((text, i) => [same.has(i) ? text : h("mark", {}, text), i < after.length - 1 ? " " : ""]),
    ),
    `.${likely}`,
  ];
}

/** The tensors with the largest differences. @param {Context} context @param {Fork} fork */
function differences(context, fork) {
  if (!fork.differences.length) return null;
  const show = (/** @type {string} */ tensor) => {
    const isAttention = tensor.endsWith("weights");
    context.selection.set({
      tensor,
      tab: isAttention ? "attention" : "numbers",
      ...(isAttention ? { mode: "change" } : {}),
    });
  };
  const rows = fork.differences.map((difference) =>
    tableRow(h("button", { type: "button", class: "link", onclick: () => show(difference.name) }, difference.name), [
      formatNumber(difference.mean),
      formatNumber(difference.max),
      `${(100 * difference.relative).toFixed(1)} %`,
    ]),
  );
  return h(
    "details",
    { class: "as-table" },
    h(
      "summary",
      {},
      `Largest differences up to the first changed word: ${fork.differences.length} of ${fork.compared} tensors`,
    ),
    table("Largest differences", ["tensor", "mean change", "largest change", "relative change"], rows),
  );
}
