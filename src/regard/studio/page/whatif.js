// @ts-check
/** What if: the same text through the same model with one thing changed, and what came of it. */
import { post } from "./api.js";
import { h, word } from "./dom.js";
import { shown } from "./format.js";
import { short } from "./heads.js";
import { hush, tell } from "./notice.js";
import { traceAddress } from "./route.js";
import { line, table } from "./table.js";
import { common } from "./words.js";

/** @typedef {import("./inspector.js").Context} Context */
/** @typedef {import("./types.js").Change} Change */
/** @typedef {import("./types.js").Fork} Fork */
/** @typedef {import("./types.js").Header} Header */

/** What can be changed in one go, if the model has it. */
const WISHES = {
  positions: { text: "Drop the positions", note: "Every word forgets where it stands." },
  mask: { text: "Take the mask away", note: "The answer is read again, each word seeing those after it." },
};

/**
 * Ask for a sibling of this trace, and go there.
 * @param {Context} context @param {object} change @param {Record<string, string|number|null>} [query]
 */
export async function fork(context, change, query = {}) {
  const { header } = context.trace;
  const { tab, tensor, head } = context.selection.now;
  hush();
  try {
    const made = await post(`traces/${encodeURIComponent(header.id)}/fork`, { change });
    location.hash = traceAddress(made.id, { tab, tensor, head, ...query });
  } catch (error) {
    tell(error);
  }
}

/** Buttons for what concerns the whole model. @param {Context} context */
export function wishes(context) {
  const { header, live } = context.trace;
  const done = new Set(header.fork?.changes?.map((change) => change.kind));
  const can = /** @type {(keyof typeof WISHES)[]} */ (header.can ?? []).filter(
    (kind) => WISHES[kind] && !done.has(kind),
  );
  if (!live || !can.length) return null;
  return h(
    "p",
    { class: "row wishes", role: "group", "aria-label": "What if" },
    h("span", { class: "muted" }, "What if?"),
    ...can.map((kind) =>
      h(
        "button",
        { type: "button", class: "small", title: WISHES[kind].note, onclick: () => fork(context, { kind }) },
        WISHES[kind].text,
      ),
    ),
  );
}

/** What was changed in this trace, and what came of it. @param {Context} context */
export function changed(context) {
  const { header, live } = context.trace;
  const { fork } = header;
  if (!fork?.changes) return null;
  const back = h(
    "a",
    { href: traceAddress(fork.of, { tab: context.selection.now.tab }) },
    "Back to the model as it is",
  );
  return h(
    "section",
    { class: "fork", "aria-label": "What was changed" },
    h("p", {}, h("b", {}, "What if: "), fork.changes.map((change) => told(context.trace, change)).join("; "), "."),
    h("p", {}, ...answers(fork, header)),
    differences(context, fork),
    live ? h("p", {}, back) : null,
  );
}

/** A change in words. @param {import("./trace.js").Trace} trace @param {Change} change */
function told(trace, change) {
  switch (change.kind) {
    case "head":
      return `${short(change.tensor)} head ${change.head} switched off`;
    case "row":
      return `where ${query(trace, change)} looks in ${short(change.tensor)} head ${change.head} written by hand`;
    case "token":
      return `“${change.shown}” said at step ${change.step + 1}`;
    case "positions":
      return "no positions";
    case "mask":
      return "no mask: the answer was read again, each word seeing those after it";
  }
}

/** The word whose row was written. @param {import("./trace.js").Trace} trace @param {{tensor: string, query: number}} row */
function query(trace, { tensor, query }) {
  const word = trace.has(tensor) ? trace.words(tensor, "query")?.[query] : null;
  return word ? `“${word.shown}”` : `row ${query}`;
}

/** @param {Fork} fork @param {Header} header */
function answers(fork, header) {
  const total = header.steps.reduce((sum, step) => sum + step.log, 0);
  const likely = header.steps.length
    ? ` Log-probability ${shown(total)}, before ${fork.log === null ? "–" : shown(fork.log)}.`
    : "";
  const again = fork.changes.some((change) => change.kind === "mask");
  if (fork.answer === header.answer)
    return [`${again ? "The same words, read again" : "The answer stays the same"}.${likely}`];
  const [before, after] = [fork.answer.split(/\s+/), header.answer.split(/\s+/)];
  const same = common(before, after);
  return [
    "Before: ",
    word(fork.answer || "(nothing)", "sentence target"),
    ". Now: ",
    h(
      "bdi",
      { class: "sentence target", dir: "auto" },
      ...after.flatMap((text, i) => [same.has(i) ? text : h("mark", {}, text), i < after.length - 1 ? " " : ""]),
    ),
    `.${likely}`,
  ];
}

/** The tensors that moved most. @param {Context} context @param {Fork} fork */
function differences(context, fork) {
  if (!fork.moved.length) return null;
  const show = (/** @type {string} */ tensor) => {
    const looks = tensor.endsWith("weights");
    context.selection.set({ tensor, tab: looks ? "attention" : "numbers", ...(looks ? { mode: "change" } : {}) });
  };
  const rows = fork.moved.map((moved) =>
    line(h("button", { type: "button", class: "link", onclick: () => show(moved.name) }, moved.name), [
      shown(moved.mean),
      shown(moved.most),
      `${(100 * moved.share).toFixed(1)} %`,
    ]),
  );
  return h(
    "details",
    { class: "as-table" },
    h("summary", {}, `What moved, as long as the words are the same: ${fork.moved.length} of ${fork.compared} tensors`),
    table("What moved", ["tensor", "mean change", "largest change", "of its size"], rows),
  );
}
