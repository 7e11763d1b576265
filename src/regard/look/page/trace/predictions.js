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
 * What followed or was chosen at each position of a lens, what that is called, and notes.
 * whole: the text as a whole has one output
 * @typedef {{title: string, tokens: (Token|null)[], whole: boolean, notes: string[]}} LensFacts
 */

const TITLES = { next: "next token", token: "token", answer: "answer" };

/** @param {Trace} trace @returns {LensFacts} */
export function lensFacts({ header }) {
  const { lens } =
    /** @type {{lens?: {actual: Token[], actual_title: keyof typeof TITLES, whole: boolean, notes: string[]}|null}} */ (
      header
    );
  if (!lens) return { title: "", tokens: [], whole: false, notes: [] };
  return { title: TITLES[lens.actual_title], tokens: lens.actual, whole: lens.whole, notes: lens.notes };
}
