"use strict";
/* The plan as the page uses it: pods and nodes as objects, who moves where, and which colour stands for what. */

const COLOURS = 10; /* as many as page.css defines */

function readModel() {
  const data = JSON.parse(byId("data").textContent);
  const pods = data.pods.map(([name, cpu, memory, workload, daemon]) => {
    const slash = name.indexOf("/");
    const namespace = slash < 0 ? "default" : name.slice(0, slash);
    return { name, namespace, cpu, memory, workload: data.workloads[workload], daemon: daemon === 1 };
  });
  const reasons = data.reasons.map(([code, message, object]) => ({ code, message, object }));
  const nodes = data.nodes.map((node, index) => ({
    ...node,
    index,
    before: podsOf(node.before, pods),
    after: podsOf("after" in node ? node.after : node.before, pods),
    reasons: node.reasons.map((id) => reasons[id]),
  }));
  const model = { ...data, pods, nodes, reasons };
  model.moves = movesByPod(model);
  model.colours = { namespace: rank(nodes, "namespace"), workload: rank(nodes, "workload") };
  return model;
}

function podsOf(ids, pods) {
  return ids === null ? null : ids.map((id) => pods[id]);
}

function nodeName(model, id) {
  if (id === null) return "pending";
  return typeof id === "number" ? model.nodes[id].name : id;
}

/* Pod name -> its moves in order of the steps. */
function movesByPod(model) {
  const moves = new Map();
  for (const command of model.commands) {
    for (const [pod, from, to] of command.moves) {
      if (!moves.has(pod)) moves.set(pod, []);
      moves.get(pod).push({ step: command.step, from, to });
    }
  }
  return moves;
}

/* The groups that request most CPU get a colour of their own, the rest share the last one. */
function rank(nodes, key) {
  const totals = new Map();
  for (const node of nodes) {
    for (const pod of node.before || node.after || []) {
      totals.set(pod[key], (totals.get(pod[key]) || 0) + pod.cpu + pod.memory / 4096);
    }
  }
  const names = [...totals.keys()].sort((a, b) => totals.get(b) - totals.get(a));
  return new Map(names.map((name, place) => [name, Math.min(place, COLOURS)]));
}

/* Nodes that change come first, in order of their step; those that stay follow in the plan's order. */
function inOrder(nodes) {
  const step = (node) => Math.min(node.came || Infinity, node.gone || Infinity);
  return [...nodes].sort((a, b) => (step(a) === step(b) ? a.index - b.index : step(a) - step(b)));
}

/* What a step touches: the nodes that leave, come or receive, and the pods that move. */
function touched(command) {
  const roles = new Map();
  for (const [, , to] of command.moves) roles.set(to, "receives pods");
  for (const { node } of command.replacements) roles.set(node, "new");
  for (const node of command.nodes) roles.set(node, "goes");
  return { roles, pods: new Set(command.moves.map(([pod]) => pod)) };
}

function status(node) {
  if (node.came && node.gone) return { kind: "went", text: `new in step ${node.came}, gone in step ${node.gone}` };
  if (node.came) return { kind: "new", text: `new in step ${node.came}` };
  if (node.gone) return { kind: "went", text: `${node.verdict}, step ${node.gone}` };
  return { kind: "keep", text: "stays" };
}
