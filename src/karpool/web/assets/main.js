/* Wires the page: which cluster, which view, and what is told to it. */

import { BlockersView } from "./blockers_view.js";
import { CostsView } from "./costs_view.js";
import { Explainer } from "./explain.js";
import { FleetView } from "./fleet_view.js";
import { Live } from "./live.js";
import { PlanView } from "./plan_view.js";
import { Planned } from "./planned.js";
import { TimelineView } from "./timeline_view.js";
import { WhatIfView } from "./what_if_view.js";
import { clock, moment } from "./controls.js";
import { makeTip } from "./tip.js";

const VIEWS = [
  ["fleet", "Fleet", FleetView],
  ["plan", "Plan", PlanView],
  ["what-if", "What if", WhatIfView],
  ["blockers", "Blockers", BlockersView],
  ["costs", "Who pays", CostsView],
  ["timeline", "Timeline", TimelineView],
];

const NOTICES_SHOWN = 2;

class Page {
  constructor(clusters) {
    this.clusters = clusters;
    this.tip = makeTip((node) => this.describe(node));
    this.explainer = new Explainer(this);
    this.connected = true;
    this.problem = "";
    window.addEventListener("hashchange", () => this.route());
    setInterval(() => this.state(), 5000);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.view && this.view.blocks && this.view.blocks.repaint());
    this.choose(this.place().cluster || clusters[0]);
  }

  /* `#plan?cluster=prod&q=…` */
  place() {
    const [view, query] = location.hash.slice(1).split("?");
    const found = Object.fromEntries(new URLSearchParams(query || ""));
    return { view: VIEWS.some(([key]) => key === view) ? view : "fleet", ...found };
  }

  /* What a view shows is in the address, so that Back and links that are shared show it again; `push`: Back undoes it. */
  remember(state, push = false) {
    const { view } = this.place();
    const told = Object.entries(state).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    const hash = this.address(view, Object.fromEntries(told));
    this.places.set(view, hash);
    if (hash !== location.hash) history[push ? "pushState" : "replaceState"](null, "", hash);
  }

  address(view, state = {}) {
    const query = new URLSearchParams({ ...(this.clusters.length > 1 ? { cluster: this.cluster } : {}), ...state }).toString();
    return "#" + view + (query ? "?" + query : "");
  }

  choose(cluster) {
    if (this.live) this.live.close();
    this.cluster = cluster;
    if (this.view) this.view.close();
    this.view = null;
    this.places = new Map();
    this.live = new Live(cluster, (what, about) => this.told(what, about));
    this.planned = new Planned(this.live, () => (this.notices(), this.view && this.view.refresh()));
    this.live.start();
    this.head();
  }

  told(what, about) {
    if (what === "problem") this.problem = about;
    if (what === "connected") this.connected = about;
    if (what === "nodes" || what === "ready") this.problem = "";
    if (what === "nodes") this.open();
    else if (what === "changed" && this.view) this.view.changed(about);
    else if (what === "pods" && this.view && this.live.fleet.nodes.size <= 2000) this.view.refresh();
    else if (what === "ready" && this.view) {
      this.view.refresh();
      this.planned.want();
    }
    this.state();
    this.notices();
    if (what === "nodes" || what === "status") this.head();
  }

  route() {
    const { cluster } = this.place();
    this.explainer.sheet.close();
    if (cluster && cluster !== this.cluster && this.clusters.includes(cluster)) this.choose(cluster);
    else this.open();
  }

  open() {
    const place = this.place();
    const [, title, View] = VIEWS.find(([key]) => key === place.view);
    if (!this.live.epoch) return;
    if (this.view) this.view.close();
    const root = element("div.view", { id: "view" });
    byId("view").replaceWith(root);
    if (location.hash) this.places.set(place.view, location.hash);
    this.view = new View(root, this, place);
    document.title = `${title} · ${this.cluster} · Karpool`;
    this.tabs(place.view);
  }

  tabs(now) {
    byId("views").replaceChildren(
      ...VIEWS.map(([key, words]) => element("li", null, element("a", { href: this.places.get(key) || this.address(key), "aria-current": key === now ? "page" : null }, words)))
    );
  }

  head() {
    const { about } = this.live;
    const name = byId("cluster-name");
    if (this.clusters.length > 1) {
      const picker = element("select", { "aria-label": "Cluster", onchange: () => (location.hash = `#${this.place().view}?` + new URLSearchParams({ cluster: picker.value })) });
      for (const cluster of this.clusters) {
        const option = element("option", { value: cluster }, cluster);
        option.selected = cluster === this.cluster;
        picker.append(option);
      }
      name.replaceChildren(picker);
    } else name.textContent = this.cluster;
    byId("prices").textContent = about.prices || "";
    this.state();
  }

  /* Whether what is shown is of now. */
  state() {
    const { about, time } = this.live;
    const source = byId("source");
    const stale = (about.stale || []).length > 0;
    const lost = about.living && !this.connected;
    const words = !about.kind ? "" : !about.living ? `${about.source}, read at ${moment(about.read)}` : `${about.source}, ${lost ? "not connected; as of" : stale ? "watches are cut; as of" : "live,"} ${clock(time)} UTC`;
    const roles = [about.leading === false ? "does not lead" : "", about.dryRun ? "dry run" : "", about.paused ? "paused" : ""].filter(Boolean);
    source.replaceChildren(
      element("span.dot-live" + (!about.living ? ".still" : lost || stale ? ".lost" : ""), { "aria-hidden": "true" }),
      element("bdi", null, words),
      ...roles.flatMap((role) => [" ", element("span.badge", null, role)])
    );
  }

  notices() {
    const { answer } = this.planned;
    const said = [this.problem, ...((this.live.about && this.live.about.warnings) || []), answer && answer.unpriced].filter(Boolean);
    const card = byId("notices");
    const key = said.join("\n");
    if (card.dataset.key === key) return;
    card.dataset.key = key;
    card.hidden = !said.length;
    card.classList.toggle("mild", !this.problem);
    const [shown, more] = [said.slice(0, NOTICES_SHOWN), said.slice(NOTICES_SHOWN)].map((texts) => texts.map((text) => element("p", null, text)));
    card.replaceChildren(...shown, more.length ? element("details.rules", null, element("summary", null, `${number(more.length)} more`), ...more) : "");
  }

  /* What a node is at, in a few words. */
  describe(node) {
    if (node.status !== "ready") return node.status;
    const verdict = this.planned.verdicts.get(node.name);
    if (!verdict) return node.virtual ? "new in the plan" : "ready";
    if (verdict.verdict === "keep") return "stays: " + [...new Set(verdict.reasons.map((reason) => reason.code))].join(", ");
    return `${verdict.verdict} in step ${verdict.step}: ${verdict.reasons[0].code}`;
  }

  explain(about) {
    this.explainer.open(about);
  }
}

async function begin() {
  try {
    const response = await fetch(new URL("data/clusters", document.baseURI));
    const { clusters } = await response.json();
    window.karpool = new Page(clusters);
  } catch {
    byId("view").replaceChildren(element("p.card.problem", { role: "alert" }, "The console does not answer; is karpool still running?"));
    setTimeout(begin, 2000);
  }
}

begin();
