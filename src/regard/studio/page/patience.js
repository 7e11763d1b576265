// @ts-check
/** Long work that nobody has to wait for: in parts, and only for what is on the screen. */

/** Let the page answer before the work goes on. */
export function pause() {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Do something once an element can be seen, or nearly. @param {Element} element @param {() => void} act */
export function whenSeen(element, act) {
  const watcher = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      act();
    },
    { rootMargin: "200px" },
  );
  watcher.observe(element);
}
