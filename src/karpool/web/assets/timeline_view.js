/* What a controller has done, from its journal: commands, savings, failures and pauses, and the fleet at a past moment. */

import { ask } from "./live.js";
import { axisMoney, chart } from "./chart.js";
import { card, choice, longTable, moment, perMonth, saidOnce, say, working } from "./controls.js";

const AGAIN_MS = 10000;
const SHOWN = window.innerWidth < 640 ? 12 : 40;
const KEY_STEPS = 200;
const WORDS = { decided: "decided", dryRun: "dry run", running: "under way", completed: "completed", rolledBack: "rolled back", dropped: "dropped" };
const KINDS = { completed: ".ok", rolledBack: ".went", dropped: "", running: ".new", decided: "", dryRun: "" };

export class TimelineView {
  constructor(root, page, place) {
    this.root = root;
    this.page = page;
    this.lookedAt = Number.isNaN(Date.parse(place.at)) ? null : place.at;
    this.busy = working("Reading the journal …");
    root.replaceChildren(element("section.card", null, this.busy));
    this.asking = new AbortController();
    this.ask();
  }

  close() {
    this.asking.abort();
    clearTimeout(this.timer);
  }

  changed() {}

  refresh() {}

  async ask() {
    try {
      const answer = await ask(this.page.live, "timeline", {}, { progress: this.busy.progress, signal: this.asking.signal });
      this.show(answer.timeline, answer.journal);
      if (this.page.live.about.living) this.timer = setTimeout(() => this.ask(), AGAIN_MS);
    } catch (problem) {
      if (problem.name !== "AbortError") this.root.replaceChildren(element("section.card.problem", { role: "alert" }, problem.message));
    }
  }

  show(timeline, journal) {
    const key = timeline && `${timeline.lines} ${timeline.ends}`;
    if (this.shown === key && timeline) return;
    this.shown = key;
    if (!timeline || !timeline.lines) {
      this.root.replaceChildren(
        element(
          "section.card",
          null,
          element("h2", null, "Timeline"),
          element("p", null, timeline ? `The journal ${journal} is still empty.` : "No journal is read here."),
          element("p.quiet", null, "The controller writes one with ", element("code", null, "karpool run --journal FILE"), ", and so does ", element("code", null, "karpool simulate --journal FILE"), ". This page reads it with ", element("code", null, "karpool ui --journal FILE"), ", and that of the controller that serves it by itself.")
        )
      );
      return;
    }
    const { totals } = timeline;
    this.timeline = timeline;
    this.momentPart = element("div.moment");
    this.root.replaceChildren(
      element(
        "section.totals.five",
        { "aria-label": "The journal in short" },
        card("Saved by completed commands", money(totals.savingsPerHour), `${perMonth(totals.savingsPerHour)}, had none of it grown back` + (totals.unpriced ? `; ${plural(totals.unpriced, "command")} of unknown savings not counted` : ""), ".hero"),
        card("Commands", number(timeline.commands.length), `${number(totals.completed)} completed, ${number(totals.running)} under way`),
        card("Rolled back", number(totals.rolledBack), `${number(totals.dropped)} more dropped before they began`),
        card("Evictions", number(totals.evictions), "of completed commands"),
        card("Pauses", number(timeline.pauses.length), `${number(timeline.pauses.filter((pause) => !pause.until).length)} still hold`)
      ),
      ...this.charts(timeline),
      this.commands(timeline),
      this.pauses(timeline),
      element("p.quiet.showing", null, "Journal ", element("bdi", null, journal), `: ${plural(timeline.lines, "line")} from ${moment(timeline.begins)} to ${moment(timeline.ends)}${timeline.unreadable ? `; ${plural(timeline.unreadable, "line")} cannot be read` : ""}${timeline.cut ? "; the last line is being written" : ""}.`)
    );
    if (this.lookedAt) this.look(this.lookedAt);
  }

