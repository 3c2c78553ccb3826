/* The cluster of a plan after each of its steps: forth and back without beginning anew. */

import { Fleet, totals } from "./fleet.js";

export class Stepped {
  constructor(answer) {
    this.plan = answer.plan;
    this.sizes = answer.newNodes;
    this.fleet = new Fleet();
    this.fleet.read(answer.today);
    this.step = 0;
    this.latest = [...this.fleet.nodes.keys(), ...this.fleet.pods.keys()].reduce((most, number) => Math.max(most, number), 0);
    this.all = [...this.fleet.nodes.values()];
    this.status = new Map(this.all.map((node) => [node, null]));
    this.undone = [];
    this.moving = new Set();
    this.roles = new Map();
    this.pricesAfter = [];
  }

  get steps() {
    return this.plan.commands.length;
  }

  /* Go to the cluster after a step; 0 is today. */
  goTo(step) {
    while (this.step < step) this.forth();
    while (this.step > step) this.back();
    this.note();
  }

  forth() {
    const command = this.plan.commands[this.step];
    const undo = [];
    for (const made of command.replacements) undo.push(this.add(made));
    for (const placement of command.placements) {
      const pod = this.fleet.podsByName.get(placement.pod);
      if (!pod) continue;
      const from = this.fleet.nodes.get(pod.node) || null;
      this.fleet.move(pod, this.fleet.byName.get(placement.to) || null);
      undo.push(() => this.fleet.move(pod, from));
    }
    for (const name of command.nodes) {
      const node = this.fleet.byName.get(name);
      if (node) undo.push(this.remove(node));
    }
    this.undone.push(undo);
    this.step += 1;
  }

  back() {
    for (const undo of this.undone.pop().reverse()) undo();
    this.step -= 1;
  }

  add(made) {
    const size = this.sizes[made.name] || { cpu: 0, memory: 0, daemons: [] };
    const happened = { nodes: new Set(), came: [], gone: [], moved: [] };
    this.latest += 1;
    const values = {
      id: this.latest, name: made.name, pool: made.nodePool, type: made.instanceTypes[0] || "", zone: made.zones.join(", "),
      capacity: made.capacityType, price: made.pricePerHour, cpu: size.cpu, memory: size.memory, status: "ready", labels: -1, created: null,
    };
    const number = this.latest;
    this.fleet.putNode(this.fleet.nodeFields.map((field) => values[field]), happened);
    const node = this.fleet.nodes.get(number);
    node.virtual = true;
    for (const [name, cpu, asked] of size.daemons) {
      const pod = { id: ++this.latest, name, namespace: name.slice(0, name.indexOf("/")), node: number, cpu, memory: asked, workload: "", labels: {}, flags: 1, daemon: true };
      this.fleet.enter(pod);
    }
    return () => {
      this.fleet.nodes.delete(number);
      this.fleet.byName.delete(made.name);
    };
  }

  remove(node) {
    this.fleet.nodes.delete(node.id);
    this.fleet.byName.delete(node.name);
    return () => {
      this.fleet.nodes.set(node.id, node);
      this.fleet.byName.set(node.name, node);
    };
  }

  /* What the step that was just taken touches, and what the next one will. */
  note() {
    this.moving = new Set();
    this.roles = new Map();
    const last = this.plan.commands[this.step - 1];
    if (!last) return;
    for (const placement of last.placements) {
      this.moving.add(placement.pod);
      this.roles.set(placement.to, "receives pods");
    }
    for (const made of last.replacements) this.roles.set(made.name, "new");
  }

  totals() {
    return totals(this.fleet.nodes.values());
  }
}
