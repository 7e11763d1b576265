// @ts-check

/** An error of the API: code, message, and a hint on what to do. */
export class ApiError extends Error {
  /** @param {string} code @param {string} message @param {string} hint */
  constructor(code, message, hint) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}
