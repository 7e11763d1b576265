// @ts-check
/** The picture as a file for a slide: SVG with its colors written out, or PNG in twice its size. */
import { ApiError } from "../core/api-error.js";
import { drawingContext, hasCanvas } from "../core/canvas.js";
import { roleColor } from "../core/color.js";
import { h, svg } from "../core/dom.js";
import { showError } from "../core/notice.js";

/** @typedef {import("../core/types.js").Header} Header */

/** Properties that style sheets give; other programs do not have these sheets. */
const PROPERTIES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "opacity", "font-size", "font-weight",
  "font-family", "text-anchor",
]; // prettier-ignore
const SCALE = 2;
const MARGIN = 16;

/** Buttons for both files. @param {() => SVGElement|undefined} picture @param {Header} header */
export function pictureButtons(picture, header) {
  const save = (/** @type {"svg"|"png"} */ format) => {
    const found = picture();
    if (found) savePicture(found, format, fileName(header)).catch(showError);
  };
  const button = (/** @type {"svg"|"png"} */ format) =>
    h(
      "button",
      { type: "button", onclick: () => save(format), title: `Save the picture as ${format.toUpperCase()}` },
      format.toUpperCase(),
    );
  return h(
    "div",
    { class: "row scene-files", role: "group", "aria-label": "Save the picture" },
    button("svg"),
    button("png"),
  );
}

/** @param {Header} header */
function fileName(header) {
  const words = `${header.model?.name ?? "model"} ${header.text ?? ""}`.toLowerCase();
  return (
    words
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-|-$/g, "")
      .slice(0, 60) || "scene"
  );
}

/** A copy that needs no style sheet, on its own ground. @param {SVGElement} picture */
export function standalonePicture(picture) {
  const copy = /** @type {SVGElement} */ (picture.cloneNode(true));
  const [originals, copies] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const name of PROPERTIES) copies[i].setAttribute(name, style.getPropertyValue(name));
    copies[i].removeAttribute("class");
  });
  copy.querySelectorAll("title").forEach((title) => title.remove());
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
  const [x, y, w, tall] = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN];
  const ground = svg("rect", { x, y, width: w, height: tall, fill: roleColor("page") });
  copy.prepend(ground);
  copy.setAttribute("viewBox", `${x} ${y} ${w} ${tall}`);
  copy.setAttribute("width", String(w));
  copy.setAttribute("height", String(tall));
  copy.setAttribute("font-family", "system-ui, sans-serif");
  for (const name of ["class", "aria-hidden"]) copy.removeAttribute(name);
  return copy;
}

/** @param {SVGElement} picture @param {"svg"|"png"} format @param {string} name */
async function savePicture(picture, format, name) {
  const copy = standalonePicture(picture);
  const text = new XMLSerializer().serializeToString(copy);
  const file = new Blob([text], { type: "image/svg+xml" });
  download(format === "svg" ? file : await toPng(file, copy), `${name}.${format}`);
}

/** @param {Blob} file @param {SVGElement} copy */
async function toPng(file, copy) {
  if (!hasCanvas())
    throw new ApiError("no-canvas", "This browser does not draw on canvases.", "Save the picture as SVG.");
  const address = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    const [width, height] = ["width", "height"].map((name) => Number(copy.getAttribute(name)));
    [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
    const context = drawingContext(canvas);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!(blob instanceof Blob)) throw new Error("The picture is too large for a PNG; save it as SVG.");
    return blob;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** @param {Blob} file @param {string} name */
function download(file, name) {
  const address = URL.createObjectURL(file);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
