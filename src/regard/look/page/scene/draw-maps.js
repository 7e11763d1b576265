// @ts-check
/** Images, patches and feature maps as tiles. */
import { drawingContext } from "../core/canvas.js";
import { svg } from "../core/dom.js";
import { colorTop, numberImage } from "./draw-strips.js";

/** @typedef {import("../trace/tensor.js").Tensor} Tensor */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */

/** Space between tiles. */
const GAP = 6;

/** Channels of a feature map that vary most, in their order. @param {Tensor} maps @param {number} most @param {number} frame */
export function liveliestChannels(maps, most, frame) {
  const spread = Array.from({ length: maps.size("channel") }, (_, channel) => {
    const plane = maps.plane("row", "column", { channel, ...frameIndex(maps, frame) });
    const mean = plane.reduce((a, b) => a + b, 0) / plane.length;
    return { channel, spread: plane.reduce((sum, value) => sum + (value - mean) ** 2, 0) };
  });
  const chosen = spread.sort((a, b) => b.spread - a.spread || a.channel - b.channel).slice(0, most);
  return chosen.map(({ channel }) => channel).sort((a, b) => a - b);
}

/** The axis before the channels, such as frames of a clip, at a place. @param {Tensor} maps @param {number} at @returns {Record<string, number>} */
function frameIndex(maps, at) {
  const axis = maps.axes.find((name) => !["channel", "row", "column"].includes(name));
  return axis ? { [axis]: at } : {};
}

/** Tiles of a row: channel, place and size. @param {Tensor} maps @param {Box} box */
export function mapTiles(maps, box) {
  const side = box.height;
  const width = Math.min(box.width, (side * maps.size("column")) / maps.size("row"));
  const count = Math.max(1, Math.floor((box.width + GAP) / (width + GAP)));
  return liveliestChannels(maps, count, 0).map((channel, i) => ({
    channel,
    x: box.x + i * (width + GAP),
    y: box.y,
    width,
    height: side,
  }));
}

/** How many maps there are, and which of them fit into a box. @param {Tensor} maps @param {Box} box */
export function describeMaps(maps, box) {
  const [count, drawn] = [maps.size("channel"), mapTiles(maps, box).length];
  const what = `${count} ${count === 1 ? "channel" : "channels"} of ${maps.size("row")} × ${maps.size("column")}`;
  const frame = maps.axes.includes("frame") ? ", after the first frame" : "";
  return `${what}${drawn < count ? `, the ${drawn} that vary most` : ""}${frame}`;
}

/** @param {Tensor} maps @param {Box} box */
export function featureMaps(maps, box) {
  const top = colorTop(maps.data);
  const group = svg("g", {});
  for (const { channel, ...place } of mapTiles(maps, box)) {
    const plane = maps.plane("row", "column", { channel, ...frameIndex(maps, 0) });
    group.append(numberImage(plane, maps.size("row"), maps.size("column"), top, "signed", place));
    group.append(svg("rect", { ...place, class: "scene-frame" }));
  }
  return group;
}

/** Rows and columns of the patches of an image. @param {import("../trace/trace.js").Trace} trace @param {string} name @returns {{rows: number, columns: number}} */
export function patchGrid(trace, name) {
  const { axes, shape } = trace.describe(name);
  const size = (/** @type {string} */ axis) => shape[axes.indexOf(axis)] ?? 1;
  if (axes.includes("patch_row")) return { rows: size("patch_row"), columns: size("patch_column") };
  const count = Math.round(Math.sqrt(shape[0] ?? 1));
  return { rows: count, columns: count };
}

/** The image as it was read. @param {Tensor} pixels (row, column, color) @param {Box} box @param {{rows: number, columns: number}|null} grid of patches, drawn apart */
export function imageTiles(pixels, box, grid) {
  const [rows, columns] = [pixels.size("row"), pixels.size("column")];
  const width = Math.min(box.width, (box.height * columns) / rows);
  const place = { x: box.x, y: box.y, width, height: box.height };
  const group = svg(
    "g",
    {},
    svg("image", { ...place, href: pixelUrl(pixels), preserveAspectRatio: "none", "image-rendering": "pixelated" }),
    svg("rect", { ...place, class: "scene-frame" }),
  );
  if (!grid) return group;
  const lines = [];
  for (let i = 1; i < grid.columns; i++) lines.push(`M${box.x + (i * width) / grid.columns} ${box.y}v${box.height}`);
  for (let i = 1; i < grid.rows; i++) lines.push(`M${box.x} ${box.y + (i * box.height) / grid.rows}h${width}`);
  group.append(svg("path", { d: lines.join(""), class: "scene-grid" }));
  return group;
}

/** @param {Tensor} pixels */
function pixelUrl(pixels) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [pixels.size("column"), pixels.size("row")];
  const context = drawingContext(canvas);
  const image = context.createImageData(canvas.width, canvas.height);
  const colors = pixels.size("color");
  for (let i = 0; i < canvas.width * canvas.height; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = pixels.data[i * colors + Math.min(c, colors - 1)];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
