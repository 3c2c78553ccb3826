/* The plan: what it saves, step by step with a scrubber, and the fleet before and after. */

import { Blocks, firstZoom, SIZES } from "./blocks.js";
import { axisMoney, chart } from "./chart.js";
import { card, clock, moment, say, table, working } from "./controls.js";
import { byName, share } from "./fleet.js";
import { drawMoves } from "./moves.js";
import { heat, HEAT_WORDS, namespaceLegend, ranked } from "./palette.js";
import { aboveLeast, groupsTable, summary } from "./plan_summary.js";
import { Stepped } from "./stepped.js";

const PLAY_MS = 1100;
const MOVES_SHOWN = 12;

export class PlanView {
  constructor(root, page, place) {
    this.root = root;
    this.page = page;
    this.first = Math.trunc(Number(place.step)) || 0;
    this.refresh();
    page.planned.want();
  }

  close() {
    this.stop();
    if (this.blocks) this.blocks.close();
  }

  changed() {
    this.mention();
    if (this.page.planned.answer && this.page.planned.changedSince) this.page.planned.want();
  }

  refresh() {
    const { planned } = this.page;
    if (!planned.answer) {
      if (planned.problem) this.root.replaceChildren(element("section.card.problem", { role: "alert" }, element("p", null, planned.problem)));
      else this.wait();
      return;
    }
    if (this.shown === planned.answer) {
      this.mention();
      return;
    }
    this.shown = planned.answer;
    this.build();
  }

  wait() {
    if (!this.busy || !this.busy.isConnected) {
      this.busy = working("Planning …");
      this.root.replaceChildren(element("section.card", null, this.busy));
    }
    if (this.page.planned.said) this.busy.progress(...this.page.planned.said);
  }

  build() {
    const { plan } = this.shown;
    this.stop();
    if (this.blocks) this.blocks.close();
    this.stepped = new Stepped(this.shown);
    this.fresh = element("p.quiet.fresh", { role: "status" });
    this.blocksRoot = element("div.pools");
    this.zoom = firstZoom(this.stepped.all.length);
    this.ranks = ranked(this.stepped.fleet.pods.values(), "namespace");
    const parts = [this.totals(plan), ...this.notes(plan), summary(this.shown)];
    if (plan.commands.length) parts.push(this.scrubber(plan));
    else parts.push(element("section.card", null, element("p", null, plan.before.nodes ? "Nothing to do at this time; below is why each node stays." : "There are no nodes, so there is nothing to plan.")));
    if (this.stepped.all.length) parts.push(this.legend());
    parts.push(this.blocksRoot, this.types(plan), groupsTable(plan), this.reasons(plan));
    this.root.replaceChildren(...parts.filter(Boolean));
    this.blocks = new Blocks(this.blocksRoot, this.look(), {
      open: (node, pod) => this.page.explain(pod ? { pod } : { node: this.page.live.fleet.byName.get(node.name) || node }),
      openPool: (group) => this.page.explain({ pool: group.title }),
      tooltip: this.page.tip,
    });
    this.pricesToday = new Map();
    for (const node of this.stepped.all) this.pricesToday.set(node.pool, (this.pricesToday.get(node.pool) || 0) + (node.price || 0));
    this.goTo(this.first);
    this.page.remember({ step: this.stepped.step || "" });
    this.first = 0;
    this.mention();
  }

  /* Whether the cluster has changed since. */
  mention() {
    const { planned } = this.page;
    if (!this.fresh) return;
    const asOf = `Planned as of ${moment(this.shown.plan.time)}.`;
    this.fresh.textContent = planned.asking ? `${asOf} Planning again: ${planned.said ? planned.said[0] : "the cluster has changed"} …` : planned.changedSince ? `${asOf} The cluster has changed since.` : asOf;
  }

