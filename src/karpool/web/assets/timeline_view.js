/* What a controller has done, from its journal: commands, savings, failures and pauses, and the fleet at a past moment. */

import { ask } from "./live.js";
import { axisMoney, chart } from "./chart.js";
import { card, longTable, moment, perMonth, say, working } from "./controls.js";

const AGAIN_MS = 10000;
const SHOWN = 40;
const WORDS = { decided: "decided", dryRun: "dry run", running: "under way", completed: "completed", rolledBack: "rolled back", dropped: "dropped" };
const KINDS = { completed: ".ok", rolledBack: ".went", dropped: "", running: ".new", decided: "", dryRun: "" };

export class TimelineView {
  constructor(root, page) {
    this.root = root;
    this.page = page;
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
      this.show(answer.timeline);
      if (this.page.live.about.living) this.timer = setTimeout(() => this.ask(), AGAIN_MS);
    } catch (problem) {
      if (problem.name !== "AbortError") this.root.replaceChildren(element("section.card.problem", { role: "alert" }, problem.message));
    }
  }

  show(timeline) {
    const key = timeline && `${timeline.lines} ${timeline.ends}`;
    if (this.shown === key && timeline) return;
    this.shown = key;
    if (!timeline || !timeline.lines) {
      this.root.replaceChildren(
        element(
          "section.card",
          null,
          element("h2", null, "Timeline"),
          element("p", null, timeline ? "The journal is still empty." : "No journal is read here."),
          element("p.quiet", null, "The controller writes one with ", element("code", null, "karpool run --journal FILE"), ", and so does ", element("code", null, "karpool simulate --journal FILE"), ". This page reads it with ", element("code", null, "karpool ui --journal FILE"), ", and that of the controller that serves it by itself.")
        )
      );
      return;
    }
    const { totals } = timeline;
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
      element("p.quiet.showing", null, `${plural(timeline.lines, "line")} from ${moment(timeline.begins)} to ${moment(timeline.ends)}${timeline.unreadable ? `; ${plural(timeline.unreadable, "line")} cannot be read` : ""}${timeline.cut ? "; the last line is being written" : ""}.`)
    );
  }

  charts(timeline) {
    const at = (text) => Date.parse(text) / 1000;
    const points = timeline.points;
    if (points.length < 2) return [];
    const span = at(points.at(-1).time) - at(points[0].time);
    const times = { words: (value) => timeWords(value, span), ticks: timeTicks(at(points[0].time), at(points.at(-1).time)) };
    const saved = chart({
      label: `What completed commands save, up to ${money(points.at(-1).savingsPerHour)}`,
      lines: [{ points: points.map((point) => [at(point.time), point.savingsPerHour]), step: true }],
      marks: timeline.commands.filter((command) => command.outcome === "rolledBack" && command.ended).map((command) => ({ x: at(command.ended), y: savedAt(points, command.ended), kind: "dot-bad", r: 4 })),
      x: times,
      y: axisMoney,
      zero: true,
    });
    const known = points.filter((point) => point.nodes !== null);
    const nodes = known.length > 1 ? chart({ label: `Nodes, from ${known[0].nodes} to ${known.at(-1).nodes}`, lines: [{ points: known.map((point) => [at(point.time), point.nodes]), step: true, kind: "falls nodes-line" }], x: times, y: (value) => (Number.isInteger(value) ? number(value) : "") }) : null;
    const range = (this.range = element("input", { type: "range", min: String(at(timeline.begins)), max: String(Math.ceil(at(timeline.ends))), step: "1", value: String(Math.ceil(at(timeline.ends))), "aria-label": "A past moment" }));
    range.addEventListener("change", () => this.look(new Date(range.value * 1000).toISOString()));
    range.addEventListener("input", () => range.setAttribute("aria-valuetext", moment(new Date(range.value * 1000).toISOString())));
    return [
      element(
        "section.card",
        { "aria-label": "Over time" },
        element("div.plots", null, element("figure.plot", null, element("figcaption", null, "Saved by completed commands, in $/h; red dots are roll-backs"), saved), nodes ? element("figure.plot", null, element("figcaption", null, "Nodes"), nodes) : ""),
        element("label.scrub", null, element("span", null, "The fleet at"), range),
        this.momentPart
      ),
    ];
  }

  /* A time as it was written: a date of this language would lose its microseconds, and what was named in them. */
  async look(at) {
    if (this.range) this.range.value = String(Math.round(Date.parse(at) / 1000));
    try {
      const { moment: found } = await ask(this.page.live, "moment", { at }, { signal: this.asking.signal });
      this.drawMoment(found);
    } catch (problem) {
      if (problem.name !== "AbortError") this.momentPart.replaceChildren(element("p.problem", null, problem.message));
    }
  }

  drawMoment(found) {
    const removed = found.nodes.filter((node) => node.command !== null);
    this.momentPart.replaceChildren(
      element("h3", null, `At ${moment(found.time)}`),
      found.knownAt === null
        ? element("p", null, "No pass had named all nodes by then.")
        : element("p", null, `${plural(found.nodes.length, "node")}, as named at ${moment(found.knownAt)}; ${plural(found.gone.length, "node")} removed since, ${plural(found.requested.length, "node")} requested.`),
      found.nodes.length
        ? longTable(
            "Nodes of then",
            [
              { words: "Node", cell: (node) => element("bdi", null, node.name) },
              { words: "What was said of it then", cell: (node) => (node.command !== null ? element("span.badge.went", null, "to be removed") : node.reasons.map((reason) => `${reason.code}: ${reason.message}`).join("; ")) },
            ],
            [...removed, ...found.nodes.filter((node) => node.command === null)],
            SHOWN
          )
        : ""
    );
    say(`${plural(found.nodes.length, "node")} at ${moment(found.time)}`);
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
          { words: "When", cell: (command) => element("button.link", { type: "button", onclick: () => this.look(when(command)) }, moment(when(command))) },
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
  const steps = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400];
  const step = steps.find((size) => (high - low) / size <= 6) || steps.at(-1);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found.length ? found : [low];
}

function timeWords(seconds, span) {
  const text = new Date(seconds * 1000).toISOString();
  return span > 2 * 86400 ? text.slice(5, 10) : text.slice(11, 16);
}
