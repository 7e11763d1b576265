// @ts-check
/** Elements from data. Text only ever becomes a text node: no string is read as markup anywhere in the page. */

const SVG = "http://www.w3.org/2000/svg";
const MATH = "http://www.w3.org/1998/Math/MathML";

/** @typedef {Node|string|number|null|undefined|false} Child */

/**
 * @param {Element} element
 * @param {Record<string, any>} props attributes; a function is a listener; true is an empty attribute
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
 * A word of any script: it has its own direction and does not turn its neighbours.
 * @param {string} text
 * @param {string} [kind] class
 */
export function word(text, kind = "word") {
  return h("bdi", { class: kind, dir: "auto" }, text);
}

/**
 * New children for old; what had the focus has it again, if it is still there.
 * @param {Element} parent
 * @param {...Child} children
 */
export function replace(parent, ...children) {
  const active = document.activeElement;
  const focused = active instanceof HTMLElement && active !== parent && parent.contains(active) ? called(active) : null;
  parent.replaceChildren();
  fill(parent, {}, children);
  if (!focused || !active) return;
  const again = [...parent.querySelectorAll(active.tagName)].find(
    (element) => called(/** @type {HTMLElement} */ (element)) === focused,
  );
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/** @param {HTMLElement} element */
function called(element) {
  return element.dataset.focus ?? element.getAttribute("aria-label") ?? element.textContent;
}

/**
 * @param {string} label
 * @param {{value: string, text: string}[]} options
 * @param {string} value
 * @param {(value: string) => void} chosen
 */
export function choice(label, options, value, chosen) {
  const select = h(
    "select",
    {
      onchange: () => chosen(select.value),
      "aria-label": label,
    },
    ...options.map((o) => h("option", { value: o.value, selected: o.value === value }, o.text)),
  );
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/**
 * Buttons of which one is pressed.
 * @param {string} label
 * @param {{value: string, text: string}[]} options
 * @param {string} value
 * @param {(value: string) => void} chosen
 */
export function segments(label, options, value, chosen) {
  return h(
    "div",
    { class: "segments", role: "group", "aria-label": label },
    ...options.map((o) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(o.value === value), onclick: () => chosen(o.value) },
        o.text,
      ),
    ),
  );
}