  totals(plan) {
    const { before, after, lowerBound } = plan;
    const { known, rest, share: part, month, uncounted } = savedWords(plan);
    const arrow = (a, b) => [element("span.was", null, a), element("span.arrow", { "aria-label": "to" }, "→"), b];
    const cost = alike([before.pricePerHour, after.pricePerHour, known, lowerBound && lowerBound.pricePerHour]);
    const priced = ({ pricePerHour, unpricedNodes }) => cost(pricePerHour, "") + (unpricedNodes && pricePerHour !== null ? " + ?" : "");
    const evicted = plan.curve.length ? plan.curve.at(-1).evictions : 0;
    const bound = lowerBound
      ? card("Least possible", cost(lowerBound.pricePerHour), aboveLeast(lowerBound) + (after.unpricedNodes ? "; for nodes of known price" : ""))
      : card("Least possible", "?", "not proven for this cluster");
    return element(
      "section.totals.five",
      { "aria-label": "What the plan saves" },
      card("Saves", [cost(known) + rest, element("span.pill", null, part)], month + uncounted, ".hero"),
      card("Price", arrow(priced(before), priced(after)), "$ an hour"),
      card("Nodes", arrow(number(before.nodes), number(after.nodes)), plural(plan.commands.length, "step")),
      card("Evictions", number(evicted), `of ${plural(before.pods, "pod")}, without those of DaemonSets`),
      bound
    );
  }

  /* What colours and lines of nodes mean, and how large they are drawn. */
  legend() {
    const zoom = element("input", { type: "range", min: "0", max: String(SIZES.length - 1), step: "1", value: String(this.zoom), "aria-label": "Zoom, from small cells to bars" });
    const marks = [["crossed", "goes in the next step"], ["marked-keep", "receives pods in this step"], ["marked-new", "new node"]];
    const entries = () => (SIZES[this.zoom] === null ? namespaceLegend(this.ranks) : [...HEAT_WORDS.map((words, step) => ["heat" + step, step ? words : `CPU asked for: ${words}`]), ["c6", "new in the plan"]]);
    const legend = element("div.legend", { role: "group", "aria-label": "What colours mean" });
    const write = () => legend.replaceChildren(...[...entries(), ...marks].map(([kind, words]) => element("span", null, element("i." + kind), words)));
    zoom.addEventListener("input", () => ((this.zoom = Number(zoom.value)), write(), this.draw()));
    write();
    return element("section.card.plan-legend", { "aria-label": "Nodes after this step" }, element("div.card-head", null, element("h2", null, "Nodes after this step"), element("label.zoom", null, element("span.quiet", null, "Zoom"), zoom)), legend);
  }

  /* What brakes hold, and warnings that do not stand above all views already. */
  notes(plan) {
    const above = new Set(this.page.live.about.warnings || []);
    const said = (kind, label, sentences) => (sentences.length ? [element("section.card." + kind, { "aria-label": label }, ...sentences.map((text) => element("p", null, text)))] : []);
    return [...said("brakes", "Brakes", this.shown.brakes), ...said("brakes.mild", "Warnings", plan.warnings.filter((text) => !above.has(text)))];
  }

  // -- steps

  scrubber(plan) {
    const last = plan.commands.length;
    this.range = element("input", { type: "range", min: "0", max: String(last), value: "0", step: "1", "aria-label": "Step of the plan" });
    this.range.addEventListener("input", () => (this.stop(), this.goTo(Number(this.range.value))));
    this.play = element("button.more.play", { type: "button", onclick: () => this.toggle() }, "Play");
    const button = (words, by, name) => element("button.more", { type: "button", "aria-label": name, onclick: () => (this.stop(), this.goTo(this.stepped.step + by)) }, words);
    this.where = element("p.where", { role: "status" });
    this.details = element("div.details");
    this.curve = this.drawCurve(plan);
    return element(
      "section.card.scrubber",
      { "aria-label": "The plan step by step" },
      element("div.scrub-side", null, element("h2", null, "Step by step"), this.fresh, this.where, this.details),
      element("div.scrub-main", null, this.curve, element("div.scrub", null, button("‹", -1, "Step back"), this.play, button("›", 1, "Next step")))
    );
  }

