/* A cluster in the page's memory: nodes with their pods, from rows, kept up to date by changes. */

export const DAEMON = 1;
export const UNDISTURBED = 2;
export const LEAVING = 4;
const NO_LABELS = {};

export class Fleet {
  constructor() {
    this.nodes = new Map();
    this.pods = new Map();
    this.byName = new Map();
    this.podsByName = new Map();
    this.pools = [];
    this.namespaces = new Map(); /* name -> its labels */
    this.labels = [];
    this.workloads = [];
    this.homeless = new Map(); /* number of a node that is not known (yet) -> its pods */
    this.pending = new Set();
  }

  /* All of a document: nodes, pools and tables, and pods where it has them. */
  read(document) {
    this.nodeFields = document.nodeFields;
    this.podFields = document.podFields;
    this.apply(document);
  }

  /* New and changed rows, and numbers of those that are gone; returns what happened, for those who draw it. */
  apply(change) {
    fill(this.labels, change.labels);
    fill(this.workloads, change.workloads);
    if (change.pools) this.pools = change.pools;
    for (const [name, own] of Object.entries(change.namespaces || {})) {
      if (own) this.namespaces.set(name, own);
      else this.namespaces.delete(name);
    }
    const happened = { nodes: new Set(), came: [], gone: [], moved: [], landed: [], left: [] };
    for (const number of change.gonePods || []) this.removePod(number, happened);
    for (const number of change.goneNodes || []) this.removeNode(number, happened);
    for (const row of change.nodes || []) this.putNode(row, happened);
    for (const row of change.pods || []) this.putPod(row, happened);
    return happened;
  }

  putNode(row, happened) {
    const values = named(this.nodeFields, row);
    values.labels = this.labels[values.labels] || {};
    const known = this.nodes.get(values.id);
    if (known) {
      Object.assign(known, values);
      happened.nodes.add(known);
      return;
    }
    const node = { ...values, pods: new Set(), daemons: 0, asked: { cpu: 0, memory: 0 } };
    this.nodes.set(node.id, node);
    this.byName.set(node.name, node);
    for (const pod of this.homeless.get(node.id) || []) settle(node, pod);
    this.homeless.delete(node.id);
    happened.nodes.add(node);
    happened.came.push(node);
  }

  removeNode(number, happened) {
    const node = this.nodes.get(number);
    if (!node) return;
    this.nodes.delete(number);
    if (this.byName.get(node.name) === node) this.byName.delete(node.name);
    if (node.pods.size) this.homeless.set(number, node.pods);
    happened.gone.push(node);
  }

  putPod(row, happened) {
    const known = this.pods.get(row[0]);
    const from = known && known.node;
    if (known) this.leave(known);
    const values = named(this.podFields, row);
    const slash = values.name.indexOf("/");
    const pod = known || {};
    Object.assign(pod, values, {
      namespace: slash < 0 ? "" : values.name.slice(0, slash),
      workload: this.workloads[values.workload] || "",
      labels: this.labels[values.labels] || {},
      daemon: (values.flags & DAEMON) !== 0,
    });
    this.pods.set(pod.id, pod);
    this.podsByName.set(pod.name, pod);
    this.enter(pod);
    const node = this.nodes.get(pod.node);
    if (node) happened.nodes.add(node);
    if (from !== undefined && from !== pod.node) happened.moved.push(pod);
    if (node && from !== pod.node) happened.landed.push({ pod, node, from: this.nodes.get(from) || null });
  }

  removePod(number, happened) {
    const pod = this.pods.get(number);
    if (!pod) return;
    this.leave(pod);
    this.pods.delete(number);
    if (this.podsByName.get(pod.name) === pod) this.podsByName.delete(pod.name);
    const node = this.nodes.get(pod.node);
    if (node) happened.nodes.add(node);
    if (node) happened.left.push({ pod, node });
  }

  enter(pod) {
    if (!pod.node) {
      this.pending.add(pod);
      return;
    }
    const node = this.nodes.get(pod.node);
    if (node) settle(node, pod);
    else if (this.homeless.has(pod.node)) this.homeless.get(pod.node).add(pod);
    else this.homeless.set(pod.node, new Set([pod]));
  }

  leave(pod) {
    this.pending.delete(pod);
    const node = this.nodes.get(pod.node);
    if (node && node.pods.delete(pod)) {
      node.daemons -= pod.daemon ? 1 : 0;
      node.asked.cpu -= pod.cpu;
      node.asked.memory -= pod.memory;
    } else if (this.homeless.has(pod.node)) {
      this.homeless.get(pod.node).delete(pod);
    }
  }

  /* A pod to another node, or to none; for those who try something out. */
  move(pod, node) {
    this.leave(pod);
    pod.node = node ? node.id : 0;
    this.enter(pod);
  }
}

function settle(node, pod) {
  node.pods.add(pod);
  node.daemons += pod.daemon ? 1 : 0;
  node.asked.cpu += pod.cpu;
  node.asked.memory += pod.memory;
}

function fill(table, more) {
  if (!more) return;
  const [from, values] = more;
  for (let at = 0; at < values.length; at++) table[from + at] = values[at];
}

function named(fields, row) {
  const made = {};
  for (let at = 0; at < fields.length; at++) made[fields[at]] = row[at];
  return made;
}

/* Names as people sort them: 2 before 10. */
export const byName = (a, b) => collator.compare(a.name, b.name);
const collator = new Intl.Collator("en", { numeric: true });

/* The share of a node that its pods ask for: of CPU, of memory, or the larger of both. */
export function share(node, measure = "most") {
  if (measure !== "most") return node[measure] ? Math.max(0, node.asked[measure] / node[measure]) : 0;
  return Math.max(share(node, "cpu"), share(node, "memory"));
}

/* Nodes in numbers; an unknown price is counted apart, never as 0. */
export function totals(nodes) {
  const sum = { nodes: 0, pods: 0, daemons: 0, price: 0, unpriced: 0, cpu: 0, memory: 0, askedCpu: 0, askedMemory: 0 };
  for (const node of nodes) {
    sum.nodes += 1;
    sum.pods += node.pods.size;
    sum.daemons += node.daemons;
    if (node.price === null) sum.unpriced += 1;
    else sum.price += node.price;
    sum.cpu += node.cpu;
    sum.memory += node.memory;
    sum.askedCpu += node.asked.cpu;
    sum.askedMemory += node.asked.memory;
  }
  sum.known = sum.nodes === 0 || sum.unpriced < sum.nodes;
  return sum;
}

/* How many nodes have which value, the most frequent first. */
export function counts(nodes, key) {
  const found = new Map();
  for (const node of nodes) found.set(node[key] || "?", (found.get(node[key] || "?") || 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/* The labels that pods have, or their namespaces, for those who look for one. */
export function podLabels(fleet) {
  const sets = new Set();
  for (const pod of fleet.pods.values()) sets.add(pod.labels).add(fleet.namespaces.get(pod.namespace) || NO_LABELS);
  return [...new Set([...sets].flatMap((own) => Object.keys(own)))].sort();
}
