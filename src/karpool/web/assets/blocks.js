/* Pools as blocks: totals in the head, and their nodes as cells or as bars. */

import { Bars } from "./bars.js";
import { Cells } from "./cells.js";
import { counts, totals } from "./fleet.js";

export const SIZES = [6, 10, 16, 26, null]; /* the last is bars */
const TYPES_SHOWN = 4;

export function firstZoom(count) {
  return count <= 60 ? 4 : count <= 600 ? 3 : count <= 4000 ? 2 : 1;
}

export class Blocks {
  constructor(root, look, { open, openPool, tooltip }) {
    Object.assign(this, { root, look, open, openPool, tooltip });
    this.blocks = new Map();
    this.resized = new ResizeObserver(() => this.relayout());
    this.resized.observe(root);
  }

  close() {
    this.resized.disconnect();
    for (const block of this.blocks.values()) block.drawing.close();
  }

  relayout() {
    if (this.root.clientWidth === this.width) return;
    this.width = this.root.clientWidth;
    for (const block of this.blocks.values()) block.drawing.layout();
  }

  /* `groups`: [{key, title, nodes}], in the order in which they stand. */
  show(groups, zoom) {
    this.width = this.root.clientWidth;
    const wanted = new Set(groups.map((group) => group.key));
    for (const [key, block] of this.blocks) {
      if (wanted.has(key)) continue;
      block.drawing.close();
      block.section.remove();
      this.blocks.delete(key);
    }
    let last = null;
    for (const group of groups) {
      const block = this.blocks.get(group.key) || this.make(group);
      if (last ? last.nextSibling !== block.section : this.root.firstChild !== block.section) {
        this.root.insertBefore(block.section, last ? last.nextSibling : this.root.firstChild);
      }
      last = block.section;
      this.fill(block, group, zoom);
    }
  }

  make(group) {
    const head = element("div.pool-head");
    const body = element("div.cells", { tabindex: "0", role: "listbox", "aria-label": `Nodes: ${group.title}` });
    const section = element("section.card.pool", { "aria-label": group.title }, head, body);
    const block = { section, head, body, drawing: null, bars: null };
    this.blocks.set(group.key, block);
    return block;
  }

  fill(block, group, zoom) {
    const size = SIZES[zoom];
    const bars = size === null;
    if (block.bars !== bars) {
      if (block.drawing) block.drawing.close();
      const Kind = bars ? Bars : Cells;
      block.drawing = new Kind(block.body, this.look, this.open, this.tooltip);
      block.bars = bars;
    }
    this.head(block, group);
    if (!block.section.isConnected) return;
    block.drawing.show(group.nodes, size);
  }

  head(block, group) {
    const sum = totals(group.nodes);
    const title = group.pool
      ? element("button.link.pool-name", { type: "button", onclick: () => this.openPool(group) }, element("bdi", null, group.title))
      : element("span.pool-name", null, element("bdi", null, group.title));
    const known = this.look.complete();
    const key = [group.title, group.pool, known, sum.nodes, sum.pods, sum.price, sum.askedCpu, sum.askedMemory, sum.cpu].join("|");
    if (block.written === key) return;
    block.written = key;
    block.head.replaceChildren(
      element("h2", null, title),
      element(
        "p.pool-facts",
        null,
        element("b", null, plural(sum.nodes, "node")),
        ` · ${price(sum)} · ${known ? plural(sum.pods, "pod") : "pods are being read …"}`
      ),
      known ? element("div.meters", null, meter("CPU", sum.askedCpu, sum.cpu), meter("Memory", sum.askedMemory, sum.memory)) : "",
      element("p.chips", null, ...chips(group.nodes, "type"), ...chips(group.nodes, "zone"))
    );
  }

  flash(nodes) {
    for (const block of this.blocks.values()) {
      const own = nodes.filter((node) => block.drawing.nodes.includes(node));
      if (own.length) block.drawing.flash(own);
    }
  }

  /* Where a node is on the screen; null if it is not drawn. */
  place(name) {
    for (const { bars, drawing } of this.blocks.values()) {
      const index = drawing.nodes.findIndex((node) => node.name === name);
      if (index < 0) continue;
      const bar = bars ? drawing.live.get(index) : null;
      return bars ? (bar ? bar.getBoundingClientRect() : null) : drawing.box(index);
    }
    return null;
  }

  repaint() {
    for (const block of this.blocks.values()) {
      if (block.bars) block.drawing.layout();
      else block.drawing.paint();
    }
  }
}

/* "12.30 $/h", and how many nodes are not counted in it. */
export function price(sum) {
  const unknown = sum.unpriced ? ` and ${plural(sum.unpriced, "node")} of unknown price` : "";
  return money(sum.known ? sum.price : null) + (sum.known ? unknown : "");
}

export function meter(label, asked, whole) {
  const share = whole ? asked / whole : NaN;
  const bar = element("span.meter", { "aria-hidden": "true" }, element("i"));
  bar.firstChild.style.width = Math.min(100, 100 * (share || 0)) + "%";
  if (!label) return bar;
  return element("span.metered", null, element("span.quiet", null, label), bar, element("span.number-cell", null, percent(share)));
}

function chips(nodes, key) {
  const found = counts(nodes, key);
  const shown = found.slice(0, TYPES_SHOWN).map(([name, count]) => element("span.chip", null, `${name} × ${number(count)}`));
  const rest = found.length - TYPES_SHOWN;
  if (rest > 0) shown.push(element("span.chip.quiet", null, plural(rest, "more " + key)));
  return shown;
}