  drawCurve(plan) {
    if (plan.curve.length < 2 || plan.curve.some((point) => point.pricePerHour === null)) return element("div", null, element("p.quiet", null, "The price after each step is not known: a node has no price."), element("div.slider", null, this.range));
    const points = plan.curve.map((point) => [point.step, point.pricePerHour]);
    const whole = (value) => (Number.isInteger(value) ? number(value) : "");
    const [across, wide] = [this.root.clientWidth - 34, window.innerWidth > 1080];
    const drawn = chart({
      ...(window.innerWidth < 640 ? {} : { width: Math.max(480, Math.round(wide ? across * 0.62 : across)), height: 240 }),
      label: `Price after each step, from ${money(points[0][1])} to ${money(points.at(-1)[1])}${plan.lowerBound ? `; the least possible is ${money(plan.lowerBound.pricePerHour)}` : ""}`,
      lines: [{ points, step: true }],
      level: plan.lowerBound ? { y: plan.lowerBound.pricePerHour, label: `least possible ${money(plan.lowerBound.pricePerHour)}` } : null,
      x: { words: whole, ends: [0, plan.commands.length] },
      y: axisMoney,
    });
    drawn.addEventListener("click", (event) => (this.stop(), this.goTo(Math.round(drawn.valueAt(event)))));
    return element("figure.plot", null, element("figcaption", null, "Price in $/h after each step"), drawn, drawn.slider(this.range));
  }

  goTo(step) {
    const to = Math.max(0, Math.min(this.stepped.steps, step));
    const before = this.stepped.step;
    const from = this.places(to > before ? this.shown.plan.commands.slice(before, to) : []);
    this.stepped.goTo(to);
    if (to !== before) this.page.remember({ step: to || "" });
    if (this.range) this.range.value = String(to);
    if (this.where) this.write(to);
    this.draw();
    if (from.length) drawMoves(from, (name) => this.place(name));
  }

  write(step) {
    const { plan } = this.shown;
    const sum = this.stepped.totals();
    const point = plan.curve[step];
    this.where.replaceChildren(
      element("b", null, step === 0 ? "Today" : `After step ${number(step)} of ${number(plan.commands.length)}`),
      `: ${plural(sum.nodes, "node")}, ${money(sum.known ? sum.price : null)}${sum.known && sum.unpriced ? " + ?" : ""}` + (point ? `, ${plural(point.evictions, "eviction")}` : "")
    );
    const next = plan.commands[step === 0 ? 0 : step - 1];
    this.details.replaceChildren(...commandWords(next, step === 0, (about) => this.page.explain(about), this.page.live.fleet).filter(Boolean));
    if (this.curve.querySelector && this.curve.querySelector("svg") && point) this.curve.querySelector("svg").pointAt(step, point.pricePerHour);
    if (this.range) this.range.setAttribute("aria-valuetext", this.where.textContent);
  }

  /* Where the pods of commands are on the screen before they move. */
  places(commands) {
    const moves = [];
    for (const command of commands.slice(-1)) {
      for (const placement of command.placements) {
        const box = placement.from && this.place(placement.from);
        if (box) moves.push({ box, to: placement.to, rank: this.ranks.get(placement.pod.split("/")[0]) });
      }
    }
    return moves;
  }

  place(name) {
    return this.blocks ? this.blocks.place(name) : null;
  }

  toggle() {
    if (this.playing) {
      this.stop();
      return;
    }
    if (this.stepped.step === this.stepped.steps) this.goTo(0);
    this.play.textContent = "Pause";
    this.playing = setInterval(() => {
      this.goTo(this.stepped.step + 1);
      if (this.stepped.step === this.stepped.steps) {
        this.stop();
        say("The plan has ended.");
      }
    }, PLAY_MS);
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    if (this.play) this.play.textContent = "Play";
  }

  draw() {
    const groups = new Map();
    for (const node of this.stepped.fleet.nodes.values()) {
      if (!groups.has(node.pool)) groups.set(node.pool, []);
      groups.get(node.pool).push(node);
    }
    for (const node of this.stepped.all) if (!groups.has(node.pool)) groups.set(node.pool, []);
    const order = (a, b) => (a.virtual ? 1 : 0) - (b.virtual ? 1 : 0) || (a.type < b.type ? -1 : a.type > b.type ? 1 : byName(a, b));
    const listed = [...groups].sort((a, b) => (this.pricesToday.get(b[0]) || 0) - (this.pricesToday.get(a[0]) || 0) || (a[0] < b[0] ? -1 : 1)).map(([pool, nodes]) => ({ key: pool, title: pool || "no pool", pool: true, nodes: nodes.sort(order) }));
    this.blocks.show(listed, this.zoom);
  }

