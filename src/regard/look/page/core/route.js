// @ts-check
/** Addresses: the URL hash names screen and selection, as in #/t/<trace>?tab=attention&head=2. */

/** @typedef {{parts: string[], query: URLSearchParams}} Route */

/** @param {string} [hash] @returns {Route} */
export function parseRoute(hash = location.hash) {
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

/** The task whose models read time series. */
export const FORECAST = "forecast";
/** The task whose models have word vectors and read no sentences. */
export const VECTORS = "vectors";

/** @typedef {Record<string, string|number|null|undefined>} Query */

/** @param {string} trace @param {Query} [query] */
export function traceAddress(trace, query = {}) {
  return address("t", trace, query);
}

/** Address of the word embeddings of a model. @param {string} model @param {Query} [query] */
export function wordsAddress(model, query = {}) {
  return address("embed", model, query);
}

/** @param {string} screen @param {string} name @param {Query} query */
function address(screen, name, query) {
  const entries = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
  return `#/${screen}/${encodeURIComponent(name)}${text ? `?${text}` : ""}`;
}

/** Changes the address without a history entry or navigation. @param {string} address */
export function replaceAddress(address) {
  changeAddress(address, () => history.replaceState(history.state, "", address));
}

/** Changes the address with a history entry, so that Back returns to the one before. @param {string} address */
export function pushAddress(address) {
  changeAddress(address, () => history.pushState(null, "", address));
}

/** A screen that is still drawn after the user left for another one changes nothing. @param {string} address @param {() => void} change */
function changeAddress(address, change) {
  const [here] = location.hash.split("?");
  if (location.hash === address || (here && here !== address.split("?")[0])) return;
  try {
    change();
  } catch {
    // a page in a notebook's frame has no address of its own
  }
}
