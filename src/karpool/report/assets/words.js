"use strict";
/* Small words: numbers with units, and elements whose text is always text. */

function money(value, unit = " $/h") {
  if (value === null || value === undefined) return "?" + unit;
  const size = Math.abs(value);
  const least = size >= 1000 ? 0 : 2;
  const digits = { minimumFractionDigits: least, maximumFractionDigits: size >= 1 ? least : 4 };
  return value.toLocaleString("en-US", digits) + unit;
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

function percent(ratio) {
  return Number.isFinite(ratio) ? Math.round(ratio * 100) + " %" : "? %";
}

function spaced(camel) {
  return camel.replace(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);
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
