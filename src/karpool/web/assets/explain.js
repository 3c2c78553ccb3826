/* Everything about one node, one pod or one pool, in a dialog; what takes thought is asked for. */

import { ask } from "./live.js";
import { card, perMonth, saidOnce, table, working } from "./controls.js";
import { counts, totals, UNDISTURBED } from "./fleet.js";
import { meter, price } from "./blocks.js";

const NODES_SHOWN = 60;

export class Explainer {
  constructor(page) {
    this.page = page;
    this.sheet = byId("sheet");
    this.history = [];
    this.sheet.addEventListener("click", (event) => event.target === this.sheet && this.sheet.close());
    this.sheet.addEventListener("close", () => this.closed());
  }

  /* `about`: {node}, {pod} or {pool}. */
  open(about) {
    if (this.sheet.open) this.history.push(this.about);
    else this.history = [];
    this.show(about);
  }

  show(about) {
    if (this.asking) this.asking.abort();
    this.asking = new AbortController();
    this.about = about;
    if (about.pool !== undefined) this.pool(about.pool);
    else if (about.pod) this.pod(about.pod);
    else this.node(about.node);
    if (!this.sheet.open) this.sheet.showModal();
    this.sheet.scrollTop = 0;
  }

  closed() {
    // It is told some time later: the sheet may have been opened again for something else.
    if (!this.sheet.open && this.asking) this.asking.abort();
  }

  frame(title, ...parts) {
    const close = element("button.close", { type: "button", "aria-label": "Close", onclick: () => this.sheet.close() }, "×");
    const back = this.history.length
      ? element("button.close", { type: "button", "aria-label": "Back", onclick: () => this.show(this.history.pop()) }, "‹")
      : null;
    this.sheet.replaceChildren(
      element("div.sheet-head", null, back, element("h2", { id: "sheet-title" }, element("bdi", null, title)), close),
      ...parts.filter(Boolean)
    );
  }

  /* A part of the sheet that is worked out by the server. */
  asked(what, name, write) {
    const busy = working("Working it out …");
    const part = element("div.asked", null, busy);
    ask(this.page.live, what, { name }, { progress: busy.progress, signal: this.asking.signal }).then(
      (answer) => part.replaceChildren(...write(answer).filter(Boolean)),
      (problem) => problem.name !== "AbortError" && part.replaceChildren(element("p.problem", null, problem.message))
    );
    return part;
  }

  link(about, words) {
    return element("button.link", { type: "button", onclick: () => this.open(about) }, element("bdi", null, words));
  }

  nodeLink(name) {
    const node = this.page.live.fleet.byName.get(name);
    return node ? this.link({ node }, name) : element("bdi", null, name);
  }

  podLink(name) {
    const pod = this.page.live.fleet.podsByName.get(name);
    return pod ? this.link({ pod }, name) : element("bdi", null, name);
  }

  // -- a node

  node(node) {
    const pods = [...node.pods].sort((a, b) => a.daemon - b.daemon || b.cpu - a.cpu);
    this.frame(
      node.name,
      element("p", null, element("span.badge", null, this.page.describe(node))),
      facts([
        ["Price", node.price === null ? money(null) : `${money(node.price)} · ${perMonth(node.price)}`],
        ["Type", [node.type || "?", node.capacity || "?", node.zone || "?"].join(", ")],
        ["Pool", node.pool ? this.link({ pool: node.pool }, node.pool) : "none"],
        ["CPU", meterLine(node, "cpu", cores)],
        ["Memory", meterLine(node, "memory", memory)],
        ...this.whyItGoes(node),
      ]),
      node.virtual ? null : this.asked("node", node.name, (answer) => this.nodeAnswer(answer.node)),
      element("h3", null, `${plural(pods.length, "pod")}, by what they ask for`),
      this.podTable(pods),
      labels(node.labels)
    );
  }

  /* What the plan says of a node that goes; why one stays is told below. */
  whyItGoes(node) {
    const verdict = this.page.planned.verdicts.get(node.name);
    if (!verdict || verdict.step === null) return [];
    return [["Why it goes", verdict.reasons.map((reason) => saidOnce({ code: reason.code, message: sentence(reason, node) })).join("; ")]];
  }

  podTable(pods) {
    return table(
      "Pods of this node",
      [
        { words: "Pod", cell: (pod) => this.link({ pod }, pod.name) },
        { words: "Workload", cell: (pod) => pod.workload },
        { words: "CPU", number: true, cell: (pod) => cores(pod.cpu) },
        { words: "Memory", number: true, cell: (pod) => memory(pod.memory) },
      ],
      pods
    );
  }

