// @ts-check
/** DOM construction. Text only becomes text nodes: no string is parsed as markup anywhere in the page. */

const SVG = "http://www.w3.org/2000/svg";
const MATH = "http://www.w3.org/1998/Math/MathML";

/** @typedef {Node|string|number|null|undefined|false} Child */

/**
 * @param {Element} element
 * @param {Record<string, any>} props attributes; functions become listeners, true an empty attribute
 * @param {Child[]} children
 */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  return /** @type {HTMLElementTagNameMap[K]} */ (fill(document.createElement(tag), props, children));
}

/**
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props = {}, ...children) {
  return /** @type {SVGElement} */ (fill(document.createElementNS(SVG, tag), props, children));
}

/**
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {Element}
 */
export function math(tag, props = {}, ...children) {
  return fill(document.createElementNS(MATH, tag), props, children);
}

/**
 * A word in any script, isolated from the text direction around it.
 * @param {string} text
 * @param {string} [kind] class
 */
export function word(text, kind = "word") {
  return h("bdi", { class: kind, dir: "auto" }, text);
}

/**
 * Replaces the children of an element and restores the focus if the focused control is still there.
 * @param {Element} parent
 * @param {...Child} children
 */
export function replace(parent, ...children) {
  const active = document.activeElement;
  const focused =
    active instanceof HTMLElement && active !== parent && parent.contains(active) ? focusKey(active) : null;
  parent.replaceChildren();
  fill(parent, {}, children);
  if (!focused || !active) return;
  const refocused = [...parent.querySelectorAll(active.tagName)].find(
    (element) => focusKey(/** @type {HTMLElement} */ (element)) === focused,
  );
  if (refocused instanceof HTMLElement) refocused.focus({ preventScroll: true });
}

/** @param {HTMLElement} element */
function focusKey(element) {
  return element.dataset.focus ?? element.getAttribute("aria-label") ?? element.textContent;
}

/**
 * @param {string} label
 * @param {{value: string, text: string}[]} options
 * @param {string} value
 * @param {(value: string) => void} onchange
 */
export function selectField(label, options, value, onchange) {
  const select = h(
    "select",
    { onchange: () => onchange(select.value), "aria-label": label },
    ...options.map((o) => h("option", { value: o.value, selected: o.value === value }, o.text)),
  );
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/**
 * A group of buttons, one of them pressed.
 * @param {string} label
 * @param {{value: string, text: string}[]} options
 * @param {string} value
 * @param {(value: string) => void} onchange
 */
export function buttonGroup(label, options, value, onchange) {
  return h(
    "div",
    { class: "segments", role: "group", "aria-label": label },
    ...options.map((o) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(o.value === value), onclick: () => onchange(o.value) },
        o.text,
      ),
    ),
  );
}

/** A button with a symbol and a spoken label. @param {string} text @param {string} label @param {() => void} onclick @param {boolean} [disabled] */
export function symbolButton(text, label, onclick, disabled = false) {
  return h("button", { type: "button", "aria-label": label, title: label, disabled, onclick }, text);
}

/** Opens a modal dialog. @param {string} title @param {...Child} children */
export function openDialog(title, ...children) {
  const close = h("form", { method: "dialog" }, h("button", {}, "Close"));
  const props = { "aria-label": title, onclose: () => dialog.remove() };
  const dialog = h("dialog", props, h("h2", {}, title), ...children, close);
  document.body.append(dialog);
  dialog.showModal();
}
