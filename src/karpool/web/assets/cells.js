/* Nodes as cells of a heatmap, on a canvas that covers only what is in sight: ten thousand nodes draw as a hundred do. */

import { colour } from "./palette.js";

const MARGIN_PX = 400;
const FLASH_MS = 1400;

export class Cells {
  /* `look` says how a node is painted: `segments(node)` -> [[share, colour name]], `mark(node)`, `label(node)`. */
  constructor(body, look, open, tooltip) {
    this.body = body;
    this.look = look;
    this.open = open;
    this.tooltip = tooltip;
    this.nodes = [];
    this.size = 16;
    this.cursor = -1;
    this.flashes = new Map();
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.option = element("div.unseen", { role: "option", id: "option-" + crypto.randomUUID(), "aria-selected": "false" });
    body.replaceChildren(this.canvas, this.option);
    this.listeners = new AbortController();
    this.listen();
  }

  close() {
    this.listeners.abort();
    this.body.replaceChildren();
    this.body.style.height = "";
    this.body.removeAttribute("aria-activedescendant");
  }

  show(nodes, size) {
    this.nodes = nodes;
    this.size = size;
    if (this.cursor >= nodes.length) this.cursor = nodes.length - 1;
    this.layout();
  }

  layout() {
    this.width = this.body.clientWidth;
    this.columns = Math.max(1, Math.floor(this.width / this.size));
    this.rows = Math.ceil(this.nodes.length / this.columns);
    this.body.style.height = this.rows * this.size + "px";
    this.paint();
  }

  /* Only the part in sight, and some above and below. */
  paint() {
    const box = this.body.getBoundingClientRect();
    const top = Math.max(0, -box.top - MARGIN_PX);
    const bottom = Math.min(box.height, innerHeight - box.top + MARGIN_PX);
    if (bottom <= top || !this.width) {
      this.canvas.hidden = true;
      return;
    }
    const first = Math.floor(top / this.size);
    const last = Math.min(this.rows, Math.ceil(bottom / this.size));
    const ratio = window.devicePixelRatio || 1;
    const canvas = this.canvas;
    canvas.hidden = false;
    canvas.style.top = first * this.size + "px";
    canvas.style.width = this.width + "px";
    canvas.style.height = (last - first) * this.size + "px";
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round((last - first) * this.size * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const now = performance.now();
    for (let index = first * this.columns; index < Math.min(this.nodes.length, last * this.columns); index++) {
      this.paintCell(context, index, first, now);
    }
    this.fade(now);
  }

  paintCell(context, index, first, now) {
    const node = this.nodes[index];
    const gap = this.size > 12 ? 2 : 1;
    const side = this.size - gap;
    const x = (index % this.columns) * this.size;
    const y = (Math.floor(index / this.columns) - first) * this.size;
    const mark = this.look.mark(node);
    context.globalAlpha = mark.dim ? 0.3 : 1;
    context.fillStyle = colour("--track");
    context.fillRect(x, y, side, side);
    let used = 0;
    for (const [part, name] of this.look.segments(node)) {
      const height = Math.min(side - used, side * part);
      if (height <= 0) continue;
      context.fillStyle = colour(name);
      context.fillRect(x, y + side - used - height, side, height);
      used += height;
    }
    context.globalAlpha = 1;
    if (mark.line) outline(context, x, y, side, colour(mark.line), mark.dashed);
    if (mark.cross) cross(context, x, y, side);
    const flash = this.flashes.get(node);
    if (flash !== undefined && now - flash < FLASH_MS) {
      context.globalAlpha = 1 - (now - flash) / FLASH_MS;
      outline(context, x, y, side, colour("--ink"), false, 2);
      context.globalAlpha = 1;
    }
    if (index === this.cursor && document.activeElement === this.body) outline(context, x - 1, y - 1, side + 2, colour("--accent"), false, 3);
  }

  /* What has just changed is outlined for a moment. */
  flash(nodes) {
    const now = performance.now();
    for (const node of nodes) this.flashes.set(node, now);
  }

  fade(now) {
    for (const [node, since] of this.flashes) if (now - since >= FLASH_MS) this.flashes.delete(node);
    if (!this.flashes.size || this.fading) return;
    this.fading = true;
    setTimeout(() => {
      this.fading = false;
      if (!this.listeners.signal.aborted) this.paint();
    }, 120);
  }

  listen() {
    const options = { signal: this.listeners.signal };
    const body = this.body;
    body.addEventListener("pointermove", (event) => this.hover(event), options);
    body.addEventListener("pointerleave", () => this.tooltip.hide(), options);
    body.addEventListener("click", (event) => this.click(event), options);
    body.addEventListener("keydown", (event) => this.key(event), options);
    /* A pointer that presses gives the focus, too: what is under it must stay there. */
    body.addEventListener("focus", () => body.matches(":focus-visible") && this.point(Math.max(0, this.cursor)), options);
    body.addEventListener("blur", () => (this.tooltip.hide(), this.paint()), options);
    window.addEventListener("scroll", () => this.soon(), { ...options, passive: true });
    window.addEventListener("resize", () => this.soon(), options);
  }

  soon() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (!this.listeners.signal.aborted) this.paint();
    });
  }

  at(event) {
    const box = this.body.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.size);
    const row = Math.floor((event.clientY - box.top) / this.size);
    const index = row * this.columns + column;
    return column < 0 || column >= this.columns || index < 0 || index >= this.nodes.length ? -1 : index;
  }

  box(index) {
    const box = this.body.getBoundingClientRect();
    const left = box.left + (index % this.columns) * this.size;
    const top = box.top + Math.floor(index / this.columns) * this.size;
    return { left, top, width: this.size, height: this.size, bottom: top + this.size };
  }

  hover(event) {
    const index = this.at(event);
    if (index < 0) this.tooltip.hide();
    else this.tooltip.show(this.nodes[index], this.box(index));
  }

  click(event) {
    const index = this.at(event);
    if (index < 0) return;
    this.cursor = index;
    this.open(this.nodes[index]);
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    if (event.key in steps) this.point(this.cursor + steps[event.key]);
    else if (event.key === "Home") this.point(0);
    else if (event.key === "End") this.point(this.nodes.length - 1);
    else if ((event.key === "Enter" || event.key === " ") && this.nodes[this.cursor]) this.open(this.nodes[this.cursor]);
    else return;
    event.preventDefault();
  }

  point(index) {
    if (index < 0 || index >= this.nodes.length) return;
    this.cursor = index;
    const node = this.nodes[index];
    this.option.textContent = this.look.label(node);
    this.option.setAttribute("aria-posinset", index + 1);
    this.option.setAttribute("aria-setsize", this.nodes.length);
    this.body.setAttribute("aria-activedescendant", this.option.id);
    const box = this.box(index);
    if (box.top < 0 || box.bottom > innerHeight) window.scrollBy(0, box.top - innerHeight / 2);
    this.paint();
    if (document.activeElement === this.body && this.body.matches(":focus-visible")) this.tooltip.show(node, this.box(index));
  }
}

function outline(context, x, y, side, style, dashed, width = 1.5) {
  context.strokeStyle = style;
  context.lineWidth = width;
  context.setLineDash(dashed ? [3, 2] : []);
  context.strokeRect(x + width / 2, y + width / 2, side - width, side - width);
  context.setLineDash([]);
}

function cross(context, x, y, side) {
  context.strokeStyle = colour("--ink");
  context.lineWidth = 1.2;
  context.beginPath();
  context.moveTo(x + 2, y + 2);
  context.lineTo(x + side - 2, y + side - 2);
  context.stroke();
}
