/* Who pays: what the cluster costs each namespace, workload or team, before the plan and after it. */

import { ask } from "./live.js";
import { card, choice, download, labelField, moment, nobodyHas, perMonth, table, working } from "./controls.js";
import { commonLabel } from "./blockers_view.js";

const GROUPS = [["namespace", "Namespaces"], ["workload", "Workloads"], ["label", "By label"]];
const SHOWN = 200;

export class CostsView {
  constructor(root, page, place) {
    this.root = root;
    this.page = page;
    this.by = GROUPS.some(([key]) => key === place.by) ? place.by : "namespace";
    this.label = place.label || page.ownerLabel || commonLabel(page.live.fleet);
    this.body = element("div.view");
    this.labelInput = labelField("Label to group by", this.label, () => page.live.fleet, (label) => this.take(label));
    root.replaceChildren(element("section.card.controls", { "aria-label": "Group by" }, choice("Group by", GROUPS, this.by, (key) => ((this.by = key), this.remember(), this.ask())), this.labelInput), this.body);
    page.planned.want();
    this.ask();
  }

  take(label) {
    this.label = this.page.ownerLabel = label;
    this.labelInput.firstChild.value = label;
    this.remember();
    if (this.by === "label") this.ask();
  }

  remember() {
    this.page.remember({ by: this.by === "namespace" ? "" : this.by, label: this.by === "label" ? this.label : "" }, true);
  }

  close() {
    if (this.asking) this.asking.abort();
  }

  changed() {}

  refresh() {
    const time = this.page.planned.answer && this.page.planned.answer.plan.time;
    if (time && this.time && time !== this.time) this.ask();
  }

  async ask() {
    if (this.asking) this.asking.abort();
    const asking = (this.asking = new AbortController());
    this.labelInput.hidden = this.by !== "label";
    const by = this.by === "label" ? `label=${this.label}` : this.by;
    const { answer } = this.page.planned;
    const busy = working("Planning, to know who pays after the plan …");
    if (!this.body.childElementCount) this.body.replaceChildren(element("section.card", null, busy));
    try {
      const said = await ask(this.page.live, "costs", { by, plan: answer ? answer.plan.time : "" }, { progress: busy.progress, signal: asking.signal });
      this.time = said.time;
      this.show(said.costs, said.time, said.csv);
    } catch (problem) {
      if (problem.name !== "AbortError") this.body.replaceChildren(element("section.card.problem", { role: "alert" }, problem.message));
    }
  }

