// @ts-check
/** Layout of the picture: stacks side by side or, on a narrow page, one above the other; rows from the bottom up. */

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./model-graph.js").Stack} Stack */
/**
 * @typedef {{row: Row, stack: PlacedStack, x: number, y: number, width: number, height: number}} PlacedRow
 * @typedef {{name: string, title: string, side: "source"|"target", tokens: import("../core/types.js").Token[],
 *   x: number, y: number, width: number, height: number, left: number, cell: number, rows: PlacedRow[]}} PlacedStack
 * @typedef {{width: number, height: number, narrow: boolean, stacks: PlacedStack[]}} Layout
 */

/** Least and largest width of a token's column. */
const [MIN_CELL, MAX_CELL, MAX_SINGLE] = [9, 92, 148];
/** Width of the titles beside the rows, space between stacks, room for the residual line, padding of a stack. */
const [GUTTER, GAP, RESIDUAL, PADDING] = [126, 56, 26, 12];
/** Room at the right of the strips for lines that go past rows. */
const PAST = 8;
/** Width below which titles stand above their rows, and width that two stacks need side by side. */
const [NARROW, NARROW_PAIR] = [720, 840];
const TITLE = 30;
/** Room above the rows of a layer for its title. */
export const LAYER_TITLE = 18;
/** Rows of maps and of the output need this width. */
const [MIN_INNER, USUAL_INNER, MAX_MAPS] = [180, 300, 620];

/**
 * @param {{stack: Stack, rows: Row[]}[]} stacks @param {number} available width
 * @returns {Layout}
 */
export function placeStacks(stacks, available) {
  const narrow = available < (stacks.length > 1 ? NARROW_PAIR : NARROW);
  const side = narrow ? 1 : stacks.length;
  const gutter = narrow ? 0 : GUTTER;
  const room = (available - GAP * (side - 1)) / side - gutter - RESIDUAL - 2 * PADDING - PAST - (narrow ? 20 : 0);
  const least = narrow ? room : Math.max(MIN_INNER, Math.min(room, USUAL_INNER));
  const largest = stacks.length > 1 ? MAX_CELL : MAX_SINGLE;
  const placed = stacks.map(({ stack, rows }) => {
    const count = stack.tokens.length;
    const tiles = rows.some(({ form }) => form === "maps") ? Math.min(room, MAX_MAPS) : 0;
    const inner = Math.max(tiles, least, Math.min(room, largest * count), MIN_CELL * count);
    return place(stack, rows, gutter, inner, Math.min(largest, inner / Math.max(1, count)), narrow);
  });
  const height = narrow
    ? placed.reduce((sum, { height }) => sum + height + 24, -24)
    : Math.max(...placed.map(({ height }) => height));
  const left = narrow ? 20 : 0;
  let [x, y] = [left, height];
  for (const stack of placed) {
    move(stack, x, (narrow ? y : height) - stack.height);
    if (narrow) y -= stack.height + 24;
    else x += stack.width + GAP;
  }
  const width = narrow ? left + Math.max(...placed.map((stack) => stack.width)) : x - GAP;
  return { width: Math.ceil(width), height: Math.ceil(height), narrow, stacks: placed };
}

/**
 * @param {Stack} stack @param {Row[]} rows @param {number} gutter @param {number} inner @param {number} cell
 * @param {boolean} narrow @returns {PlacedStack}
 */
function place(stack, rows, gutter, inner, cell, narrow) {
  const width = gutter + RESIDUAL + inner + 2 * PADDING + PAST;
  /** @type {PlacedStack} */
  const placed = { ...stack, x: 0, y: 0, width, height: 0, left: PADDING + gutter + RESIDUAL, cell, rows: [] };
  let up = PADDING;
  let layer = rows[0]?.layer ?? null;
  let thin = false;
  for (const row of rows) {
    const height =
      row.form === "output" ? outputHeight(narrow) : row.height + (row.form === "band" && isCross(row) ? 16 : 0);
    if (row.layer !== layer) up += (thin && row.thin ? 4 : 14) + (layer === null || thin ? 0 : LAYER_TITLE);
    [layer, thin] = [row.layer, !!row.thin];
    const caption = narrow && row.form !== "tokens" ? 15 : 0;
    placed.rows.push({ row, stack: placed, x: placed.left, y: -(up + height), width: inner, height });
    up += height + caption + (row.form === "band" || row.form === "cells" ? 12 : 9);
  }
  if (layer !== null && !thin) up += LAYER_TITLE;
  placed.height = up + PADDING + (stack.title ? TITLE : 8);
  return placed;
}

/** Height of the output row. @param {boolean} narrow */
function outputHeight(narrow) {
  return narrow ? 150 : 148;
}

/** Whether a row is attention to another sequence, whose tokens are written below it. @param {Row} row */
export function isCross(row) {
  return row.node.kind === "cross-attention";
}

/** Puts a stack at its place. @param {PlacedStack} stack @param {number} x @param {number} y */
function move(stack, x, y) {
  stack.x = x;
  stack.y = y;
  stack.left += x;
  for (const row of stack.rows) {
    row.x += x;
    row.y += y + stack.height;
  }
}

/** Middle of a column. @param {PlacedStack} stack @param {number} column */
export function middle(stack, column) {
  return stack.left + (column + 0.5) * stack.cell;
}
