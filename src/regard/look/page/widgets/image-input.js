// @ts-check
/** Input of an image: a file that is chosen, or a digit that the server renders. */
import { ApiError } from "../core/api-error.js";
import { h } from "../core/dom.js";
import { showError } from "../core/notice.js";

/** Reference of a rendered digit. */
const DIGIT = /^digits#(train|valid|test)\/\d+$/u;
/** Rendered digits to choose from. */
const EXAMPLES = 1000;

export class ImageInput {
  /** @param {number} limit maximum size of a file in bytes */
  constructor(limit) {
    this.limit = limit;
    /** Data URL of the file, or reference of a digit. */
    this.image = "";
    this.name = "";
    this.file = h("input", { type: "file", accept: "image/*", "aria-label": "Image", onchange: () => this.read() });
    this.example = h("button", { type: "button", onclick: () => this.chooseDigit() }, "Example digit");
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

  async read() {
    const file = this.file.files?.[0];
    if (!file) return;
    if (file.size > this.limit) {
      const most = `${(this.limit / 2 ** 20).toFixed(0)} MiB`;
      showError(new ApiError("too-large", `The image has more than ${most}.`, "Choose a smaller one."));
      return;
    }
    try {
      this.set(await dataUrl(file), file.name);
    } catch {
      showError(new ApiError("no-file", "The file cannot be read.", "Choose another one."));
    }
  }

  chooseDigit() {
    this.file.value = "";
    const reference = `digits#test/${Math.floor(Math.random() * EXAMPLES)}`;
    this.set(reference, reference);
  }

  /** @param {string} image @param {string} name */
  set(image, name) {
    [this.image, this.name] = [image, name];
    this.status.textContent = name;
    this.preview.hidden = !image.startsWith("data:");
    if (!this.preview.hidden) this.preview.src = image;
  }

  /** The name of a trace's image; a digit can be run again, a file has to be chosen again. @param {string} name */
  show(name) {
    if (name === this.name) return;
    this.file.value = "";
    this.set(DIGIT.test(name) ? name : "", name);
  }

  /** What is sent to the server. @returns {{image: string, name: string}} */
  get request() {
    if (!this.image) throw new ApiError("no-image", "No image is chosen.", "Choose a file, or an example digit.");
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