  nodeAnswer(said) {
    const parts = [];
    const failed = said.rules.filter((rule) => !rule.passed);
    const told = (reason) => saidOnce({ code: reason.code, message: sentence(reason, said.node) });
    parts.push(element("h3", null, "Could it go alone, today?"));
    parts.push(
      element(
        "p.verdict",
        null,
        element("b", null, said.alone.verdict === "keep" ? "It stays." : `Yes: ${said.alone.verdict}.`),
        " ",
        said.alone.verdict === "keep" ? `${said.alone.reasons.map(told).join("; ")}.` : `That saves ${money(said.alone.savingsPerHour)}.`
      )
    );
    if (said.group) parts.push(element("p", null, `Together with ${said.group.nodes.filter((name) => name !== said.node.name).join(", ")} it can go, and that saves ${money(said.group.savingsPerHour)}.`));
    if (said.unblock.length) {
      parts.push(element("h3", null, "What would let it go"));
      parts.push(element("ul.plain", null, ...said.unblock.map((way) => element("li", null, `if ${way.if}: saves `, element("b", null, money(way.savingsPerHour))))));
    }
    if (said.alternative) parts.push(element("p", null, `Cheapest replacement: ${said.alternative.instanceType} in ${said.alternative.zone}, ${said.alternative.capacityType}, ${money(said.alternative.pricePerHour)}.`));
    const rules = said.rules.map((rule) => element("li" + (rule.passed ? ".ok" : ".no"), null, element("b", null, rule.passed ? "ok " : "no "), rule.rule + (rule.reason && !rule.passed ? `: ${rule.reason.message}` : "")));
    parts.push(element("details.rules", null, element("summary", null, `${plural(said.rules.length, "rule")}, ${failed.length ? `${number(failed.length)} against it` : "none against it"}`), element("ul.plain", null, ...rules)));
    if (said.pods.length) {
      parts.push(element("h3", null, "Where its pods would go"));
      parts.push(
        table(
          "Where its pods would go",
          [
            { words: "Pod", cell: (entry) => [this.podLink(entry.pod), this.expected(entry.pod) ? element("span.badge", null, "waits, expected here") : ""] },
            { words: "To", cell: (entry) => (entry.to ? this.nodeLink(entry.to) : "nowhere") },
            said.pods.some((entry) => entry.reason) ? { words: "Why", cell: (entry) => (entry.reason ? entry.reason.message : "") } : null,
          ].filter(Boolean),
          said.pods
        )
      );
    }
    return parts;
  }

  /* Whether a pod has no node yet: room on a node is kept for it, so it counts there. */
  expected(name) {
    const pod = this.page.live.fleet.podsByName.get(name);
    return pod !== undefined && !pod.node;
  }

  // -- a pod

  pod(pod) {
    const node = this.page.live.fleet.nodes.get(pod.node);
    this.frame(
      pod.name,
      element("p", null, element("span.badge", null, pod.node ? "runs" : "waits for a node"), pod.flags & UNDISTURBED ? element("span.badge.went", null, "do-not-disrupt") : null),
      facts([
        ["Workload", pod.workload],
        ["Node", node ? this.link({ node }, node.name) : "none yet"],
        ["Asks for", `${cores(pod.cpu)}, ${memory(pod.memory)}`],
        ["Its part of the node", node ? `${percent(pod.cpu / node.cpu)} of CPU, ${percent(pod.memory / node.memory)} of memory` : "?"],
      ]),
      this.asked("pod", pod.name, (answer) => this.podAnswer(answer.pod)),
      labels(pod.labels)
    );
  }

  podAnswer(said) {
    if (said.daemon) return [element("h3", null, "Why is it here?"), element("p", null, "It is of a DaemonSet: it comes and goes with its node.")];
    if (!said.node) return this.waitingAnswer(said);
    const others = said.nodes.filter((name) => name !== said.node);
    const stays = said.held ? `It may not be moved: ${said.held}.` : said.blocked ? `It may not be evicted now: ${said.blocked}.` : "Nothing forbids to move it.";
    const refused = said.refusals.filter((refusal) => refusal.what === "nodes");
    return [
      element("h3", null, "Why is it here?"),
      element("p", null, stays),
      element("p", null, ...[this.wouldGo(said)].flat()),
      element("h3", null, "Where could it be?"),
      element("p", null, others.length ? `${plural(said.fits - (said.nodes.includes(said.node) ? 1 : 0), "other node")} would take it${said.fits > said.nodes.length ? ", such as" : ""}:` : "No other node would take it."),
      others.length ? element("p.names", null, ...others.flatMap((name) => [this.nodeLink(name), " "])) : null,
      ...whyNot("Why not on the others?", refused),
    ];
  }

  waitingAnswer(said) {
    return [
      element("h3", null, "Why does it wait?"),
      element("p", null, ...(said.would ? ["There is room for it: it would go to ", this.nodeLink(said.would), ", and has not been placed yet."] : ["No node that exists would take it."])),
      said.nodes.length ? element("h3", null, "Where could it be?") : null,
      said.nodes.length ? element("p", null, `${plural(said.fits, "node")} would take it${said.fits > said.nodes.length ? ", such as" : ""}:`) : null,
      said.nodes.length ? element("p.names", null, ...said.nodes.flatMap((name) => [this.nodeLink(name), " "])) : null,
      ...whyNot(said.would ? "Why not on the others?" : "Why does none take it?", said.refusals.filter((refusal) => refusal.what === "nodes" || !said.would)),
    ];
  }

