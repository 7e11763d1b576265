// @ts-check
/** Requests to the studio's own server; the page makes no others. */
import { ApiError } from "./api-error.js";

/** @param {string} path @param {RequestInit} [options] */
export async function request(path, options) {
  let response;
  try {
    response = await fetch(`/api/v1/${path}`, options);
  } catch {
    throw new ApiError("no-server", "The server does not answer.", "Is `regard studio` still running in its terminal?");
  }
  if (response.ok) return response;
  let error;
  try {
    error = (await response.json()).error;
  } catch {
    error = { code: "unreadable", message: `The server answered ${response.status}.`, hint: "Try again." };
  }
  throw new ApiError(error.code, error.message, error.hint);
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  return (await request(path)).json();
}

/** @param {string} path @param {object} table @returns {Promise<any>} */
export async function post(path, table) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(table) };
  return (await request(path, options)).json();
}
