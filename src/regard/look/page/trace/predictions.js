// @ts-check
/** Predictions of a trace, from its header: candidates of decoding steps, of positions of a text, and of masks. */

/** @typedef {import("../core/types.js").Step} Step */
/** @typedef {import("../core/types.js").Token} Token */
/** @typedef {import("../core/types.js").Prediction} Prediction */
/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./tensor.js").Tensor} Tensor */

/** Names of the tensors of the logit lens. */
export const LENS = { ids: "lens.ids", probabilities: "lens.probabilities" };

/** Probability of a candidate of a step: p(chosen) exp(logit - logit of chosen). @param {Step} step @param {number} logit */
export function stepProbability(step, logit) {
  return Math.exp(step.log_prob + logit - step.chosen.logit);
}

/** Number of tokens that were read before the first generated one. @param {Trace} trace */
export function promptLength({ header }) {
  return Math.max(0, (header.sequences.read?.length ?? header.steps.length) - header.steps.length);
}

/** The prediction of a decoding step. @param {Step} step @param {Token|undefined} read the token before it @returns {Prediction} */
export function stepPrediction(step, read) {
  const { chosen, best } = step;
  const rank = best.findIndex((candidate) => candidate.id === chosen.id) + 1;
  return {
    read: read ?? { token: "", label: "" },
    best: best.map((one) => ({ ...one, probability: stepProbability(step, one.logit) })),
    actual: { ...chosen, rank, probability: Math.exp(step.log_prob) },
  };
}

/**
 * Tokens and probabilities of the logit lens, the most probable first.
 * @param {Trace} trace @param {Tensor} ids @param {Tensor} probabilities @param {number} layer @param {number} position
 */
export function lensCandidates(trace, ids, probabilities, layer, position) {
  const numbers = probabilities.vector("candidate", { layer, position });
  return Array.from(ids.vector("candidate", { layer, position }), (id, i) => ({
    ...(trace.header.lens_tokens?.[String(id)] ?? { token: String(id), label: String(id) }),
    probability: numbers[i],
  }));
}

/**
 * The actual token at each position: the one that followed, or the token itself where the source was read.
 * @param {Trace} trace @returns {{title: string, tokens: (Token|null)[]}}
 */
export function actualTokens(trace) {
  const { sides, shape, axes } = trace.describe(LENS.ids);
  const read = trace.tokens(LENS.ids, "position") ?? Array(shape[axes.indexOf("position")]).fill(null);
  if (sides.position === "source") return { title: "token", tokens: read };
  const last = trace.header.sequences.target?.at(-1) ?? null;
  return { title: "next token", tokens: [...read.slice(1), last] };
}
