/* All nodes of now, by pool: totals, search, and what happens. */

import { Blocks, firstZoom, meter, price, SIZES } from "./blocks.js";
import { card, choice, clock, perMonth, say, select } from "./controls.js";
import { spark } from "./chart.js";
import { byName, share, totals } from "./fleet.js";
import { drawMoves, Follower } from "./moves.js";
import { capacityColour, heat, HEAT_WORDS, namespaceLegend, OTHERS, outcomeColour, ranked } from "./palette.js";
import { HINT, matcher, NO_POOL, SHORT_HINT } from "./search.js";

const LATELY = 8;
const REDRAW_MS = 250;
const MOVES_DRAWN = 40; /* of one redraw: what hundreds of pods do at once is no longer followed by eye */

export class FleetView {
  constructor(root, page, place) {
    this.root = root;
    this.page = page;
    const one = (key, usual, ...others) => (others.includes(place[key]) ? place[key] : usual);
    const zoom = /^[0-9]$/.test(place.zoom || "") && Number(place.zoom) < SIZES.length ? Number(place.zoom) : null;
    this.chosenZoom = zoom;
    this.state = { query: place.q || "", group: one("group", "pool", "type", "zone"), colour: one("colour", "use", "namespace", "plan", "capacity"), measure: one("measure", "cpu", "memory"), zoom };
    this.lately = [];
    this.prices = [];
    this.pending = new Set();
    this.follower = new Follower();
    this.moves = [];
    this.build();
    this.refresh();
  }

  get fleet() {
    return this.page.live.fleet;
  }

