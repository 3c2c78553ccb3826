"use strict";
/* Small words: numbers with units, and elements whose text is always text. */

function money(value, unit = " $/h") {
  if (value === null || value === undefined) return "?" + unit;
  const size = Math.abs(value);
  const least = size >= 1000 ? 0 : 2;
  const digits = { minimumFractionDigits: least, maximumFractionDigits: size >= 1 ? least : 4 };
  return value.toLocaleString("en-US", digits) + unit;
}

/* Prices that stand under or beside each other: all have the decimals that the largest of them has. */
function alike(values) {
  const sizes = values.filter((value) => value !== null && value !== undefined).map(Math.abs).filter((size) => size >= 5e-5);
  const [least, most] = [Math.min(Infinity, ...sizes), Math.max(0, ...sizes)];
  const fine = sizes.some((size) => Math.abs(size * 100 - Math.round(size * 100)) > 0.01);
  const digits = most >= 1000 && least >= 10 ? 0 : most >= 1 || !fine ? 2 : 4;
  return (value, unit = " $/h") => {
    if (value === null || value === undefined) return "?" + unit;
    const tiny = value && Math.abs(value) < 0.5 / 10 ** digits;
    if (tiny && Math.abs(value) >= 5e-5) return (value < 0 ? "> −" : "< ") + (1 / 10 ** digits).toFixed(digits) + unit;
    return (tiny ? 0 : value).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + unit;
  };
}

function number(value) {
  return value.toLocaleString("en-US");
}

function plural(count, noun) {
  return number(count) + " " + noun + (count === 1 ? "" : "s");
}

function cores(value) {
  if (value === null || value === undefined) return "? cores";
  return +value.toPrecision(4) + (value === 1 ? " core" : " cores");
}

function memory(mebibytes) {
  if (mebibytes === null || mebibytes === undefined) return "? GiB";
  return mebibytes >= 1024 ? +(mebibytes / 1024).toPrecision(4) + " GiB" : +mebibytes.toPrecision(4) + " MiB";
}

/* What a plan saves, in words. What is known of it is told even if the rest is not, which `rest` says. */
function savedWords({ before, after, savings }) {
  const known = savings.pricePerHour === null ? savings.knownPerHour || null : savings.pricePerHour;
  const rest = known !== null && savings.pricePerHour === null ? " + ?" : "";
  // Of a whole that is more than what is known, it is less.
  const atMost = savings.percent && before.unpricedNodes ? "at most " : "";
  const unpriced = Math.max(before.unpricedNodes, after.unpricedNodes);
  return {
    known,
    rest,
    share: savings.percent === null ? "? %" : `${atMost}${savings.percent.toFixed(1)} %`,
    month: `${known === null ? "?" : number(Math.round(known * 730))} $ a month${rest}`,
    uncounted: unpriced ? `; ${plural(unpriced, "node")} of unknown price not counted` : "",
  };
}

function percent(ratio) {
  return Number.isFinite(ratio) ? Math.round(ratio * 100) + " %" : "? %";
}

function spaced(camel) {
  return camel.replace(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);
}

/* A reason's message, led by the object that it is about unless that is the node or named already. */
function sentence(reason, node) {
  const name = reason.object.slice(reason.object.lastIndexOf(" ") + 1);
  const named = name === reason.object || reason.message.includes(name) || (node && reason.object === "Node " + node.name);
  return named ? reason.message : `${reason.object}: ${reason.message}`;
}

/* element("li.done", {title: "x"}, "text", child): the only way this page makes elements. */
function element(kind, properties, ...children) {
  const [tag, ...classes] = kind.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function byId(id) {
  return document.getElementById(id);
}
