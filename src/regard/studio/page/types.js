// @ts-check
/**
 * The shapes of what the server sends; no code, only types.
 *
 * @typedef {{token: string, shown: string}} Word
 * @typedef {{name: string, axes: string[], shape: number[], sides: Record<string, string>,
 *   names: Record<string, string[]>, backwards: boolean, dtype: "f4"|"i4",
 *   min: number, max: number}} Description
 * @typedef {{id: number, token: string, shown: string, logit: number}} Candidate
 * @typedef {{chosen: Candidate, log: number, entropy: number, best: Candidate[]}} Step
 * @typedef {{step: number, token: string, shown: string, score: number, parent: number|null,
 *   state: "on"|"left"|"ended"|"open", chosen: boolean, best?: number, worst?: number}} BeamNode
 * @typedef {{id: string, name: string, step?: number, parameters?: number, bytes?: number}} ModelName
 * @typedef {{id: string, model: ModelName, kind?: string, text: string, answer: string, made: string, seconds: number,
 *   decode: {beam: number|null}}} Summary
 * @typedef {{kind: "head", tensor: string, head: number}|{kind: "positions"}|{kind: "mask"}
 *   |{kind: "row", tensor: string, head: number, query: number, weights: number[]}
 *   |{kind: "token", step: number, id: number, shown: string}} Change
 * @typedef {{name: string, mean: number, most: number, share: number}} Moved
 * @typedef {{of: string, answer: string, log: number|null, changes: Change[], moved: Moved[], compared: number}} Fork
 * @typedef {Summary & {format: string, sequences: Record<string, Word[]>, tensors: Description[], steps: Step[],
 *   beam: BeamNode[], fork: Fork|null, can?: string[], left?: string[], gradients?: Gradients[],
 *   saliency?: Saliency}} Header
 * @typedef {{distances: number[], norms: number[], rate: number|null}} Decay
 * @typedef {{name: string, side: string, rows: string[], columns: string[], norms: number[][], decay: Decay}} Gradients
 * @typedef {{title: string, method: string, rows: string[], columns: string[], scores: number[][],
 *   sides: [string, string]}} Saliency
 * @typedef {{state: "absent"|"making"|"ready"|"failed", seconds: number|null, message: string|null}} ExampleState
 * @typedef {{id: string, name: string, model: string|null, task: string|null, data: string|null, usable: boolean,
 *   words: boolean, step: number|null, best: Record<string, number>, changed: number|null}} Model
 * @typedef {{word: string, shown: string, cosine: number}} Near
 * @typedef {{word: string, shown: string, x: number, y: number}} Spot
 * @typedef {{model: {id: string, name: string, step: number}, side: string, sides: string[], size: number,
 *   width: number, words: Spot[], shares: [number, number]}} Drawn
 * @typedef {{regard: string, models: number, example: ExampleState, sentence: string,
 *   limits: {characters: number, series: number, tokens: number, beam: number}}} Info
 * @typedef {{rows: Record<string, any>[], samples: Record<string, any>[], version: string, next: number, more: boolean,
 *   anew: boolean, name: string, asked: "save"|"stop"|null, silent: number|null,
 *   probe: {text: string, steps: number[]}|null}} Progress
 * @typedef {Record<string, number>} Place
 * A place in a tensor: the index on each of its axes.
 */
export {};
