/* Which colour stands for what; a colour is never all that says it. */

const OWN_COLOURS = 10;
const read = new Map();

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => read.clear());

/* The value of a custom property of the style sheet, for canvases. */
export function colour(name) {
  if (!read.has(name)) read.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return read.get(name);
}

/* The names that ask for most get a colour of their own, in this order; all others share one. */
export function ranked(pods, key) {
  const sums = new Map();
  for (const pod of pods) sums.set(pod[key], (sums.get(pod[key]) || 0) + pod.cpu + pod.memory / 4096);
  const names = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
  return new Map(names.map((name, place) => [name, Math.min(place, OWN_COLOURS)]));
}

export const OTHERS = OWN_COLOURS;

/* Five steps from nearly idle to full. */
export function heat(share) {
  return "--heat" + (share < 0.2 ? 0 : share < 0.4 ? 1 : share < 0.6 ? 2 : share < 0.8 ? 3 : 4);
}

export const HEAT_WORDS = ["under 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "over 80 %"];
const CAPACITY = { "on-demand": "--c0", spot: "--c2", reserved: "--c4" };
const OUTCOME = { keep: "--c0", delete: "--c1", replace: "--c3", "terminate-first": "--c3", reboot: "--c4", new: "--c6" };

export function capacityColour(node) {
  return CAPACITY[node.capacity] || "--c10";
}

export function outcomeColour(outcome) {
  return OUTCOME[outcome] || "--c10";
}

/* Which namespaces have which colour. */
export function namespaceLegend(ranks) {
  const own = [...ranks].filter(([, place]) => place < OTHERS).map(([name, place]) => ["c" + place, name || "?"]);
  const rest = ranks.size - own.length;
  if (rest) own.push(["c" + OTHERS, plural(rest, "other namespace")]);
  return [...own, ["c10.daemon", "striped: DaemonSet"]];
}
