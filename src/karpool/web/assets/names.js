/* Names that fit, and that no two nodes share: what all have in common is left out, and the middle of what is too long. */

const LONGEST = 34;
const ELLIPSIS = "…";

/* A map of names to what is shown of them. */
export function shortNames(names) {
  const all = [...new Set(names)];
  const ending = commonEnding(all);
  const shown = new Map(all.map((name) => [name, cut(ending ? name.slice(0, -ending.length) : name)]));
  const seen = new Map();
  for (const [name, text] of shown) seen.set(text, (seen.get(text) || []).concat(name));
  for (const same of seen.values()) if (same.length > 1) for (const name of same) shown.set(name, name);
  return shown;
}

/* What all names end with, from a dot on: `.eu-west-1.compute.internal`. */
function commonEnding(names) {
  if (names.length < 2) return "";
  const dot = names[0].indexOf(".");
  if (dot <= 0) return "";
  const ending = names[0].slice(dot);
  return names.every((name) => name.endsWith(ending) && name.indexOf(".") === name.length - ending.length) ? ending : "";
}

function cut(name) {
  if (name.length <= LONGEST) return name;
  const tail = Math.ceil(LONGEST * 0.6);
  return name.slice(0, LONGEST - tail - 1) + ELLIPSIS + name.slice(-tail);
}
