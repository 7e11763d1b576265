// @ts-check
/** What went wrong, in words, with the way out. */
import { Refused } from "./refused.js";
import { h, replace } from "./dom.js";

export const notices = h("div", { class: "notices", role: "alert" });

/** @param {unknown} error */
export function tell(error) {
  const refused =
    error instanceof Refused
      ? error
      : new Refused("page", error instanceof Error ? error.message : String(error), "Load the page again.");
  replace(
    notices,
    h(
      "p",
      { class: "notice" },
      h("b", {}, refused.message),
      " ",
      h("span", {}, refused.hint),
      h("button", { type: "button", class: "icon", "aria-label": "Dismiss", onclick: () => replace(notices) }, "✕"),
    ),
  );
}

export function hush() {
  replace(notices);
}
