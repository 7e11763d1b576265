// @ts-check
/** Scheduling of long work: in parts, and only for what is visible. */

/** Lets the browser handle events before the work continues. */
export function pause() {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Calls a function once when an element becomes visible, or nearly so. @param {Element} element @param {() => void} callback */
export function onVisible(element, callback) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      callback();
    },
    { rootMargin: "200px" },
  );
  observer.observe(element);
}
