"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const left = 46, right = 410, width = 420;

  const written = (value, unit) => {
    if (value === null) return "?";
    const digits = unit === "$/h" ? 2 : Number.isInteger(value) ? 0 : 1;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + (unit ? " " + unit : "");
  };

  const entry = (name, value) => {
    const row = document.createElement("div");
    for (const text of [name, value]) row.appendChild(document.createElement("span")).textContent = text;
    return row;
  };

  const show = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * width;
    const last = data.times.length - 1;
    const index = Math.max(0, Math.min(last, Math.round((at - left) / (right - left) * last)));
    const x = left + (right - left) * (last ? index / last : 0);
    const hair = svg.querySelector(".hair");
    hair.setAttribute("x1", x);
    hair.setAttribute("x2", x);
    hair.setAttribute("visibility", "visible");
    const key = svg.dataset.measure;
    const title = document.createElement("b");
    title.textContent = data.times[index];
    tip.replaceChildren(title, ...data.policies.map((name, number) => entry(name, written(data.values[key][number][index], data.units[key]))));
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const aside = event.clientX + 16 + size.width > innerWidth ? event.clientX - 16 - size.width : event.clientX + 16;
    tip.style.left = Math.max(4, aside) + "px";
    tip.style.top = Math.max(4, Math.min(innerHeight - size.height - 4, event.clientY - size.height / 2)) + "px";
  };

  const hide = (svg) => {
    svg.querySelector(".hair").setAttribute("visibility", "hidden");
    tip.hidden = true;
  };

  for (const svg of document.querySelectorAll("figure svg")) {
    svg.addEventListener("pointermove", (event) => show(svg, event));
    svg.addEventListener("pointerdown", (event) => show(svg, event));
    svg.addEventListener("pointerleave", () => hide(svg));
    svg.addEventListener("pointercancel", () => hide(svg));
  }
})();
