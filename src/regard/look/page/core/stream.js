// @ts-check
/** Results that take a while: the server sends lines of JSON with its progress, then the result or an error. */
import { ApiError } from "./api-error.js";
import { request } from "./api.js";

/**
 * @param {string} path @param {(done: number, total: number) => void} onprogress @param {AbortSignal} [signal]
 * @returns {Promise<any>} the result
 */
export async function streamResult(path, onprogress, signal) {
  const response = await request(path, { signal });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    text += done ? decoder.decode() : decoder.decode(value, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      const table = JSON.parse(line);
      if (table.error) throw new ApiError(table.error.code, table.error.message, table.error.hint);
      if (table.result) return table.result;
      onprogress(table.done, table.total);
    }
    if (done) throw new ApiError("cut-off", "The server ended without a result.", "Try again.");
  }
}
