/* Who pays: what the cluster costs each namespace, workload or team, before the plan and after it. */

import { ask } from "./live.js";
import { card, choice, moment, perMonth, table, working } from "./controls.js";
import { commonLabel } from "./blockers_view.js";

const GROUPS = [["namespace", "Namespaces"], ["workload", "Workloads"], ["label", "By label"]];
const SHOWN = 200;

export class CostsView {
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.by = "namespace";
    this.label = page.ownerLabel || commonLabel(page.live.fleet);
    this.body = element("div.view");
    this.labelInput = element("input.search.short", { "aria-label": "Label to group by", value: this.label, spellcheck: "false" });
    this.labelInput.addEventListener("change", () => ((this.label = page.ownerLabel = this.labelInput.value.trim()), this.by === "label" && this.ask()));
    root.replaceChildren(element("section.card.controls", { "aria-label": "Group by" }, choice("Group by", GROUPS, this.by, (key) => ((this.by = key), this.ask())), this.labelInput), this.body);
    page.planned.want();
    this.ask();
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
      this.show(said.costs, said.time);
    } catch (problem) {
      if (problem.name !== "AbortError") this.body.replaceChildren(element("section.card.problem", { role: "alert" }, problem.message));
    }
  }

  show(costs, time) {
    const price = (part) => part.pricePerHour;
    const whole = costs.total.before.pricePerHour || 0;
    const most = Math.max(1e-9, ...[...costs.groups, costs.idle].map((group) => Math.max(price(group.before) || 0, price(group.after) || 0)));
    const saved = (costs.total.before.pricePerHour ?? 0) - (costs.total.after.pricePerHour ?? 0);
    const rows = [...costs.groups.slice(0, SHOWN), ...[costs.headroom, costs.system, costs.idle].filter((group) => group.before.pricePerHour || group.after.pricePerHour).map((group) => ({ ...group, apart: true }))];
    const rest = costs.groups.length - SHOWN;
    const cost = alike(rows.flatMap((group) => [price(group.before), price(group.after)]));
    const changes = alike(rows.map((group) => (price(group.before) === null || price(group.after) === null ? null : price(group.before) - price(group.after))));
    const totals = alike([costs.total.before.pricePerHour, saved]);
    const idle = alike([price(costs.idle.before), price(costs.idle.after)]);
    this.body.replaceChildren(
      element(
        "section.totals.four",
        { "aria-label": "Who pays, in short" },
        card("The cluster", totals(costs.total.before.pricePerHour), [perMonth(costs.total.before.pricePerHour), costs.total.before.unpriced ? `; ${plural(costs.total.before.unpriced, "node")} of unknown price not counted` : ""], ".hero"),
        card("Idle", percent((price(costs.idle.before) || 0) / whole), `${idle(price(costs.idle.before))} that no pod asks for`),
        card("Idle after the plan", percent((price(costs.idle.after) || 0) / (price(costs.total.after) || 1)), idle(price(costs.idle.after))),
        card("The plan saves", totals(saved), perMonth(saved))
      ),
      element(
        "section.card",
        { "aria-labelledby": "costs-title" },
        element("h2", { id: "costs-title" }, "Who pays"),
        element("p.quiet", null, `Each node's price is shared by what pods ask for; what nobody asks for is idle. Planned as of ${moment(time)}.`),
        table(
          "Who pays",
          [
            { words: heading(costs), cell: (group) => (group.apart ? element("span.quiet", null, group.name) : element("bdi", null, group.name || "without it")) },
            { words: "Pods", number: true, cell: (group) => (group.before.pods ? number(group.before.pods) : "") },
            { words: "Today", number: true, cell: (group) => [known(group.before, cost), bar(group.before, most, group.apart ? "c10" : "c0")] },
            { words: "Share", number: true, cell: (group) => percent((price(group.before) || 0) / whole) },
            { words: "After the plan", number: true, cell: (group) => [known(group.after, cost), bar(group.after, most, group.apart ? "c10" : "c2")] },
            { words: "Change", number: true, cell: (group) => change(group, changes) },
            { words: "A month, today", number: true, cell: (group) => perMonth(price(group.before)).replace(" a month", "") },
          ],
          rows,
          (group) => ({ kind: group.apart ? "apart" : "" })
        ),
        rest > 0 ? element("p.quiet", null, `and ${number(rest)} more that pay less; karpool plan --by ${costs.by === "label" ? `label=${costs.label}` : costs.by} has them all`) : ""
      )
    );
  }
}

function heading(costs) {
  return costs.by === "label" ? costs.label : spaced(costs.by[0].toUpperCase() + costs.by.slice(1));
}

function known(part, cost) {
  return cost(part.pricePerHour) + (part.unpriced ? ` and ${number(part.unpriced)} × ?` : "");
}

function change(group, cost) {
  const [before, after] = [group.before.pricePerHour, group.after.pricePerHour];
  if (before === null || after === null) return "?";
  const less = before - after;
  if (Math.abs(less) < 5e-5) return "0";
  return element("span" + (less > 0 ? ".saved" : ""), null, (less > 0 ? "−" : "+") + cost(Math.abs(less)));
}

function bar(part, most, kind) {
  const made = element("span.type-bar", { "aria-hidden": "true" }, element("i." + kind));
  made.firstChild.style.width = (100 * (part.pricePerHour || 0)) / most + "%";
  return made;
}