  charts(timeline) {
    const at = (text) => Date.parse(text) / 1000;
    const points = timeline.points;
    if (points.length < 2) return [element("section.card", { "aria-label": "A past moment" }, this.momentPart)];
    const span = at(timeline.ends) - at(timeline.begins);
    const whole = [at(timeline.begins), Math.max(at(timeline.ends), at(timeline.begins) + 1)];
    const times = { words: (value) => timeWords(value, span), ticks: timeTicks(...whole), ends: whole };
    const narrow = window.innerWidth < 640;
    const size = { width: narrow ? 360 : Math.max(640, this.root.clientWidth - 34), height: narrow ? 190 : 170 };
    const saved = chart({
      ...size,
      label: `What completed commands save, up to ${money(points.at(-1).savingsPerHour)}`,
      lines: [{ points: points.map((point) => [at(point.time), point.savingsPerHour]), step: true }],
      marks: timeline.commands.filter((command) => command.outcome === "rolledBack" && command.ended).map((command) => ({ x: at(command.ended), y: savedAt(points, command.ended), kind: "dot-bad", r: 4 })),
      x: times,
      y: axisMoney,
    });
    const known = points.filter((point) => point.nodes !== null);
    const nodes = known.length > 1 ? chart({ ...size, label: `Nodes, from ${known[0].nodes} to ${known.at(-1).nodes}`, lines: [{ points: known.map((point) => [at(point.time), point.nodes]), step: true, kind: "falls nodes-line" }], x: times, y: (value) => (Number.isInteger(value) ? number(value) : "") }) : null;
    const range = (this.range = element("input", { type: "range", min: String(whole[0]), max: String(whole[1]), step: "any", value: String(whole[1]), "aria-label": "A past moment" }));
    const written = () => new Date(range.value * 1000).toISOString();
    range.addEventListener("change", () => this.look(written()));
    range.addEventListener("input", () => (range.setAttribute("aria-valuetext", moment(written())), this.point(Number(range.value))));
    range.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      range.value = String(Number(range.value) + (steps[event.key] * (whole[1] - whole[0])) / KEY_STEPS);
      range.dispatchEvent(new Event("input"));
      range.dispatchEvent(new Event("change"));
    });
    this.cursors = [[saved, points.map((point) => [at(point.time), point.savingsPerHour])], ...(nodes ? [[nodes, known.map((point) => [at(point.time), point.nodes])]] : [])];
    for (const [drawn] of this.cursors) drawn.addEventListener("click", (event) => this.look(new Date(1000 * Math.max(whole[0], Math.min(whole[1], drawn.valueAt(event)))).toISOString()));
    return [
      element(
        "section.card.over-time",
        { "aria-label": "Over time" },
        element("div.plots", null, element("figure.plot", null, element("figcaption", null, "Saved by completed commands, in $/h; red dots are roll-backs"), saved), nodes ? element("figure.plot", null, element("figcaption", null, "Nodes"), nodes) : ""),
        saved.slider(range),
        this.hint = element("p.quiet.showing", null, "Move the slider, or click a chart, to see the fleet of then and why each node stayed."),
        this.momentPart
      ),
    ];
  }

  /* Where a moment is in the charts. */
  point(seconds) {
    for (const [drawn, points] of this.cursors || []) {
      let value = points[0][1];
      for (const [time, own] of points) if (time <= seconds) value = own;
      drawn.pointAt(seconds, value);
    }
  }

  /* A time as it was written: a date of this language would lose its microseconds, and what was named in them. */
  async look(at) {
    this.lookedAt = at;
    this.page.remember({ at });
    if (this.range) this.range.value = String(Date.parse(at) / 1000);
    this.point(Date.parse(at) / 1000);
    try {
      const { moment: found } = await ask(this.page.live, "moment", { at }, { signal: this.asking.signal });
      this.drawMoment(found);
    } catch (problem) {
      if (problem.name !== "AbortError") this.momentPart.replaceChildren(element("p.problem", null, problem.message));
    }
  }

  /* The table of commands is long, and the fleet of then is above it. */
  async lookFromAfar(at) {
    await this.look(at);
    this.momentPart.scrollIntoView({ block: "nearest" });
  }

  drawMoment(found) {
    if (this.hint) this.hint.hidden = true;
    const removed = found.nodes.filter((node) => node.command !== null);
    const prices = found.nodes.map((node) => (node.facts ? node.facts.pricePerHour : null));
    const known = prices.filter((price) => price !== null);
    const sum = known.reduce((total, price) => total + price, 0);
    const priced = known.length ? `, ${money(sum)}${known.length < prices.length ? ` and ${plural(prices.length - known.length, "node")} of unknown price` : ""}` : "";
    const groups = new Map();
    if (removed.length) groups.set("to be removed", removed.length);
    for (const node of found.nodes) for (const code of new Set(node.reasons.map((reason) => reason.code))) groups.set(code, (groups.get(code) || 0) + 1);
    this.nodesPart = element("div");
    this.found = found;
    const listed = [["", `All ${number(found.nodes.length)}`], ...[...groups].sort((a, b) => b[1] - a[1]).map(([code, count]) => [code, `${code} × ${number(count)}`])];
    this.momentPart.replaceChildren(
      element("h3", null, `At ${moment(found.time)}`),
      found.knownAt === null
        ? element("p", null, "No pass had named all nodes by then.")
        : element("p", null, `${plural(found.nodes.length, "node")}${priced}, as named at ${moment(found.knownAt)}; ${plural(found.gone.length, "node")} removed since, ${plural(found.requested.length, "node")} requested.`),
      found.nodes.length ? choice("Reasons of then", listed, "", (code) => this.drawNodes(code)) : "",
      this.nodesPart
    );
    this.drawNodes("");
    say(`${plural(found.nodes.length, "node")} at ${moment(found.time)}`);
  }

  /* The nodes of a past moment; `code`: those alone that stayed for this reason then. */
  drawNodes(code) {
    const going = (node) => node.command !== null;
    const wanted = (node) => !code || (code === "to be removed" ? going(node) : node.reasons.some((reason) => reason.code === code));
    const nodes = this.found.nodes.filter(wanted).sort((a, b) => Number(going(b)) - Number(going(a)));
    if (!nodes.length) return;
    const cost = alike(nodes.map((node) => node.facts && node.facts.pricePerHour));
    const told = nodes.some((node) => node.facts);
    const fact = (words) => (node) => (node.facts ? words(node.facts) || "?" : "?");
    this.nodesPart.replaceChildren(
      longTable(
        "Nodes of then",
        [
          { words: "Node", cell: (node) => this.nodeLink(node.name) },
          ...(told
            ? [
                { words: "Pool", cell: fact((facts) => facts.nodePool || "no pool") },
                { words: "Type", cell: fact((facts) => [facts.instanceType, facts.capacityType].filter(Boolean).join(", ")) },
                { words: "Price", number: true, cell: (node) => cost(node.facts && node.facts.pricePerHour) },
              ]
            : []),
          { words: "What was said of it then", cell: (node) => (going(node) ? [element("span.badge.went", null, "to be removed"), " ", this.commandWords(node.command)] : node.reasons.map((reason) => saidOnce(reason)).join("; ")) },
        ],
        nodes,
        SHOWN
      )
    );
  }

  /* The command that was to remove a node of then. */
  commandWords(place) {
    const command = this.timeline.commands[place];
    return command ? `${spaced(command.method)}, which ended as ${WORDS[command.outcome]}` : "";
  }

  /* A node that is still there is explained as it is now. */
  nodeLink(name) {
    const node = this.page.live.fleet.byName.get(name);
    return node ? element("button.link", { type: "button", onclick: () => this.page.explain({ node }) }, element("bdi", null, name)) : element("bdi", null, name);
  }

  commands(timeline) {
    const rows = [...timeline.commands].reverse();
    if (!rows.length) return element("section.card", null, element("h2", null, "Commands"), element("p", null, "None was decided."));
    const cost = alike(rows.map((command) => command.savingsPerHour));
    return element(
      "section.card",
      { "aria-labelledby": "commands-title" },
      element("h2", { id: "commands-title" }, "Commands, the latest first"),
      longTable(
        "Commands, the latest first",
        [
          { words: "When", cell: (command) => element("button.link", { type: "button", onclick: () => this.lookFromAfar(when(command)) }, moment(when(command))) },
          { words: "Outcome", cell: (command) => element("span.badge" + KINDS[command.outcome], null, WORDS[command.outcome]) },
          { words: "What", cell: (command) => [`${spaced(command.method)}: ${command.decision || "remove"} `, element("bdi", null, names(command.nodes)), command.replacements.length ? ` by ${plural(command.replacements.length, "new node")}` : "", command.message ? element(command.outcome === "rolledBack" ? "div.problem" : "div.was-dropped", null, command.message) : "", ...command.waits.map((words) => element("div.quiet", null, words))] },
          { words: "Saves", number: true, cell: (command) => cost(command.savingsPerHour) },
          { words: "Evictions", number: true, cell: (command) => (command.evictions === null ? "?" : number(command.evictions)) },
          { words: "Took", number: true, cell: (command) => (command.started && command.ended ? duration(Date.parse(command.ended) - Date.parse(command.started)) : "") },
        ],
        rows,
        SHOWN
      )
    );
  }

  pauses(timeline) {
    if (!timeline.pauses.length) return "";
    return element(
      "section.card",
      { "aria-labelledby": "pauses-title" },
      element("h2", { id: "pauses-title" }, "Pauses and brakes"),
      longTable(
        "Pauses and brakes",
        [
          { words: "Since", cell: (pause) => (pause.since ? moment(pause.since) : "before the journal begins") },
          { words: "Until", cell: (pause) => (pause.until ? moment(pause.until) : element("span.badge.went", null, "still holds")) },
          { words: "Pool", cell: (pause) => pause.nodePool || "everything" },
          { words: "Why", cell: (pause) => `${pause.code}: ${pause.message}` },
        ],
        [...timeline.pauses].reverse(),
        SHOWN
      )
    );
  }
}

function when(command) {
  return command.decided || command.started || command.ended;
}

function names(nodes) {
  return nodes.slice(0, 3).join(", ") + (nodes.length > 3 ? ` and ${number(nodes.length - 3)} more` : "");
}

function duration(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

function savedAt(points, time) {
  let saved = 0;
  for (const point of points) if (point.time <= time) saved = point.savingsPerHour;
  return saved;
}

/* Whole minutes, hours or days, in UTC. */
function timeTicks(low, high) {
  const steps = [60, 300, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 30 * 86400];
  const step = steps.find((size) => (high - low) / size <= (window.innerWidth < 640 ? 5 : 9)) || steps.at(-1);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found.length ? found : [low];
}

function timeWords(seconds, span) {
  const text = new Date(seconds * 1000).toISOString();
  return span > 2 * 86400 ? text.slice(5, 10) : text.slice(11, 16);
}
