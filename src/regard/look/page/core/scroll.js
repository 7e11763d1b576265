// @ts-check
/** Scroll positions of the browser's history: a new address starts at its top, Back and Forward lead to where one was. */

/** Milliseconds from scrolling until the position is saved, and until a screen is expected to be drawn. */
const [SAVE, SETTLE] = [100, 1500];

let timer = 0;

/** Saves the position in each history entry, in place of the browser, which does not wait until a screen is drawn. */
export function trackScroll() {
  history.scrollRestoration = "manual";
  window.addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = window.setTimeout(saveScroll, SAVE);
  });
  window.addEventListener("click", saveScroll, true); // before a link leads away
}

function saveScroll() {
  clearTimeout(timer);
  const { scroll } = history.state ?? {};
  if (scroll !== window.scrollY) history.replaceState({ ...history.state, scroll: window.scrollY }, "");
}

/** Position saved for the current entry; null: it is new. Read it before another screen is drawn. @returns {number|null} */
export function savedScroll() {
  clearTimeout(timer); // of the entry that was left
  return history.state?.scroll ?? null;
}

/** Scrolls to a position, and again while a screen is being drawn, unless the user scrolls meanwhile. @param {number} top */
export function restoreScroll(top) {
  const reach = () => window.scrollTo(0, top);
  reach();
  if (!top) return;
  const stop = new AbortController();
  const root = document.documentElement;
  root.style.overflowAnchor = "none"; // the browser would follow what moves above
  const observer = new ResizeObserver(reach);
  stop.signal.addEventListener("abort", () => {
    observer.disconnect();
    root.style.overflowAnchor = "";
  });
  for (const event of ["wheel", "touchmove", "keydown", "pointerdown", "hashchange"])
    window.addEventListener(event, () => stop.abort(), { signal: stop.signal, passive: true });
  window.setTimeout(() => stop.abort(), SETTLE);
  observer.observe(document.body);
}
