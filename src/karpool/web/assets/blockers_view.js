/* What keeps the most money where it is, and whom to ask. */

import { ask } from "./live.js";
import { AsOf, afterFullPlan, card, choice, download, labelField, longTable, nobodyHas, perMonth, working } from "./controls.js";
import { podLabels } from "./fleet.js";

const SHOWN = 25;
const GROUPS = [["", "Each alone"], ["namespace", "By namespace"], ["workload", "By workload"], ["label", "By label"]];

export class BlockersView {
  constructor(root, page, place) {
    this.root = root;
    this.page = page;
    this.by = GROUPS.some(([key]) => key === place.by) ? place.by : "";
    this.label = place.label || page.ownerLabel || commonLabel(page.live.fleet);
    this.asOf = new AsOf(page.live, () => this.ask(true));
    this.body = element("div.view");
    this.labelInput = labelField("Label that names the owner", this.label, () => page.live.fleet, (label) => this.take(label));
    root.replaceChildren(
      element("section.card.controls", { "aria-label": "Group by" }, choice("Lift together", GROUPS, this.by, (key) => ((this.by = key), this.remember(), this.ask())), this.labelInput),
      this.body
    );
    this.ask();
  }

  take(label) {
    this.label = this.page.ownerLabel = label;
    this.labelInput.firstChild.value = label;
    this.remember();
    if (this.by === "label") this.ask();
  }

  remember() {
    this.page.remember({ by: this.by, label: this.by === "label" ? this.label : "" }, true);
  }

  close() {
    if (this.asking) this.asking.abort();
  }

  changed() {
    this.asOf.write();
  }

  refresh() {}

  /* `again`: of the cluster of now, though an answer of a minute ago is kept. */
  async ask(again = false) {
    if (this.asking) this.asking.abort();
    const asking = (this.asking = new AbortController());
    this.labelInput.hidden = this.by !== "label";
    const by = this.by === "label" ? `label=${this.label}` : this.by;
    this.asOf.asked();
    const query = { ...(by ? { by } : {}), ...(again ? { since: this.page.live.number } : {}) };
    const busy = working("Looking for what holds nodes …");
    this.body.replaceChildren(element("section.card", null, busy, element("p.quiet", null, "The engine plans again with each blocker lifted, one after the other. That takes seconds for hundreds of nodes, and minutes for thousands; what is known is shown at once.")));
    try {
      const answer = await ask(this.page.live, "blockers", query, { progress: busy.progress, foreseen: ({ blockers }) => this.show(blockers, "", busy), signal: asking.signal });
      this.show(answer.blockers, answer.csv);
      this.asOf.answered(answer.blockers.time);
    } catch (problem) {
      if (problem.name !== "AbortError") this.body.replaceChildren(element("section.card.problem", { role: "alert" }, problem.message));
    }
  }