  look() {
    return {
      measure: () => "cpu",
      complete: () => true,
      segments: (node) => [[share(node, "cpu"), node.virtual ? "--c6" : heat(share(node, "cpu"))]],
      mark: (node) => this.mark(node),
      label: (node) => [node.name, money(node.price), node.type, `CPU ${percent(share(node, "cpu"))}`, this.mark(node).text].filter(Boolean).join(", "),
      rank: (pod) => this.ranks.get(pod.namespace),
      moving: (pod) => this.stepped.moving.has(pod.name),
      faint: () => this.stepped.moving.size > 0,
    };
  }

  mark(node) {
    const next = this.shown.plan.commands[this.stepped.step];
    const role = this.stepped.roles.get(node.name);
    if (next && next.nodes.includes(node.name)) return { kind: "went", text: "goes next", line: "--bad", cross: true };
    if (role === "new") return { kind: "new", text: "new", line: "--new" };
    if (role) return { kind: "keep", text: role, line: "--accent" };
    if (node.virtual) return { kind: "new", text: "new", line: "--new", dashed: true };
    return {};
  }

  // -- before and after

  types(plan) {
    const rows = fleetByType(plan, this.stepped);
    const most = Math.max(1e-9, ...rows.map((row) => Math.max(row.before.price, row.after.price)));
    const bar = (part, kind) => {
      const made = element("span.type-bar", { "aria-hidden": "true" }, element("i." + kind));
      made.firstChild.style.width = (100 * part.price) / most + "%";
      return made;
    };
    const cost = alike(rows.flatMap((row) => [row.before.price, row.after.price]));
    const priceOf = (part) => (part.unpriced === part.nodes ? "? $/h" : cost(part.price) + (part.unpriced ? " + ?" : ""));
    const cell = (part) => (part.nodes ? `${number(part.nodes)} · ${priceOf(part)}` : "none");
    return element(
      "section.card.types",
      { "aria-labelledby": "types-title" },
      element("h2", { id: "types-title" }, "The fleet before and after, by instance type"),
      table(
        "The fleet before and after, by instance type",
        [
          { words: "Instance type", cell: (row) => element("bdi", null, row.type) },
          { words: "Before", number: true, cell: (row) => [cell(row.before), bar(row.before, "c10")] },
          { words: "After", number: true, cell: (row) => [cell(row.after), bar(row.after, "c0")] },
          { words: "Change", number: true, cell: (row) => changed(row, cost) },
        ],
        rows
      )
    );
  }

  reasons(plan) {
    const groups = new Map();
    for (const verdict of plan.nodes) {
      if (verdict.verdict !== "keep") continue;
      for (const code of new Set(verdict.reasons.map((reason) => reason.code))) groups.set(code, (groups.get(code) || []).concat(verdict));
    }
    if (!groups.size) return null;
    const known = (nodes) => nodes.reduce((sum, node) => (sum === null || node.pricePerHour === null ? null : sum + node.pricePerHour), 0);
    const cost = alike([...groups.values()].map(known));
    const example = (code, verdict) => sentence(verdict.reasons.find((reason) => reason.code === code), verdict);
    return element(
      "section.card",
      { "aria-labelledby": "stay-title" },
      element("h2", { id: "stay-title" }, "Why the other nodes stay"),
      element("p.quiet", null, "A node with several reasons is counted under each."),
      table(
        "Why the other nodes stay",
        [
          { words: "Reason", cell: ([code]) => element("a.link", { href: "#fleet?" + new URLSearchParams({ q: "reason:" + code }) }, code) },
          { words: "Nodes", number: true, cell: ([, nodes]) => number(nodes.length) },
          { words: "Price", number: true, cell: ([, nodes]) => cost(known(nodes)) },
          { words: "For example", cell: ([code, nodes]) => [this.nodeLink(nodes[0].name), ": ", example(code, nodes[0])] },
        ],
        [...groups].sort((a, b) => b[1].length - a[1].length)
      )
    );
  }

