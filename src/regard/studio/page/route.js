// @ts-check
/** Where the reader is, in the address: #/t/<trace>?tab=attention&head=2. Everything can be linked. */

/** @typedef {{parts: string[], query: URLSearchParams}} Route */

/** @param {string} [hash] @returns {Route} */
export function route(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { parts, query: new URLSearchParams(query) };
}

/** The job that reads no sentence: its models have a vector for each word. */
export const WORDY = "vectors";

/** @typedef {Record<string, string|number|null|undefined>} Query */

/** @param {string} trace @param {Query} [query] */
export function traceAddress(trace, query = {}) {
  return address("t", trace, query);
}

/** The words of a model. @param {string} model @param {Query} [query] */
export function wordsAddress(model, query = {}) {
  return address("embed", model, query);
}

/** @param {string} screen @param {string} name @param {Query} query */
function address(screen, name, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${screen}/${encodeURIComponent(name)}${text ? `?${text}` : ""}`;
}

/** Change the address without going anywhere. @param {string} address */
export function note(address) {
  if (location.hash === address) return;
  try {
    history.replaceState(null, "", address);
  } catch {
    // a page in a frame of a notebook has no address of its own
  }
}