  /* `csv` comes with the complete answer; before that, amounts that are not known yet say how much they are at most. */
  show(found, csv, busy = null) {
    const lifts = found.blockers;
    const today = alike([found.today.priceAfter, found.today.priceBefore]);
    const worth = lifts.filter((lift) => lift.atLeast > 0);
    const best = worth[0];
    const most = Math.max(1e-9, ...worth.map((lift) => lift.atLeast));
    const held = lifts.length;
    const cost = alike([found.today.priceBefore, ...lifts.flatMap((lift) => (lift.computed ? [lift.savingsPerHour] : [lift.atLeast || null, lift.atMost]))]);
    this.body.replaceChildren(
      element(
        "section.totals.four",
        { "aria-label": "Blockers in short" },
        hero(found, best, busy, cost),
        card("Blockers", number(held), found.today.priceBefore === null ? "of unknown worth" : `${number(worth.length)} worth something alone${busy ? " so far" : ""}`),
        card("Nodes held", number(found.held), `of ${plural(found.today.nodesAfter, "node")} after today's plan`),
        card("After today's plan", today(found.today.priceAfter), `now ${today(found.today.priceBefore)}${found.today.unpricedNodes ? `; ${plural(found.today.unpricedNodes, "node")} of unknown price not counted` : ""}`)
      ),
      element(
        "section.card",
        { "aria-labelledby": "blockers-title" },
        element("div.card-head", null, element("h2", { id: "blockers-title" }, this.by ? "What lifting all of a group is worth" : "What lifting each alone is worth"), lifts.length && csv ? element("button.more", { type: "button", onclick: () => download("blockers.csv", csv, "text/csv") }, "Save as CSV") : null),
        element("p.quiet", null, `Amounts do not add up: a node may have several blockers. ${found.search === found.todaySearch ? `Planned with search ${found.search}.` : `Today's plan: search ${found.todaySearch}; with each lifted: search ${found.search}.`}${afterFullPlan(this.page.planned, found.today.priceAfter)}`),
        this.asOf.root,
        busy,
        this.by === "label" && lifts.length && lifts.every((lift) => !lift.name) ? this.unnamed() : "",
        lifts.length ? this.table(lifts, most, cost) : element("p", null, "Nothing holds a node after today's plan.")
      )
    );
  }

  unnamed() {
    const { fleet } = this.page.live;
    if (podLabels(fleet).includes(this.label)) return element("p.notice", { role: "status" }, "No pod for which nodes are held has the label ", element("bdi", null, this.label), ", so each blocker is lifted alone.");
    return nobodyHas(this.label, fleet, (label) => this.take(label));
  }

  table(lifts, most, cost) {
    return longTable(
      "Blockers, those that are worth most first",
      [
        { words: "What", cell: (lift) => what(lift) },
        { words: "Worth", number: true, cell: (lift) => worthOf(lift, most, cost) },
        { words: "A month", number: true, cell: (lift) => (lift.computed ? `${number(Math.round(lift.savingsPerMonth))} $` : "") },
        { words: "Nodes held", number: true, cell: (lift) => `${number(lift.nodes.length)}${lift.alone === lift.nodes.length ? "" : ` (${number(lift.alone)} by nothing else)`}` },
        { words: "Nodes then", number: true, cell: (lift) => (lift.nodesFewer === null ? "" : fewer(lift)) },
        { words: "More evictions", number: true, cell: (lift) => (lift.evictions === null ? "" : signed(lift.evictions)) },
        { words: "What lifts it", cell: (lift) => this.how(lift) },
      ],
      lifts,
      SHOWN
    );
  }

  how(lift) {
    if (!lift.lift.length) return element("span.quiet", null, "nothing that is known here");
    const shown = lift.lift.slice(0, 3).map((words) => element("div", null, words));
    if (lift.lift.length > 3) shown.push(element("div.quiet", null, `and ${number(lift.lift.length - 3)} more`));
    const knobs = JSON.stringify(lift.knobs);
    if (knobs.length < 5000 && lift.atMost !== 0) shown.push(element("a.link", { href: "#what-if?" + new URLSearchParams({ knobs }) }, "Try it"));
    return shown;
  }
}

function what(lift) {
  const first = lift.blockers[0];
  const codes = [...new Set(lift.blockers.map((blocker) => blocker.code))];
  const namespaces = [...new Set(lift.blockers.flatMap((blocker) => blocker.namespaces))];
  const workloads = [...new Set(lift.blockers.flatMap((blocker) => blocker.workloads))];
  const more = [];
  if (lift.name) more.push(element("div.quiet", null, codes.join(", ") + ` (${plural(lift.blockers.length, "blocker")})`));
  else more.push(element("div.quiet", null, `${first.code}: ${first.message.startsWith(first.object + " ") ? first.message.slice(first.object.length + 1) : first.message}`));
  const owners = [...workloads.filter((name) => name !== first.object).slice(0, 3), ...(workloads.length ? [] : namespaces.slice(0, 3))];
  if (owners.length) more.push(element("div.quiet", null, `for ${owners.join(", ")}${workloads.length > 3 ? ` and ${number(workloads.length - 3)} more` : ""}`));
  return [element("b", null, element("bdi", null, calledOf(lift))), ...more];
}

/* A node that nobody manages has no object to blame. */
function calledOf(lift) {
  const [first] = lift.blockers;
  return lift.name || first.object || (first.code === "NotManaged" ? "nodes without a pool" : spaced(first.code));
}

function hero({ today }, best, busy, cost) {
  const title = busy && best ? "Worth most so far" : "Worth most";
  if (best) return card(title, (best.computed ? "" : "≥ ") + cost(best.atLeast), [perMonth(best.atLeast), element("br"), calledOf(best)], ".hero");
  if (today.nodesBefore && today.priceBefore === null) return card(title, "?", "What nodes cost is not known, so nobody can say what lifting anything is worth.", ".hero");
  if (busy) return card(title, "…", "being worked out", ".hero");
  return card(title, "nothing", `no single blocker keeps ${today.unpricedNodes ? "known " : ""}money where it is`, ".hero");
}

function signed(count) {
  return (count > 0 ? "+" : count < 0 ? "−" : "") + number(Math.abs(count));
}

/* More nodes that cost less together are cheaper ones. */
function fewer({ nodesFewer, atLeast }) {
  if (!nodesFewer) return "as many";
  return nodesFewer > 0 ? `${number(nodesFewer)} fewer` : `${number(-nodesFewer)} more${atLeast > 0 ? ", smaller" : ""}`;
}

/* What is only known to be at least so much, and at most so much, says both. */
function worthOf(lift, most, cost) {
  const bar = element("span.type-bar", { "aria-hidden": "true" }, element("i.c2"));
  bar.firstChild.style.width = (100 * (lift.atLeast || 0)) / most + "%";
  if (lift.computed || lift.atMost === 0) return [lift.savingsPerHour > 0 ? element("b", null, cost(lift.savingsPerHour)) : "0 alone", bar];
  const upTo = lift.atMost === null ? "?" : cost(lift.atMost);
  if (lift.search === null) return element("span.quiet", null, lift.atMost === null ? "?" : `≤ ${upTo}`);
  return [element("span", null, `≥ ${lift.atLeast > 0 ? cost(lift.atLeast) : "0"}, ≤ ${upTo}`), element("div.quiet", null, "not looked for longer yet"), bar];
}

/* The label that most pods have of those that usually name a team. */
export function commonLabel(fleet) {
  const usual = ["team", "owner", "app.kubernetes.io/part-of", "squad", "cost-center", "app.kubernetes.io/name", "app"];
  const labels = new Set(fleet.labels.flatMap((own) => Object.keys(own || {})));
  return usual.find((key) => labels.has(key)) || "team";
}
