// @ts-check
/** The error notice on top of the page. */
import { ApiError } from "./api-error.js";
import { h, replace } from "./dom.js";

export const notices = h("div", { class: "notices", role: "alert" });

/** @param {unknown} error */
export function showError(error) {
  const shown =
    error instanceof ApiError
      ? error
      : new ApiError("page", error instanceof Error ? error.message : String(error), "Reload the page.");
  replace(
    notices,
    h(
      "p",
      { class: "notice" },
      h("b", {}, shown.message),
      " ",
      h("span", {}, shown.hint),
      h("button", { type: "button", class: "icon", "aria-label": "Dismiss", onclick: () => replace(notices) }, "✕"),
    ),
  );
}

export function clearNotices() {
  replace(notices);
}