  show(costs, time, csv) {
    const price = (part) => part.pricePerHour;
    const whole = costs.total.before.pricePerHour;
    const most = Math.max(1e-9, ...[...costs.groups, costs.idle].map((group) => Math.max(price(group.before) || 0, price(group.after) || 0)));
    const saved = less(costs.total);
    const rows = [...costs.groups.slice(0, SHOWN), ...[costs.headroom, costs.system, costs.idle].filter((group) => group.before.pricePerHour || group.after.pricePerHour).map((group) => ({ ...group, apart: true })), { ...costs.total, whole: true }];
    const rest = costs.groups.length - SHOWN;
    const cost = alike(rows.flatMap((group) => [price(group.before), price(group.after)]));
    const changes = alike(rows.map(less));
    const totals = alike([costs.total.before.pricePerHour, saved]);
    const idle = alike([price(costs.idle.before), price(costs.idle.after)]);
    this.body.replaceChildren(
      element(
        "section.totals.four",
        { "aria-label": "Who pays, in short" },
        card("The cluster", totals(costs.total.before.pricePerHour), [perMonth(costs.total.before.pricePerHour), costs.total.before.unpriced ? `; ${plural(costs.total.before.unpriced, "node")} of unknown price not counted` : ""], ".hero"),
        card("Idle", percent(part(price(costs.idle.before), whole)), `${idle(price(costs.idle.before))} that no pod asks for`),
        card("Idle after the plan", percent(part(price(costs.idle.after), price(costs.total.after))), idle(price(costs.idle.after))),
        card("The plan saves", totals(saved), perMonth(saved))
      ),
      element(
        "section.card",
        { "aria-labelledby": "costs-title" },
        element("div.card-head", null, element("h2", { id: "costs-title" }, "Who pays"), element("button.more", { type: "button", onclick: () => download("costs.csv", csv, "text/csv") }, "Save as CSV")),
        element("p.quiet", null, `Each node's price is shared by what pods ask for; what nobody asks for is idle. Planned as of ${moment(time)}.`),
        costs.by === "label" && costs.groups.every((group) => !group.name) ? nobodyHas(costs.label, this.page.live.fleet, (label) => this.take(label)) : "",
        table(
          "Who pays",
          [
            { words: heading(costs), cell: (group) => (group.apart ? element("span.quiet", null, group.name) : group.whole ? element("b", null, "in total") : element("bdi", null, group.name || "without it")) },
            { words: "Pods", number: true, cell: (group) => (group.before.pods ? number(group.before.pods) : "") },
            { words: "Today", number: true, cell: (group) => [known(group.before, cost), group.whole ? "" : bar(group.before, most, group.apart ? "c10" : "c0")] },
            { words: "Share", number: true, cell: (group) => percent(part(price(group.before), whole)) },
            { words: "After the plan", number: true, cell: (group) => [known(group.after, cost), group.whole ? "" : bar(group.after, most, group.apart ? "c10" : "c2")] },
            { words: "Change", number: true, cell: (group) => change(group, changes) },
            { words: "A month, today", number: true, cell: (group) => aMonth(group.before) },
            { words: "After the plan, a month", number: true, cell: (group) => aMonth(group.after) },
            { words: "Change, a month", number: true, cell: (group) => monthlyChange(group) },
          ],
          rows,
          (group) => ({ kind: group.apart ? "apart" : group.whole ? "whole" : "" })
        ),
        rest > 0 ? element("p.quiet", null, `and ${number(rest)} more that pay less; karpool plan --by ${costs.by === "label" ? `label=${costs.label}` : costs.by} has them all`) : ""
      )
    );
  }
}

function heading(costs) {
  return costs.by === "label" ? costs.label : spaced(costs.by[0].toUpperCase() + costs.by.slice(1));
}

/* What is known of it; of the rest it is only said that there is more. */
function known(part, words) {
  return words(part.pricePerHour) + (part.unpriced && part.pricePerHour !== null ? " + ?" : "");
}

/* By how much less a group pays after the plan; null where that is not known. */
function less(group) {
  const [before, after] = [group.before, group.after];
  return before.pricePerHour === null || after.pricePerHour === null || before.unpriced !== after.unpriced ? null : before.pricePerHour - after.pricePerHour;
}

function part(price, whole) {
  if (price === null || whole === null) return NaN;
  return whole ? price / whole : 0;
}

function aMonth(part) {
  return known(part, (price) => perMonth(price).replace(" a month", ""));
}

function change(group, cost) {
  const saved = less(group);
  if (saved === null) return "?";
  if (Math.abs(saved) < 5e-5) return "0";
  const words = cost(Math.abs(saved));
  return element("span" + (saved > 0 ? ".saved" : ""), null, words.startsWith("<") ? `${words} ${saved > 0 ? "less" : "more"}` : (saved > 0 ? "−" : "+") + words);
}

function monthlyChange(group) {
  const saved = less(group);
  if (saved === null) return "?";
  const dollars = Math.round(Math.abs(saved) * 730);
  return dollars ? `${saved > 0 ? "−" : "+"}${number(dollars)} $` : "0 $";
}

function bar(part, most, kind) {
  const made = element("span.type-bar", { "aria-hidden": "true" }, element("i." + kind));
  made.firstChild.style.width = (100 * (part.pricePerHour || 0)) / most + "%";
  return made;
}
