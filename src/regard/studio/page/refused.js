// @ts-check

/** A request that was refused: a code for us, a message and a way out for the reader. */
export class Refused extends Error {
  /** @param {string} code @param {string} message @param {string} hint */
  constructor(code, message, hint) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}