  nodeLink(name) {
    const node = this.page.live.fleet.byName.get(name);
    return node ? element("button.link", { type: "button", onclick: () => this.page.explain({ node }) }, element("bdi", null, name)) : element("bdi", null, name);
  }
}

/* What a type costs more or less; nobody knows where other nodes of unknown price are left. */
function changed({ before, after }, cost) {
  const value = after.price - before.price;
  const same = before.nodes === after.nodes && before.unpriced === after.unpriced;
  if ((before.unpriced || after.unpriced) && !same) return "?";
  if (Math.abs(value) < 1e-9) return "0";
  return element("span" + (value < 0 ? ".saved" : ""), null, (value < 0 ? "−" : "+") + cost(Math.abs(value)));
}

/* Nodes and prices by type, today and at the end. */
function fleetByType(plan, stepped) {
  const rows = new Map();
  const count = (type, price, when) => {
    const name = type || "?";
    if (!rows.has(name)) rows.set(name, { type: name, before: none(), after: none() });
    const part = rows.get(name)[when];
    part.nodes += 1;
    part.price += price || 0;
    part.unpriced += price === null ? 1 : 0;
  };
  for (const node of stepped.all) count(node.type, node.price, "before");
  const at = stepped.step;
  stepped.goTo(stepped.steps);
  for (const node of stepped.fleet.nodes.values()) count(node.type, node.price, "after");
  stepped.goTo(at);
  return [...rows.values()].sort((a, b) => Math.max(b.before.price, b.after.price) - Math.max(a.before.price, a.after.price));
}

function none() {
  return { nodes: 0, price: 0, unpriced: 0 };
}

/* A step in words, with what it moves. */
function commandWords(command, next, explain, fleet) {
  if (!command) return [];
  const nodes = plural(command.nodes.length, "node");
  const count = number(command.replacements.length);
  const first = command.decision === "terminate-first";
  const what = !command.replacements.length ? `Delete ${nodes}` : first ? `Terminate ${nodes} first, then launch ${count}` : `Replace ${nodes} with ${count}`;
  const link = (name) => {
    const node = fleet.byName.get(name);
    return node ? element("button.link", { type: "button", onclick: () => explain({ node }) }, element("bdi", null, name)) : element("bdi", null, name);
  };
  const moves = command.placements.slice(0, MOVES_SHOWN).map((move) => element("li", null, element("b", null, move.pod), element("span", null, `${move.from || "pending"} → ${move.to}`)));
  const rest = command.placements.length - moves.length;
  if (rest > 0) moves.push(element("li", null, element("span", null, `and ${plural(rest, "more pod")}`)));
  return [
    element("p.next", null, element("span.badge.new", null, next ? "next" : "this step"), " ", element("b", null, what), ` saves ${money(command.savingsPerHour)}`),
    element("p.quiet", null, `${spaced(command.method)}${command.begins ? ` · can begin at ${clock(command.begins)}` : ""}`),
    element("p.fact", null, element("span.quiet", null, "Goes: "), ...command.nodes.slice(0, 8).flatMap((name) => [link(name), " "]), command.nodes.length > 8 ? `and ${number(command.nodes.length - 8)} more` : ""),
    ...command.replacements.slice(0, 6).map((made) => element("p.fact", null, element("span.quiet", null, "Comes: "), `${made.name}: ${made.instanceTypes[0] || "?"}, ${made.capacityType}, ${money(made.pricePerHour)}`)),
    ...Object.entries(command.waves).filter(([, turns]) => turns > 1).map(([pdb, turns]) => element("p.fact", null, `Pods under PDB ${pdb} leave in ${plural(turns, "wave")}`)),
    moves.length ? element("ul.moves", null, ...moves) : element("p.fact", null, "No pod has to move."),
  ];
}
