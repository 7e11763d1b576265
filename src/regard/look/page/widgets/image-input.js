// @ts-check
/** Input of an image or a clip: a file, the files of frames, or an example that the server renders. */
import { ApiError } from "../core/api-error.js";
import { h } from "../core/dom.js";
import { showError } from "../core/notice.js";

/** Reference of a rendered image. */
const RENDERED = /^(digits|shapes|clips)#(train|valid|test)\/\d+$/u;
/** Rendered images to choose from. */
const EXAMPLES = 1000;

export class ImageInput {
  /** @param {number} limit maximum size of a file, or of all frames, in bytes */
  constructor(limit) {
    this.limit = limit;
    /** @type {string|string[]} data URL of the file, reference of a rendered image, or data URLs of frames */
    this.image = "";
    this.name = "";
    /** Whether the model reads clips, and what is rendered as an example. */
    this.isClip = false;
    this.kind = "digits";
    this.file = h("input", { type: "file", accept: "image/*", "aria-label": "Image", onchange: () => this.read() });
    this.example = h("button", { type: "button", onclick: () => this.chooseExample() }, "Example digit");
    this.preview = h("img", { class: "preview", alt: "", hidden: true });
    this.status = h("span", { class: "muted image-name" });
    this.node = h(
      "span",
      { class: "series image-input", hidden: true },
      this.file,
      this.preview,
      this.status,
      this.example,
    );
  }

  /** Fits the input to a model: frames for a clip, and an example of its kind. @param {string} task @param {boolean} isClip */
  adapt(task, isClip) {
    const kind = isClip ? "clips" : task === "caption" ? "shapes" : "digits";
    if (isClip !== this.isClip) {
      this.file.value = "";
      this.set("", "");
    }
    [this.isClip, this.kind] = [isClip, kind];
    this.file.multiple = isClip;
    this.file.title = isClip ? "An animated GIF, WebP or PNG file, or an image file per frame" : "An image file";
    this.file.setAttribute("aria-label", isClip ? "Clip" : "Image");
    this.example.textContent =
      { clips: "Example clip", shapes: "Example scene", digits: "Example digit" }[kind] ?? kind;
  }

  async read() {
    const files = [...(this.file.files ?? [])].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    if (!files.length) return;
    if (files.reduce((sum, file) => sum + file.size, 0) > this.limit) {
      const most = `${(this.limit / 2 ** 20).toFixed(0)} MiB`;
      const what = this.isClip ? "The clip" : "The image";
      showError(new ApiError("too-large", `${what} has more than ${most}.`, "Choose a smaller one."));
      return;
    }
    try {
      const urls = await Promise.all(files.map(dataUrl));
      const name = files.length > 1 ? `${files[0].name} and ${files.length - 1} more` : files[0].name;
      this.set(urls.length > 1 ? urls : urls[0], name);
    } catch {
      showError(new ApiError("no-file", "The file cannot be read.", "Choose another one."));
    }
  }

  chooseExample() {
    this.file.value = "";
    const reference = `${this.kind}#test/${Math.floor(Math.random() * EXAMPLES)}`;
    this.set(reference, reference);
  }

  /** @param {string|string[]} image @param {string} name */
  set(image, name) {
    [this.image, this.name] = [image, name];
    this.status.textContent = name;
    const first = Array.isArray(image) ? image[0] : image;
    this.preview.hidden = !first.startsWith("data:");
    if (!this.preview.hidden) this.preview.src = first;
  }

  /** The name of a trace's image; a rendered one can be run again, a file has to be chosen again. @param {string} name */
  show(name) {
    if (name === this.name) return;
    this.file.value = "";
    this.set(RENDERED.test(name) ? name : "", name);
  }

  /** What is sent to the server. @returns {{image: string|string[], name: string}} */
  get request() {
    if (!this.image.length) {
      const what = this.isClip ? "clip" : "image";
      throw new ApiError("no-image", `No ${what} is chosen.`, "Choose a file, or the example.");
    }
    return { image: this.image, name: this.name };
  }
}

/** @param {File} file @returns {Promise<string>} */
function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}
