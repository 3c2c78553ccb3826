/* The knobs of the page, and what they ask the engine. */

const AS_IS = ["", "as it is"];
const each = (...values) => () => [AS_IS, ...values.map((value) => (Array.isArray(value) ? value : [value, value]))];

export const KNOBS = [
  {
    title: "Pools",
    knobs: [
      { key: "pool", words: "Which", options: ({ pools }) => [["", "all NodePools"], ...pools.map((name) => [name, name])] },
      { key: "budgets", words: "Budgets off", kind: "switch" },
      { key: "after", words: "consolidateAfter", options: each("0s", "1m", "5m", "15m", "1h", "Never") },
      { key: "grace", words: "Grace period", options: each(["Never", "none"], "5m", "15m", "1h", "4h") },
      { key: "policy", words: "Consolidate", options: each("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced") },
      { key: "balanced", words: "k of Balanced", kind: "number", min: "0", step: "0.5", hint: "2" },
      { key: "least", words: "Minimum savings", kind: "text", hint: "0.05 or 5%" },
      { key: "weight", words: "Weight", kind: "number", min: "0", max: "100", step: "1" },
    ],
  },
  {
    title: "Machines",
    knobs: [
      { key: "add", words: "Also allow types", kind: "text", hint: "m7g.*, c7g.2xlarge" },
      { key: "only", words: "Only these types", kind: "text", hint: "m6i.*, m7i.*" },
      { key: "forbid", words: "Forbid types", kind: "text", hint: "t3.*" },
      { key: "any", words: "Allow every machine", kind: "switch" },
    ],
  },
  {
    title: "Decisions",
    knobs: [
      { key: "fee", words: "Fee for each node, $/h", kind: "number", min: "0", step: "0.01" },
      { key: "eviction", words: "Price of an eviction, $/h", kind: "number", min: "0", step: "0.001" },
      { key: "spot", words: "Spot to spot", options: each(["on", "on"], ["off", "off"]) },
      { key: "partition", words: "Combine nodes", options: each(["none", "any"], ["pool", "of one pool"], ["auto", "of equal pools"]) },
      { key: "order", words: "Order", options: each(["cost", "least disruption"], ["ratio", "most saved for it"]) },
      { key: "weights", words: "Weights", options: each("prefer", "strict") },
    ],
  },
  {
    title: "Pods",
    knobs: [
      { key: "disturb", words: "Lift do-not-disrupt of", options: ({ namespaces, protectedWorkloads }) => [["", "nobody"], ["*", "all pods"], ...namespaces.map((name) => [name, `namespace ${name}`]), ...protectedWorkloads.map((name) => ["workload " + name, name])] },
      { key: "pdb", words: "Without PDB", kind: "text", hint: "namespace/name", list: "pdbs" },
      { key: "workload", words: "Requests of", options: ({ workloads }) => [["", "nobody"], ...workloads.map((name) => [name, name])] },
      { key: "cpu", words: "CPU, times", kind: "number", min: "0.01", max: "100", step: "0.05", hint: "1" },
      { key: "memory", words: "Memory, times", kind: "number", min: "0.01", max: "100", step: "0.05", hint: "1" },
    ],
  },
];

/* Whose pods: everybody's, those of a workload, or those of a namespace. */
function whose(text) {
  if (text === "*") return {};
  return text.startsWith("workload ") ? { workload: text.slice("workload ".length) } : { namespace: text };
}

/* What the values of the form ask: a list of knobs. */
export function knobsOf(values) {
  const pool = values.pool ? { nodePool: values.pool } : {};
  const knobs = [];
  const add = (knob, fields) => knobs.push({ knob, ...fields });
  const amount = (text) => (text === undefined || text === "" || Number.isNaN(Number(text)) ? null : Number(text));
  const names = (text) => (text || "").split(/[\s,]+/).filter(Boolean);
  if (values.budgets) add("budgetsOff", pool);
  if (values.after) add("consolidateAfter", { ...pool, value: values.after });
  if (values.grace) add("gracePeriod", { ...pool, value: values.grace });
  if (values.policy) add("consolidationPolicy", { ...pool, value: values.policy });
  if (amount(values.balanced) !== null) add("balancedK", { ...pool, value: String(amount(values.balanced)) });
  if (values.least) add("minimumSavings", { ...pool, value: values.least });
  if (amount(values.weight) !== null) add("weight", { ...pool, value: amount(values.weight) });
  if (names(values.add).length) add("addTypes", { ...pool, instanceTypes: names(values.add) });
  if (names(values.only).length) add("onlyTypes", { ...pool, instanceTypes: names(values.only) });
  if (names(values.forbid).length) add("forbidTypes", { ...pool, instanceTypes: names(values.forbid) });
  if (values.any) add("anyMachine", pool);
  if (amount(values.fee) !== null) add("nodeFee", { value: amount(values.fee) });
  if (amount(values.eviction) !== null) add("evictionPrice", { value: amount(values.eviction) });
  if (values.spot) add("spotToSpot", { value: values.spot === "on" });
  if (values.partition) add("partition", { value: values.partition });
  if (values.order) add("order", { value: values.order });
  if (values.weights) add("weights", { value: values.weights });
  if (values.disturb) add("doNotDisruptOff", whose(values.disturb));
  if (values.pdb) add("pdbOff", { name: values.pdb.trim() });
  const factors = Object.fromEntries(["cpu", "memory"].map((key) => [key, amount(values[key])]).filter(([, value]) => value !== null));
  if (values.workload && Object.keys(factors).length) add("requests", { workload: values.workload, ...factors });
  return knobs;
}
