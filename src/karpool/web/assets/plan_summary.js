/* What a plan comes to, beside its totals: sentences, pods that wait, and node groups. */

import { table } from "./controls.js";

const WAITING_SHOWN = 10;

/* How far above the least possible price a plan ends. */
export function aboveLeast({ distancePercent }) {
  if (distancePercent === null) return "how far above it the plan ends is not known";
  const above = distancePercent.toFixed(1);
  return Number(above) ? `the plan ends ${above} % above` : "the plan is the least possible";
}

/* What `karpool plan` says of it below the totals, and pods that no node can take. */
export function summary({ plan, words }) {
  const waiting = plan.unschedulable.slice(0, WAITING_SHOWN).map(({ pod, reasons }) => element("li", null, element("b", null, element("bdi", null, pod)), " ", element("span.quiet", null, reasons.map((reason) => reason.message).join("; "))));
  const rest = plan.unschedulable.length - waiting.length;
  if (rest > 0) waiting.push(element("li", null, `and ${plural(rest, "more pod")}`));
  if (!words.length && !waiting.length) return null;
  return element(
    "section.card.said-of-plan",
    { "aria-label": "What the plan comes to" },
    ...words.map((text) => element("p", null, text)),
    waiting.length ? element("h2", null, `${plural(plan.unschedulable.length, "pod")} that no node can take`) : "",
    waiting.length ? element("ul.plain", null, ...waiting) : ""
  );
}

/* What becomes of node groups, where there are any. */
export function groupsTable(plan) {
  if (!plan.groups.length) return "";
  const prices = alike(plan.groups.flatMap((group) => [group.priceBefore, group.priceAfter]));
  const size = (nodes, price) => `${number(nodes)} · ${prices(price)}`;
  return element(
    "section.card",
    { "aria-labelledby": "groups-title" },
    element("h2", { id: "groups-title" }, "Node groups"),
    table(
      "Node groups",
      [
        { words: "Group", cell: (group) => element("bdi", null, group.name) },
        { words: "Before", number: true, cell: (group) => size(group.before, group.priceBefore) },
        { words: "After", number: true, cell: (group) => size(group.after, group.priceAfter) },
        { words: "What it is", cell: (group) => [group.title, group.instanceTypes.join(", "), group.capacityTypes.join(", "), group.zones.join(", ")].filter(Boolean).join(", ") },
      ],
      plan.groups
    )
  );
}
