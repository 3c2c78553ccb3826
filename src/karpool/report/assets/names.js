"use strict";
/* Names that fit, and that no two nodes share: what all have in common is left out, and the middle of what is too long. */

const LONGEST_NAME = 34; /* longer than the names of instances in clouds */
const ELLIPSIS = "…";

/* A map of names to what is shown of them. */
function shortNames(names) {
  const all = [...new Set(names)];
  const ending = commonEnding(all);
  const shown = new Map(all.map((name) => [name, cutName(ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name)]));
  const seen = new Map();
  for (const [name, text] of shown) seen.set(text, (seen.get(text) || []).concat(name));
  for (const same of seen.values()) if (same.length > 1) for (const name of same) shown.set(name, name);
  return shown;
}

/* What all names with a dot end with, from there on: `.eu-west-1.compute.internal`. */
function commonEnding(names) {
  const dotted = names.filter((name) => name.includes("."));
  const dot = dotted.length < 2 ? 0 : dotted[0].indexOf(".");
  if (dot <= 0) return "";
  const ending = dotted[0].slice(dot);
  return dotted.every((name) => name.indexOf(".") === name.length - ending.length && name.endsWith(ending)) ? ending : "";
}

function cutName(name) {
  if (name.length <= LONGEST_NAME) return name;
  const tail = Math.ceil(LONGEST_NAME * 0.6);
  return name.slice(0, LONGEST_NAME - tail - 1) + ELLIPSIS + name.slice(-tail);
}
