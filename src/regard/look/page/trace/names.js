// @ts-check
/** Names of tensors, such as decoder.layers.1.cross.weights. */

/** Module and last part of a name. @param {string} name @returns {[string, string]} */
export function splitName(name) {
  const at = name.lastIndexOf(".");
  return at < 0 ? ["", name] : [name.slice(0, at), name.slice(at + 1)];
}

/** "decoder.layers.0.cross" as "decoder · layer 0 · cross". @param {string} base */
export function moduleTitle(base) {
  return (
    base
      .replace(/(?:^|\.)(?:layers|stack\.layers)\.(\d+)/g, " · layer $1")
      .replace(/\./g, " · ")
      .replace(/^ · /, "") || "model"
  );
}

/** "decoder.layers.1.cross.weights" as "d1 cross". @param {string} name */
export function shortName(name) {
  const parts = name.split(".").slice(0, -1);
  const number = parts.find((part) => /^\d+$/.test(part));
  const kind = parts.filter((part) => !/^\d+$/.test(part) && part !== "layers" && part !== "stack");
  const side = kind.length > 1 ? kind[0][0] : "";
  const own = kind[kind.length - 1] ?? name;
  return `${side}${number ?? ""} ${own === "attention" ? "self" : own}`.trim();
}
