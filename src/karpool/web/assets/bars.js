/* Nodes as bars that are filled by their pods; only the rows in sight are elements. */

import { OTHERS } from "./palette.js";
import { share } from "./fleet.js";

const WIDTH_PX = 290;
const HEIGHT_PX = 72;
const SPARE_ROWS = 4;

export class Bars {
  constructor(body, look, open, tooltip) {
    this.body = body;
    this.look = look;
    this.open = open;
    this.tooltip = tooltip;
    this.nodes = [];
    this.live = new Map();
    this.cursor = -1;
    this.prefix = "bar-" + crypto.randomUUID();
    this.flashes = new Set();
    body.replaceChildren();
    this.listeners = new AbortController();
    this.listen();
  }

  close() {
    this.listeners.abort();
    this.body.replaceChildren();
    this.body.style.height = "";
    this.body.removeAttribute("aria-activedescendant");
  }

  show(nodes) {
    if (this.names === undefined || nodes.some((node) => !this.names.has(node.name))) this.names = shortNames(nodes.map((node) => node.name));
    this.nodes = nodes;
    this.cost = alike(nodes.map((node) => node.price));
    if (this.cursor >= nodes.length) this.cursor = nodes.length - 1;
    this.layout();
  }

  layout() {
    this.columns = Math.max(1, Math.floor(this.body.clientWidth / WIDTH_PX));
    this.rows = Math.ceil(this.nodes.length / this.columns);
    this.body.style.height = this.rows * HEIGHT_PX + "px";
    for (const bar of this.live.values()) bar.remove();
    this.live.clear();
    this.paint();
  }

  paint() {
    const box = this.body.getBoundingClientRect();
    const first = Math.max(0, Math.floor(-box.top / HEIGHT_PX) - SPARE_ROWS);
    const last = Math.min(this.rows, Math.ceil((innerHeight - box.top) / HEIGHT_PX) + SPARE_ROWS);
    const from = first * this.columns;
    const to = Math.min(this.nodes.length, Math.max(0, last) * this.columns);
    for (const [index, bar] of this.live) {
      if (index < from || index >= to) {
        bar.remove();
        this.live.delete(index);
      }
    }
    for (let index = from; index < to; index++) if (!this.live.has(index)) this.insert(index);
  }

  /* All of them: before the page is printed. */
  paintAll() {
    for (let index = 0; index < this.nodes.length; index++) if (!this.live.has(index)) this.insert(index);
  }

  insert(index) {
    const bar = this.bar(this.nodes[index], index);
    let next = null;
    for (let later = index + 1; later < index + 400 && !next; later++) next = this.live.get(later) || null;
    this.body.insertBefore(bar, next);
    this.live.set(index, bar);
  }

  bar(node, index) {
    const mark = this.look.mark(node);
    const measure = this.look.measure();
    const used = share(node, measure);
    const made = element(
      "div.bar",
      { role: "option", id: `${this.prefix}-${index}`, "aria-label": this.look.label(node), "aria-posinset": index + 1, "aria-setsize": this.nodes.length, "aria-selected": String(index === this.cursor) },
      element("div.bar-top", null, element("bdi.bar-name", { title: node.name }, this.names.get(node.name)), mark.text ? element("span.badge." + mark.kind, null, mark.text) : null),
      this.track(node, measure),
      element("div.bar-facts", null, element("span", null, [this.cost(node.price), node.type].filter(Boolean).join(" · ")), element("span.ratio", null, percent(used)))
    );
    made.style.left = `calc(${(index % this.columns) * (100 / this.columns)}% + 4px)`;
    made.style.width = `calc(${100 / this.columns}% - 8px)`;
    made.style.top = Math.floor(index / this.columns) * HEIGHT_PX + "px";
    made.classList.toggle("dim", Boolean(mark.dim));
    made.classList.toggle("flash", this.flashes.has(node));
    made.classList.toggle("cursor", index === this.cursor && document.activeElement === this.body);
    if (mark.line) made.classList.add("marked-" + mark.kind);
    made.node = node;
    return made;
  }

  track(node, measure) {
    const track = element("div.track");
    const pods = [...node.pods].sort((a, b) => a.daemon - b.daemon || b[measure] - a[measure]);
    const whole = node[measure] || pods.reduce((sum, pod) => sum + pod[measure], 0) || 1;
    for (const pod of pods) {
      const width = (100 * pod[measure]) / whole;
      const slice = element("i.slice.c" + (this.look.rank(pod) ?? OTHERS));
      slice.style.width = width + "%";
      if (pod.daemon) slice.classList.add("daemon");
      if (this.look.moving(pod)) slice.classList.add("moving");
      else if (this.look.faint(pod)) slice.classList.add("off");
      slice.pod = pod;
      track.append(slice);
    }
    return track;
  }

  flash(nodes) {
    for (const node of nodes) this.flashes.add(node);
    setTimeout(() => nodes.forEach((node) => this.flashes.delete(node)), 1400);
  }

  listen() {
    const options = { signal: this.listeners.signal };
    const body = this.body;
    body.addEventListener("pointerover", (event) => this.hover(event), options);
    body.addEventListener("pointerleave", () => this.tooltip.hide(), options);
    body.addEventListener("click", (event) => this.click(event), options);
    body.addEventListener("keydown", (event) => this.key(event), options);
    /* A pointer that presses gives the focus, too: what is under it must stay there. */
    body.addEventListener("focus", () => body.matches(":focus-visible") && this.point(Math.max(0, this.cursor)), options);
    body.addEventListener("blur", () => (this.tooltip.hide(), this.layout()), options);
    window.addEventListener("scroll", () => this.soon(), { ...options, passive: true });
    window.addEventListener("resize", () => this.soon(), options);
    window.addEventListener("beforeprint", () => this.paintAll(), options);
  }

  soon() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (!this.listeners.signal.aborted) this.paint();
    });
  }

  hover(event) {
    const slice = event.target.closest(".slice");
    if (slice) this.tooltip.showPod(slice.closest(".bar").node, slice.pod, slice.getBoundingClientRect());
    else this.tooltip.hide();
  }

  click(event) {
    /* A bar may have been drawn anew between press and release. */
    const target = event.target.closest(".bar") ? event.target : document.elementFromPoint(event.clientX, event.clientY);
    const bar = target && target.closest(".bar");
    if (!bar || !this.body.contains(bar)) return;
    this.cursor = this.nodes.indexOf(bar.node);
    const slice = target.closest(".slice");
    this.open(bar.node, slice && event.altKey ? slice.pod : null);
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
    const before = this.live.get(this.cursor);
    this.cursor = index;
    if (before) before.classList.remove("cursor");
    const top = this.body.getBoundingClientRect().top + Math.floor(index / this.columns) * HEIGHT_PX;
    if (top < 0 || top + HEIGHT_PX > innerHeight) window.scrollBy(0, top - innerHeight / 2);
    this.paint();
    const bar = this.live.get(index);
    if (!bar) return;
    bar.classList.add("cursor");
    this.body.setAttribute("aria-activedescendant", bar.id);
  }
}
