// @ts-check
/**
 * Types of what the server sends and of what the screens share; no code.
 *
 * Import style. look/html.py joins these modules into the script of the single-file page with two regular expressions,
 * so every module of the page
 * - imports only as `import { a, b as c } from "../folder/module.js";`, at the start of a line, by a relative path,
 * - exports only as `export function`, `export async function`, `export class`, `export const` or `export {};`,
 * - never imports in a circle and has no default export, namespace import, re-export or dynamic import.
 * Anything else is an error when the file is made, and in tests/studio/test_page_modules.py. A folder imports only from
 * itself and from those before it: core, trace, widgets, scene, tour, tabs, screens and lessons, main.js and standalone.js.
 *
 * @typedef {{token: string, label: string}} Token
 * @typedef {{name: string, axes: string[], shape: number[], sides: Record<string, string>,
 *   names: Record<string, string[]>, backwards: boolean, dtype: "f4"|"i4",
 *   min: number, max: number, scaled?: boolean, masked?: boolean, whole?: number[]}} Description
 * whole: the recorded shape of a tensor that is too large to be sent; `shape` is then that of the part that is
 * @typedef {{id: string, kind: string, title: string, tensor?: string, tensors: string[], side: "source"|"target",
 *   stack: string, layer?: string, number?: number, direction?: "backward"}} GraphNode
 * @typedef {{from: string, to: string, kind: "flow"|"residual"|"memory"|"start"|"previous"}} GraphEdge
 * @typedef {{nodes: GraphNode[], edges: GraphEdge[]}} Graph parts of a model in the order of computation
 * @typedef {{id: number, token: string, label: string, logit: number}} Candidate
 * @typedef {{chosen: Candidate, log_prob: number, entropy: number, best: Candidate[]}} Step
 * @typedef {{read: Token, best: (Token & {probability: number})[],
 *   actual: (Token & {rank: number, probability: number})|null}} Prediction
 * Candidates at a position, the most probable first; rank 0: the actual token is not among them.
 * @typedef {{step: number, token: string, label: string, score: number, parent: number|null,
 *   state: "on"|"pruned"|"ended"|"open", chosen: boolean, best?: number, worst?: number}} BeamNode
 * @typedef {{id: string, name: string, step?: number, parameters?: number, bytes?: number, untrained?: boolean}} ModelName
 * @typedef {{id: string, model: ModelName, kind?: string, text: string, answer: string, created: string, seconds: number,
 *   decode: {beam: number|null, search?: string|null, length?: number|null}}} Summary
 * @typedef {{title: string, time: string, times: string[], level: number, window: number,
 *   columns: {name: string, past: number[], expected: number[], lower: number[], upper: number[]}[]}} ForecastParts
 * @typedef {{text: string, label: string, probability: number|null}} LabeledToken
 * @typedef {{numbers: {name: string, mean: number, deviation: number}[], rmse: number|null,
 *   is_position: boolean}} NumberParts
 * @typedef {{kind: "head", tensor: string, head: number}|{kind: "positions"}|{kind: "mask"}
 *   |{kind: "row", tensor: string, head: number, query: number, weights: number[]}
 *   |{kind: "token", step: number, id: number, label: string}} Change
 * @typedef {{name: string, mean: number, max: number, relative: number}} TensorDifference
 * @typedef {{base: string, answer: string, log_prob: number|null, changes: Change[],
 *   differences: TensorDifference[], compared: number}} Fork
 * @typedef {Summary & {format: string, sequences: Record<string, Token[]>, tensors: Description[], steps: Step[],
 *   predictions?: {kind: "next"|"mask", positions: Prediction[]}|null, lens_tokens?: Record<string, Token>,
 *   window?: {number: number, count: number, before: number[], tokens: number, total: number}|null, windows?: string[],
 *   parts?: ForecastParts|{tokens: LabeledToken[], is_chain: boolean}|NumberParts|{},
 *   graph?: Graph|null, head_roles?: HeadRole[], beam: BeamNode[], fork: Fork|null, supported_changes?: string[],
 *   omitted?: string[], most_numbers?: number,
 *   gradients?: Gradients[], saliency?: Saliency}} Header
 * @typedef {{name: string, head: number, role: string, statistics: Record<string, number|null>}} HeadRole
 * @typedef {{distances: number[], norms: number[], rate: number|null, relative: boolean}} Decay
 * @typedef {{name: string, side: string, rows: string[], columns: string[], norms: number[][], decay: Decay}} Gradients
 * @typedef {{title: string, method: string, rows: string[], columns: string[], scores: number[][],
 *   sides: [string, string]}} Saliency
 * @typedef {{title: string, outputs: string[], method: string, kind: "pixels", images: string[], channels: string[],
 *   scores: number[][][][][]}} PixelSaliency
 * @typedef {{id: string, name: string, model: string|null, task: string|null, data: string|null, usable: boolean,
 *   search: string|null, loaded: boolean, words: boolean, image: boolean, clip: boolean, step: number|null, best: Record<string, number>, changed: number|null,
 *   unreadable: string|null}} Model
 * @typedef {{id: string, name: string, year: number, part: string, idea: string, paper: string, against: string,
 *   new: string, after: string[], file: string, lines: number, lesson: string|null, command: string|null,
 *   result: string|null, logged: string|null, models: {id: string, name: string}[]}} System
 * @typedef {{year: number, until: number|null, name: string, text: string, lesson: string|null,
 *   undisclosed: boolean}} LineEvent
 * @typedef {{parts: string[], entries: System[], events: LineEvent[]}} SystemLine
 * @typedef {{word: string, label: string, cosine: number}} Neighbor
 * @typedef {{word: string, label: string, x: number, y: number}} MapPoint
 * @typedef {{model: {id: string, name: string, step: number}, side: string, sides: string[], size: number,
 *   width: number, words: MapPoint[], explained_variance: [number, number]}} EmbeddingMap
 * @typedef {{regard: string, models: number, sentence: string,
 *   limits: {characters: number, series: number, image: number, tokens: number, beam: number}}} Info
 * @typedef {{rows: Record<string, any>[], samples: Record<string, any>[], version: string, next: number, more: boolean,
 *   reset: boolean, name: string, command: "save"|"stop"|null, idle_seconds: number|null,
 *   probe: {text: string, steps: number[]}|null}} Progress
 *
 * @typedef {Record<string, number>} Index position in a tensor, per axis
 * @typedef {{kind: "tensor"|"recorded"|"weight"|"input"|"constant"|"computed", name: string, index: Index,
 *   ref: string}} Place of a number; `ref` is empty where the server is not needed to find it
 * @typedef {{kind: Place["kind"]|"mixed", name: string, index: Index, along: string[], size: number,
 *   numbers: number[], places: (number[]|Place)[], refs: string[]}} Vector numbers with what their places share
 * @typedef {{op: "number", value: number, place: Place}} NumberExpression
 * @typedef {{op: "combination", operator: "+"|"−"|"×"|"÷"|"^"|"max"|"min", terms: Expression[],
 *   value: number}} CombinationExpression
 * @typedef {{op: "call", function: string, argument: Expression, value: number}} CallExpression
 * @typedef {{op: "dot", left: Vector, right: Vector, rest: number, value: number}} DotExpression
 * @typedef {{op: "reduction", name: string, vector: Vector, epsilon: number, value: number}} ReductionExpression
 * @typedef {{op: "softmax", number: Expression, vector: Vector, value: number}} SoftmaxExpression
 * @typedef {NumberExpression|CombinationExpression|CallExpression|DotExpression|ReductionExpression
 *   |SoftmaxExpression} Expression how a number follows from others
 * @typedef {{place: Place, value: number|null, text: string, expression: Expression|null}} Explanation
 * @typedef {{node: HTMLElement, key: (event: KeyboardEvent) => boolean, leave: () => void, redraw: () => void,
 *   follow?: (query: URLSearchParams) => Promise<void>, title: string, header?: Header, model?: string}} Screen
 * @typedef {{trace: import("../trace/trace.js").Trace, selection: import("./selection.js").Selection,
 *   drawer: import("../widgets/drawer.js").Drawer, onleave: (cleanup: () => void) => void,
 *   layer?: (by: number) => void, head?: (by: number) => void, step?: (by: number) => void, play?: () => void,
 *   up?: () => boolean}} Context
 * What a tab receives; the optional functions are its key bindings while it is open.
 */
export {};
