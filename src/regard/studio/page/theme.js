// @ts-check
/** Light or dark: as the screen is, until the reader says otherwise. */

const KEY = "regard-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

/** @returns {string|null} */
function said() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden
  }
}

export function applyTheme() {
  document.documentElement.dataset.theme = said() ?? (system.matches ? "dark" : "light");
}

/** @param {() => void} changed */
export function watchTheme(changed) {
  system.addEventListener("change", () => {
    applyTheme();
    changed();
  });
}

export function toggleTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // then it holds until the page is closed
  }
  document.documentElement.dataset.theme = next;
}