  wouldGo(said) {
    if (said.would === said.node) return "If it were placed anew now, it would come to the same node.";
    if (!said.would) return "If it were placed anew now, no node that exists would take it.";
    return ["If it were placed anew now, it would go to ", this.nodeLink(said.would), "."];
  }

  // -- a pool

  pool(name) {
    const { planned } = this.page;
    const { fleet } = this.page.live;
    const known = name === "no pool" ? "" : name;
    const nodes = [...this.page.live.fleet.nodes.values()].filter((node) => node.pool === known);
    const rules = fleet.pools.find((pool) => pool.name === known);
    const sum = totals(nodes);
    const goes = nodes.filter((node) => (planned.outcome(node) || "keep") !== "keep");
    this.frame(
      known || "Nodes without a pool",
      element("div.totals.three", null, card("Price", money(sum.known ? sum.price : null), perMonth(sum.known ? sum.price : null)), card("Nodes", number(sum.nodes), planned.answer ? `${number(goes.length)} go in the plan` : ""), card("Pods", number(sum.pods), meter("CPU", sum.askedCpu, sum.cpu))),
      rules ? this.poolRules(rules) : element("p.quiet", null, "It has no NodePool: a node group, or nodes of nobody."),
      element("h3", null, "Types and zones"),
      this.counted(nodes, "type"),
      this.counted(nodes, "zone"),
      planned.answer ? element("h3", null, "Why its nodes stay") : null,
      planned.answer ? this.poolReasons(nodes) : null
    );
  }

  poolRules(rules) {
    return facts([
      ["Consolidation", `${rules.policy}, after ${rules.consolidateAfter}${rules.gracePeriod ? `, grace period ${rules.gracePeriod}` : ""}`],
      ["Budgets", rules.budgets.join("; ") || "none"],
      rules.ownBudgets ? ["Karpool's budgets", rules.ownBudgets] : null,
      ["Weight", String(rules.weight)],
      ["Limits", Object.entries(rules.limits).map(([key, value]) => `${key} ${value}`).join(", ") || "none"],
      ["Requirements", rules.requirements.join("; ") || "none"],
      rules.paused !== null ? ["Paused", rules.paused || "yes"] : null,
      rules.unreadable ? ["Cannot be read", rules.unreadable] : null,
    ].filter(Boolean));
  }

  counted(nodes, key) {
    return table(
      `Nodes by ${key}`,
      [
        { words: spaced(key[0].toUpperCase() + key.slice(1)), cell: ([value]) => value },
        { words: "Nodes", number: true, cell: ([, count]) => number(count) },
        { words: "$/h", number: true, cell: ([value]) => price(totals(nodes.filter((node) => (node[key] || "?") === value))) },
      ],
      counts(nodes, key)
    );
  }

  poolReasons(nodes) {
    const found = new Map();
    for (const node of nodes) {
      const verdict = this.page.planned.verdicts.get(node.name);
      if (!verdict || verdict.verdict !== "keep") continue;
      for (const code of new Set(verdict.reasons.map((reason) => reason.code))) found.set(code, (found.get(code) || []).concat(node));
    }
    return table(
      "Why its nodes stay",
      [
        { words: "Reason", cell: ([code]) => code },
        { words: "Nodes", number: true, cell: ([, own]) => number(own.length) },
        { words: "For example", cell: ([, own]) => [this.link({ node: own[0] }, own[0].name)] },
      ],
      [...found].sort((a, b) => b[1].length - a[1].length).slice(0, NODES_SHOWN)
    );
  }
}

function facts(entries) {
  return element("dl.facts-list", null, ...entries.flatMap(([label, value]) => [element("dt", null, label), element("dd", null, value)]));
}

function meterLine(node, key, words) {
  return element("span", null, meter("", node.asked[key], node[key]), ` ${words(node.asked[key])} of ${words(node[key])} asked for`);
}

/* Who refuses a pod, and why: existing nodes by number, and what would make new ones by name. */
function whyNot(title, refusals) {
  if (!refusals.length) return [];
  const who = (refusal) => (refusal.what === "nodes" ? plural(refusal.count, "node") : refusal.what);
  return [element("h3", null, title), element("ul.plain", null, ...refusals.map((refusal) => element("li", null, element("b", null, who(refusal) + " "), refusal.detail)))];
}

function labels(own) {
  const entries = Object.entries(own).sort();
  if (!entries.length) return null;
  return element("details.rules", null, element("summary", null, plural(entries.length, "label")), element("ul.plain", null, ...entries.map(([key, value]) => element("li", null, element("bdi", null, `${key}=${value}`)))));
}
