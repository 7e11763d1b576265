// @ts-check
/** Light or dark theme: that of the system until the user chooses one. */

const KEY = "regard-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

/** @returns {string|null} */
function storedTheme() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden
  }
}

export function applyTheme() {
  document.documentElement.dataset.theme = storedTheme() ?? (system.matches ? "dark" : "light");
}

/** @param {() => void} onchange */
export function watchTheme(onchange) {
  system.addEventListener("change", () => {
    applyTheme();
    onchange();
  });
}

export function toggleTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // the theme then lasts until the page is closed
  }
  document.documentElement.dataset.theme = next;
}