  build() {
    this.totals = element("section.totals.five", { "aria-label": "Totals" });
    this.search = element("input.search", { type: "search", placeholder: window.innerWidth < 640 ? SHORT_HINT : HINT, "aria-label": "Search and filter nodes: " + HINT, spellcheck: "false", autocomplete: "off" });
    this.search.value = this.state.query;
    this.search.addEventListener("input", () => this.searched(this.search.value));
    this.picks = element("div.picks");
    this.pickers = new Map();
    this.zoom = element("input", { type: "range", min: "0", max: String(SIZES.length - 1), step: "1", "aria-label": "Zoom, from small cells to bars" });
    this.zoom.addEventListener("input", () => ((this.state.zoom = this.chosenZoom = Number(this.zoom.value)), this.remember(), this.draw()));
    const colours = [["use", "Use"], ["namespace", "Namespace"], ["plan", "Plan"], ["capacity", "Capacity"]];
    this.colours = choice("Colour by", colours, this.state.colour, (key) => this.set("colour", key));
    this.legend = element("div.legend", { role: "group", "aria-label": "What colours mean" });
    this.showing = element("p.quiet.showing", { role: "status" });
    this.lines = element("ul.lately", { "aria-label": "What has happened since this page was opened" });
    this.latelyCard = element("section.card.lately-card", { "aria-label": "Lately" }, element("h2", null, "Lately"), this.lines);
    this.latelyCard.hidden = true;
    this.blocksRoot = element("div.pools");
    this.root.replaceChildren(
      this.totals,
      element(
        "section.card.finder",
        { "aria-label": "Search and display" },
        element("div.finder-row", null, this.search, this.picks),
        element(
          "div.controls",
          null,
          choice("Group by", [["pool", "Pools"], ["type", "Types"], ["zone", "Zones"]], this.state.group, (key) => this.set("group", key)),
          choice("Measure", [["cpu", "CPU"], ["memory", "Memory"]], this.state.measure, (key) => this.set("measure", key)),
          this.colours,
          element("label.zoom", null, element("span.quiet", null, "Zoom"), this.zoom)
        ),
        this.legend,
        this.showing
      ),
      this.latelyCard,
      this.blocksRoot
    );
    this.blocks = new Blocks(this.blocksRoot, this.look(), {
      open: (node, pod) => this.page.explain(pod ? { pod } : { node }),
      openPool: (group) => this.page.explain({ pool: group.title }),
      tooltip: this.page.tip,
    });
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.typing);
    this.blocks.close();
  }

  look() {
    return {
      measure: () => this.state.measure,
      complete: () => this.page.live.complete,
      segments: (node) => this.segments(node),
      mark: (node) => this.mark(node),
      label: (node) => this.label(node),
      rank: (pod) => this.ranks.get(pod.namespace),
      moving: () => false,
      faint: () => false,
    };
  }

  segments(node) {
    const { colour, measure } = this.state;
    const used = share(node, measure);
    if (colour === "use") return [[used, heat(used)]];
    if (colour === "capacity") return [[used, capacityColour(node)]];
    if (colour === "plan") return [[used, outcomeColour(this.page.planned.outcome(node))]];
    const sums = new Map();
    for (const pod of node.pods) {
      const rank = this.ranks.get(pod.namespace) ?? OTHERS;
      sums.set(rank, (sums.get(rank) || 0) + pod[measure]);
    }
    return [...sums].sort((a, b) => a[0] - b[0]).map(([rank, sum]) => [node[measure] ? sum / node[measure] : 0, "--c" + rank]);
  }

  mark(node) {
    if (node.status === "leaving") return { kind: "went", text: "leaving", line: "--bad", cross: true };
    if (node.status === "starting") return { kind: "new", text: "starting", line: "--new", dashed: true };
    if (node.status === "not ready") return { kind: "went", text: "not ready", line: "--bad" };
    if (node.status === "cordoned") return { kind: "keep", text: "cordoned", line: "--quiet", dashed: true };
    const outcome = this.page.planned.outcome(node);
    if (this.state.colour === "plan" && outcome && outcome !== "keep") return { kind: "went", text: `${outcome} planned`, cross: true };
    return {};
  }

  label(node) {
    const use = `CPU ${percent(share(node, "cpu"))}, memory ${percent(share(node, "memory"))}`;
    return [node.name, money(node.price), node.type, use, plural(node.pods.size, "pod"), this.page.describe(node)].filter(Boolean).join(", ");
  }

  remember() {
    const { query, group, colour, measure } = this.state;
    const other = (value, usual) => (value === usual ? "" : value);
    this.page.remember({ q: query, group: other(group, "pool"), colour: other(colour, "use"), measure: other(measure, "cpu"), zoom: this.chosenZoom });
  }

  set(key, value) {
    this.state[key] = value;
    this.remember();
    if (key === "colour" && value === "plan") this.page.planned.want();
    /* Slices of bars are pods, so use and capacity are seen in cells only. */
    if (key === "colour" && ["use", "capacity"].includes(value) && SIZES[Number(this.zoom.value)] === null) this.state.zoom = this.chosenZoom = SIZES.length - 2;
    this.draw();
  }

  searched(text) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      this.state.query = text;
      this.remember();
      this.draw();
      say(this.showing.textContent);
    }, 120);
  }

  /* Adds a term to what is searched, or takes the one of the same key out. */
  pick(key, value) {
    clearTimeout(this.typing);
    const rest = this.search.value.split(/\s+/).filter((word) => word && !word.startsWith(key + ":"));
    this.search.value = [...rest, ...(value ? [`${key}:${value}`] : [])].join(" ");
    this.state.query = this.search.value;
    this.remember();
    this.draw();
  }

  changed(happened) {
    this.note(happened);
    for (const node of [...happened.nodes, ...happened.came]) this.pending.add(node);
    if (this.moves.length < MOVES_DRAWN) this.moves.push(...this.follower.moves(happened, (name) => this.blocks.place(name), this.totals.children[2].getBoundingClientRect()));
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      const nodes = [...this.pending];
      this.pending.clear();
      if (nodes.length < 200) this.blocks.flash(nodes);
      this.refresh();
      drawMoves(this.moves.map((move) => ({ ...move, rank: this.ranks.get(move.pod.namespace) })), (name) => this.blocks.place(name), MOVES_DRAWN);
      this.moves = [];
    }, REDRAW_MS);
  }

  note(happened) {
    const lines = [
      ...happened.came.map((node) => `${node.name} has come (${node.type || "?"}, ${money(node.price)})`),
      ...happened.gone.map((node) => `${node.name} is gone (${money(node.price)})`),
    ];
    if (happened.moved.length) lines.push(`${plural(happened.moved.length, "pod")} bound, such as ${happened.moved[0].name}`);
    for (const words of lines) this.lately.unshift({ time: clock(this.page.live.time), words });
    this.lately.length = Math.min(this.lately.length, LATELY);
  }

  /* Everything that follows from the fleet. */
  refresh() {
    if (!this.ranks || !this.rankedAt || performance.now() - this.rankedAt > 10000 || !this.page.live.complete) {
      this.ranks = ranked(this.fleet.pods.values(), "namespace");
      this.rankedAt = performance.now();
      this.picked = null;
    }
    /* Reasons to stay are those of the plan, which comes later than the fleet. */
    const { answer } = this.page.planned;
    if (this.picked !== (answer || this.fleet)) {
      this.picked = answer || this.fleet;
      this.drawPicks();
    }
    this.drawTotals();
    this.drawLately();
    this.draw();
  }

  drawTotals() {
    const sum = totals(this.fleet.nodes.values());
    const rounded = Math.round(sum.price * 1e4) / 1e4;
    if (this.page.live.complete && this.prices.at(-1) !== rounded) this.prices.push(rounded);
    if (this.prices.length > 240) this.prices.shift();
    const amount = (value) => (this.page.live.complete ? number(Math.round(value)) : "…");
    const asked = (part, whole) => (this.page.live.complete ? percent(whole ? part / whole : NaN) : "…");
    const { planned } = this.page;
    const saved = planned.answer ? savedWords(planned.answer.plan) : null;
    const waiting = this.fleet.pending.size;
    const gain = saved && saved.known > 0 ? saved.known : null;
    const cost = alike([sum.known ? sum.price : null, gain]);
    this.totals.replaceChildren(
      card("Price", [cost(sum.known ? sum.price : null), this.prices.length > 2 ? spark(this.prices, `Price since this page was opened: from ${money(this.prices[0])} to ${money(rounded)}`) : null].filter(Boolean), perMonth(sum.known ? sum.price : null) + (sum.unpriced ? `; ${plural(sum.unpriced, "node")} of unknown price not counted` : ""), ".hero"),
      card("Nodes", number(sum.nodes), `in ${plural(new Set([...this.fleet.nodes.values()].map((node) => node.pool)).size, "pool")}`),
      card("Pods", number(this.page.live.complete ? this.fleet.pods.size : this.page.live.podCount), (waiting ? `${plural(waiting, "pod")} waiting for a node` : this.page.live.complete ? "none waiting for a node" : "still being read …") + (sum.daemons ? `; ${number(sum.daemons)} of DaemonSets` : "")),
      card("CPU asked for", asked(sum.askedCpu, sum.cpu), [meter("", sum.askedCpu, sum.cpu), ` ${amount(sum.askedCpu)} of ${number(Math.round(sum.cpu))} cores`]),
      card("Memory asked for", asked(sum.askedMemory, sum.memory), [meter("", sum.askedMemory, sum.memory), ` ${amount(sum.askedMemory / 1024)} of ${number(Math.round(sum.memory / 1024))} GiB`])
    );
    if (gain !== null) {
      const link = element("a.link.saves", { href: "#plan" }, `The plan saves ${cost(gain)}${saved.rest} (${saved.share}), ${saved.month}`);
      this.totals.firstChild.append(link);
    }
  }

  drawLately() {
    this.latelyCard.hidden = !this.lately.length;
    this.lines.replaceChildren(...this.lately.map(({ time, words }) => element("li", null, element("span.quiet", null, time), " ", words)));
  }

  drawPicks() {
    const pods = [...this.fleet.pods.values()];
    const pools = values([...this.fleet.nodes.values()].map((node) => node.pool || NO_POOL));
    const picks = [
      ["pool", "Pool", pools],
      ["ns", "Namespace", values(pods.map((pod) => pod.namespace))],
      ["workload", "Workload", values(pods.map((pod) => pod.workload.split(" ").at(-1)))],
      ["reason", "Reason to stay", values([...this.page.planned.verdicts.values()].flatMap((verdict) => verdict.reasons.map((reason) => reason.code)))],
    ];
    for (const [key, label, names] of picks) this.drawPick(key, label, names);
  }

  /* A select stays the same element, so that who uses it keeps the focus; only its options are renewed. */
  drawPick(key, label, names) {
    let made = this.pickers.get(key);
    if (!made) {
      made = select(label, [], "", (value) => this.pick(key, value));
      this.pickers.set(key, made);
      this.picks.append(made);
    }
    const known = names.join("\n");
    if (made.known !== known) {
      made.known = known;
      made.replaceChildren(...[["", label], ...names.slice(0, 2000).map((name) => [name, name || "?"])].map(([value, words]) => element("option", { value }, words)));
    }
    made.hidden = !names.length;
    const chosen = this.chosen(key);
    made.value = names.includes(chosen) ? chosen : "";
  }

  chosen(key) {
    const word = this.search.value.split(/\s+/).find((part) => part.startsWith(key + ":"));
    return word ? word.slice(key.length + 1) : "";
  }

  draw() {
    const wanted = matcher(this.state.query, (node) => this.page.planned.reasons(node), this.fleet.namespaces);
    const all = [...this.fleet.nodes.values()];
    const nodes = wanted ? all.filter(wanted) : all;
    if (this.state.zoom === null && all.length) this.state.zoom = firstZoom(all.length);
    const zoom = this.state.zoom ?? 4;
    this.zoom.value = String(zoom);
    this.drawLegend(zoom);
    const sum = totals(nodes);
    this.showing.textContent = wanted
      ? `${number(nodes.length)} of ${plural(all.length, "node")} · ${price(sum)} · ${percent(sum.cpu ? sum.askedCpu / sum.cpu : NaN)} of CPU and ${percent(sum.memory ? sum.askedMemory / sum.memory : NaN)} of memory asked for`
      : `${plural(all.length, "node")}. ${SIZES[zoom] === null ? "Each bar is a node, filled by what its pods ask for" : "Each cell is a node, filled from below by what its pods ask for"}.`;
    this.blocks.show(this.groups(nodes), zoom);
  }

  groups(nodes) {
    const key = this.state.group;
    const found = new Map();
    for (const node of nodes) {
      const name = node[key] || "";
      if (!found.has(name)) found.set(name, []);
      found.get(name).push(node);
    }
    const order = (a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : byName(a, b));
    const groups = [...found].map(([name, own]) => ({
      key: key + ":" + name,
      title: name || (key === "pool" ? "no pool" : "?"),
      pool: key === "pool",
      nodes: own.sort(order),
      price: totals(own).price,
    }));
    return groups.sort((a, b) => b.price - a.price || (a.title < b.title ? -1 : 1));
  }

  drawLegend(zoom) {
    const { colour } = this.state;
    this.colours.press(SIZES[zoom] === null && colour !== "plan" ? "namespace" : colour);
    const entries =
      SIZES[zoom] === null || colour === "namespace"
        ? namespaceLegend(this.ranks)
        : colour === "use"
          ? HEAT_WORDS.map((words, step) => ["heat" + step, words])
          : colour === "capacity"
            ? [["c0", "on-demand"], ["c2", "spot"], ["c4", "reserved"]]
            : [["c0", "stays"], ["c1", "deleted"], ["c3", "replaced"], ["c10", "not planned yet"]];
    const marks = [["marked-went", "leaving, or not ready"], ["marked-new", "starting"], ...(colour === "plan" ? [["crossed", "crossed: goes"]] : [])];
    const key = JSON.stringify(entries);
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(...[...entries, ...marks].map(([kind, words]) => element("span", null, element("i." + kind), words)));
  }
}

function values(names) {
  return [...new Set(names)].sort();
}
