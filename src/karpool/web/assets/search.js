/* What is looked for: words, and `pool:web ns:shop workload:cart reason:Pdb type:m6i zone:a node:x pod:y label:team=a`. */

export const NO_POOL = "none"; /* what nodes without a pool are found by */

const KEYS = {
  pool: (node) => [node.pool || NO_POOL],
  type: (node) => [node.type],
  zone: (node) => [node.zone],
  capacity: (node) => [node.capacity],
  status: (node) => [node.status],
  node: (node) => [node.name],
};
const POD_KEYS = { pod: "name", ns: "namespace", namespace: "namespace", workload: "workload" };

/* What fits into the field of a phone, and all of it. */
export const SHORT_HINT = "pool: ns: label:key=value, or any word";
export const HINT = "pool: ns: workload: reason: type: zone: status: label:key=value, or any word";

/* A function that says of a node whether it is wanted; `reasonsOf` gives codes of why it stays, if they are known;
   `namespaces`: labels of namespaces by name. */
export function matcher(text, reasonsOf, namespaces) {
  const terms = text.trim().split(/\s+/).filter(Boolean).map((word) => term(word, reasonsOf, namespaces));
  return terms.length ? (node) => terms.every((wanted) => wanted(node)) : null;
}

function term(word, reasonsOf, namespaces) {
  const colon = word.indexOf(":");
  const key = colon > 0 ? word.slice(0, colon).toLowerCase() : "";
  const value = word.slice(colon + 1).toLowerCase();
  if (key === "label") return labelled(value, namespaces);
  if (key === "reason") return (node) => reasonsOf(node).some((code) => holds(code, value));
  if (key in KEYS) return (node) => KEYS[key](node).some((text) => matches(text, value));
  if (key in POD_KEYS) return withPods((pod) => matches(pod[POD_KEYS[key]], value));
  const wanted = word.toLowerCase();
  const pods = withPods((pod) => holds(pod.name, wanted) || holds(pod.workload, wanted));
  return (node) => [node.name, node.pool, node.type, node.zone].some((text) => holds(text, wanted)) || pods(node);
}

/* A label that a pod lacks is that of its namespace, as where costs are shared by label. */
function labelled(text, namespaces) {
  const equals = text.indexOf("=");
  const key = equals < 0 ? text : text.slice(0, equals);
  const value = equals < 0 ? null : text.slice(equals + 1);
  const named = (labels) => Object.entries(labels || {}).find(([name]) => name.toLowerCase() === key);
  const has = (label) => label !== undefined && (value === null || label[1].toLowerCase() === value);
  const inherited = new Map([...namespaces].map(([name, labels]) => [name, named(labels)]));
  return (node) => has(named(node.labels)) || [...node.pods].some((pod) => has(named(pod.labels) || inherited.get(pod.namespace)));
}

function withPods(wanted) {
  return (node) => {
    for (const pod of node.pods) if (wanted(pod)) return true;
    return false;
  };
}

/* "web" finds the pool web and not web-2, "web*" both; quotes are not needed, names have no spaces. */
function matches(text, wanted) {
  const own = (text || "").toLowerCase();
  if (wanted.endsWith("*")) return own.startsWith(wanted.slice(0, -1));
  return own === wanted || own.split(/[ /]/).includes(wanted) || own.endsWith("/" + wanted) || own.endsWith(" " + wanted);
}

function holds(text, wanted) {
  return (text || "").toLowerCase().includes(wanted);
}
