/* What if? Knobs, and where plans end then beside where they end today. */

import { ask } from "./live.js";
import { AsOf, afterFullPlan, download, perMonth, say, select, table, working } from "./controls.js";
import { UNDISTURBED } from "./fleet.js";
import { KNOBS, knobsOf } from "./knobs.js";

const WAIT_MS = 250;
const KEPT = 12;
const REASONS_SHOWN = 3;
const USUAL = [
  ["No budgets", { budgets: true }],
  ["Consolidate at once", { after: "0s" }],
  ["No pod is do-not-disrupt", { disturb: "*" }],
  ["Spot to spot", { spot: "on" }],
  ["Every machine allowed", { any: true }],
  ["Evictions cost nothing", { eviction: "0" }],
  ["0.01 $/h for each node", { fee: "0.01" }],
];

export class WhatIfView {
  constructor(root, page, place) {
    this.root = root;
    this.page = page;
    this.values = formOf(read(place.form));
    this.asOf = new AsOf(page.live, () => this.ask(this.knobs, true));
    this.tried = page.tried || (page.tried = []);
    this.given = read(place.knobs);
    this.build();
    const asked = this.given || knobsOf(this.values);
    if (asked.length) this.ask(asked);
    else this.prepare();
  }

  /* Has the plan of today made that answers are compared with, before a knob is turned. */
  async prepare() {
    this.preparing = new AbortController();
    try {
      const { today, search, pdbs } = await ask(this.page.live, "today", {}, { signal: this.preparing.signal });
      this.offer(pdbs);
      const words = `Today's plan ends at ${money(today.priceAfter)} with ${plural(today.nodesAfter, "node")}, with search ${search}.${afterFullPlan(this.page.planned, today.priceAfter)}`;
      if (this.start.isConnected) this.start.textContent = words;
    } catch (problem) {
      if (problem.name !== "AbortError" && this.start.isConnected) this.start.textContent = problem.message;
    }
  }

  /* Names of PodDisruptionBudgets, for those who begin to write one. */
  offer(pdbs) {
    this.page.pdbs = pdbs;
    this.pdbs.replaceChildren(...pdbs.map((name) => element("option", { value: name })));
  }

  close() {
    clearTimeout(this.timer);
    if (this.preparing) this.preparing.abort();
    if (this.asking) this.asking.abort();
  }

  changed() {
    this.asOf.write();
  }

  refresh() {
    if (!this.form.childElementCount || this.form.contains(document.activeElement)) return;
    this.drawForm();
  }

  build() {
    this.form = element("form.knobs", { "aria-label": "Knobs", onsubmit: (event) => event.preventDefault() });
    this.brief = element("p.brief", { "aria-hidden": "true" });
    this.result = element("section.card.result", { "aria-label": "What it comes to", "aria-live": "polite" });
    this.exports = element("section.card.exports", { "aria-label": "To keep it", hidden: "" });
    this.list = element("section.card", { "aria-labelledby": "tried-title" });
    this.pdbs = element("datalist", { id: "pdbs" });
    this.offer(this.page.pdbs || []);
    this.root.replaceChildren(
      this.pdbs,
      element("div.what-if", null, element("section.card", null, element("h2", null, "Knobs"), element("p.quiet", null, "Turn one, and see at once what it saves. Nothing is changed in the cluster."), this.form), element("div.answers", null, this.brief, this.result, this.list, this.exports))
    );
    this.drawForm();
    this.explainNothing();
    this.drawTried();
  }

  explainNothing() {
    this.brief.textContent = "";
    this.start = element("p.quiet.showing", { role: "status" }, "Planning for today, to have something to compare with …");
    this.result.replaceChildren(element("h2", null, "What it comes to"), element("p.quiet", null, "Turn a knob: here you see the price at the end of the plan, and the evictions on the way, beside today's. Or begin with one of these:"), this.presets(), this.start);
  }

  presets() {
    return element("p.presets", null, ...USUAL.map(([words, values]) => element("button.more", { type: "button", onclick: () => this.setTo(values) }, words)));
  }

  /* The form shows what is asked, also where it was not the form that asked. */
  setTo(values, knobs = knobsOf(values)) {
    clearTimeout(this.timer);
    this.values = { ...values };
    this.drawForm();
    if (Object.keys(values).length) this.toAddress();
    else this.page.remember({ knobs: JSON.stringify(knobs) }, true);
    this.ask(knobs);
  }

  toAddress() {
    const told = Object.entries(this.values).filter(([, value]) => value);
    this.page.remember({ form: told.length ? JSON.stringify(Object.fromEntries(told)) : "" }, true);
  }

  drawForm() {
    const { fleet } = this.page.live;
    const context = {
      pools: fleet.pools.map((pool) => pool.name).sort(),
      workloads: [...new Set([...fleet.pods.values()].filter((pod) => !pod.daemon).map((pod) => pod.workload))].sort().slice(0, 3000),
      protectedWorkloads: [...new Set([...fleet.pods.values()].filter((pod) => pod.flags & UNDISTURBED && !pod.daemon).map((pod) => pod.workload))].sort(),
      namespaces: [...new Set([...fleet.pods.values()].map((pod) => pod.namespace))].sort(),
    };
    this.form.replaceChildren(
      ...KNOBS.map(({ title, knobs }) => element("fieldset", null, element("legend", null, title), ...knobs.map((knob) => this.control(knob, context)))),
      element("button.more", { type: "button", onclick: () => this.clear() }, "All as it is")
    );
  }

  control(knob, context) {
    const set = (value) => this.turn(knob.key, value);
    const value = this.values[knob.key];
    const name = `knob-${knob.key}`;
    let input;
    if (knob.kind === "switch") {
      input = element("input", { type: "checkbox", id: name, onchange: () => set(input.checked) });
      input.checked = Boolean(value);
      return element("label.knob.switch", { for: name }, input, element("span", null, knob.words));
    }
    if (knob.options) {
      input = select(knob.words, knob.options(context), value ?? "", set);
    } else {
      input = element("input", { type: knob.kind, id: name, "aria-label": knob.words, placeholder: knob.hint || "as it is", list: knob.list, min: knob.min, max: knob.max, step: knob.step, autocomplete: "off", spellcheck: "false" });
      input.value = value ?? "";
      input.addEventListener("input", () => set(input.value));
    }
    return element("label.knob", null, element("span", null, knob.words), input);
  }

  clear() {
    this.values = {};
    this.given = null;
    this.drawForm();
    if (this.asking) this.asking.abort();
    this.exports.hidden = true;
    this.toAddress();
    this.explainNothing();
    this.prepare();
  }

  turn(key, value) {
    this.values[key] = value;
    this.given = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const knobs = knobsOf(this.values);
      if (!knobs.length) return this.clear();
      this.toAddress();
      this.ask(knobs);
    }, WAIT_MS);
  }

  /* Only the latest question counts: the one before is given up. A first answer comes soon, and a better one where that takes longer. */
  async ask(knobs, again = false) {
    this.knobs = knobs;
    this.asOf.asked();
    this.exports.hidden = true; /* they are of what was asked before */
    if (this.asking) this.asking.abort();
    const asking = (this.asking = new AbortController());
    const busy = working("Planning …");
    const since = performance.now();
    const shown = this.result.querySelector(".outcome");
    this.brief.textContent = "Planning …";
    this.result.replaceChildren(element("h2", null, "What it comes to"), busy);
    if (shown) this.result.append(shown), shown.classList.add("old");
    try {
      const options = { progress: busy.progress, signal: asking.signal };
      const query = { knobs: JSON.stringify(knobs), ...(again ? { since: this.page.live.number } : {}) };
      const answer = await ask(this.page.live, "what-if", query, options);
      this.show(answer, (performance.now() - since) / 1000, answer.longer);
      if (!answer.longer) return;
      const more = () => this.result.querySelector("h2").after(busy);
      const foreseen = (better) => (this.show(better, (performance.now() - since) / 1000, true), more());
      busy.progress("This is a first answer. A longer search is under way, and puts a better one in its place …");
      more();
      this.show(await ask(this.page.live, "longer-what-if", query, { ...options, foreseen }), (performance.now() - since) / 1000);
    } catch (problem) {
      if (problem.name === "AbortError" || asking !== this.asking) return;
      this.brief.textContent = problem.message;
      this.result.replaceChildren(element("h2", null, "What it comes to"), element("p.problem", { role: "alert" }, problem.message), this.presets());
    }
  }

  show(answer, seconds, first = false) {
    const { today, then, words, search, todaySearch, onwards, nodeFee, unplaced, checked, stopped } = answer.whatIf;
    const cost = alike([today.priceAfter, then.priceAfter, today.savingsPerHour, then.savingsPerHour]);
    const saved = difference(answer.whatIf);
    const how = todaySearch === search ? `Both planned with search ${search}` : `Today's plan: search ${todaySearch}; what if: search ${search}`;
    const same = saved !== null && Math.abs(saved) < 5e-5;
    const verdict = unplaced.length ? `${plural(unplaced.length, "pod")} would find no place` : judged(saved, same, cost, first && (onwards || stopped), first, stopped);
    const fee = nodeFee === null ? "" : ` With a fee of ${money(nodeFee)} a node, which both sides count, today's plan would end at ${money(today.priceAfter)}.`;
    this.result.replaceChildren(
      element("h2", null, "What it comes to"),
      element(
        "div.outcome",
        null,
        element("p.big" + (unplaced.length ? ".bad" : first ? ".provisional" : same ? "" : saved > 0 ? ".good" : saved < 0 ? ".bad" : ""), null, verdict, first ? element("span.pill.first", null, "first answer") : null, same || unplaced.length ? null : element("span.pill" + (saved > 0 ? "" : ".worse"), null, saved === null ? "?" : perMonth(Math.abs(saved)))),
        element("ul.plain.words", null, ...words.map((text) => element("li", null, text))),
        ...homes(answer.whatIf),
        table(
          "Where plans end",
          [
            { words: "At the end of the plan", cell: (row) => row[0] },
            { words: "Today's rules", number: true, cell: (row) => row[1] },
            { words: "What if", number: true, cell: (row) => element("b", null, row[2]) },
          ],
          [
            ["Price", cost(today.priceAfter), cost(then.priceAfter)],
            ["Nodes", number(today.nodesAfter), number(then.nodesAfter)],
            ["Evictions on the way", number(today.evictions), number(then.evictions)],
            ["Nodes launched", number(today.launches), number(then.launches)],
            ["Saved, compared with now", cost(today.savingsPerHour), cost(unplaced.length ? null : then.savingsPerHour)],
          ]
        ),
        bars(today, then, cost),
        element("p.quiet.showing", null, `${how}, in ${seconds.toFixed(1)} s${onwards ? "; the what-if goes on where today's plan ends" : ""}${steps(checked, stopped)}${uncounted(today, then)}.${fee || afterFullPlan(this.page.planned, today.priceAfter)}`),
        this.asOf.root,
        this.presets()
      )
    );
    this.asOf.answered(answer.whatIf.time);
    this.brief.textContent = `${words.join("; ")}: ${verdict}${first ? " (first answer)" : ""}`;
    this.remember(answer, saved, first);
    this.drawExports(answer);
    say(`${words.join("; ")}: ${verdict}${first ? ", a first answer" : ""}`);
  }

  remember(answer, saved, first) {
    const { words, then } = answer.whatIf;
    const key = words.join("; ");
    const kept = this.tried.filter((entry) => entry.words !== key);
    kept.unshift({ words: key, saved, first, least: first && (answer.whatIf.onwards || answer.whatIf.stopped), stopped: answer.whatIf.stopped, today: answer.whatIf.today.priceAfter, price: then.priceAfter, nodes: then.nodesAfter, evictions: then.evictions, knobs: answer.whatIf.knobs });
    this.tried.splice(0, this.tried.length, ...kept.slice(0, KEPT));
    this.drawTried();
  }

  drawTried() {
    const rows = [...this.tried].sort((a, b) => (b.saved ?? -Infinity) - (a.saved ?? -Infinity));
    const price = alike(rows.flatMap((row) => [row.saved, row.today, row.price]));
    this.list.hidden = !rows.length;
    this.list.replaceChildren(
      element("h2", { id: "tried-title" }, "Tried so far"),
      table(
        "Tried so far",
        [
          { words: "Knobs", cell: (row) => [element("button.link", { type: "button", onclick: () => this.setTo({}, row.knobs) }, row.words), row.first ? element("span.badge", null, "first answer") : ""] },
          { words: "Saves more", number: true, cell: (row) => (row.least ? "≥ " : "") + price(row.saved) },
          { words: "Today's plan", number: true, cell: (row) => price(row.today) },
          { words: "What if", number: true, cell: (row) => price(row.price) },
          { words: "Nodes", number: true, cell: (row) => number(row.nodes) },
          { words: "Evictions", number: true, cell: (row) => number(row.evictions) },
        ],
        rows
      )
    );
  }

  drawExports(answer) {
    const files = [...Object.entries(answer.patches).map(([pool, text]) => [`NodePool ${pool}: patch`, `${pool}-patch.yaml`, text]), ["Scenario for karpool simulate", "what-if.yaml", answer.scenario]];
    this.exports.hidden = false;
    this.exports.replaceChildren(
      element("h2", null, "To keep it"),
      answer.options.length ? element("p", null, "Options: ", element("code", null, `karpool run ${answer.options.join(" ")}`)) : "",
      ...answer.byHand.map((words) => element("p.quiet", null, `By hand: ${words}`)),
      ...files.map(([title, name, text]) => file(title, name, text))
    );
  }
}

/* In a first answer nothing is "the same", and where only prohibitions fall a longer search finds no less. */
function judged(saved, same, cost, least, first, stopped = false) {
  if (saved === null) return "unknown";
  if (stopped && saved < 0) return "no difference found yet"; /* what nobody has looked at yet saves nothing so far */
  if (same) return least ? "nothing found yet" : first ? "no difference found yet" : "the same";
  const words = saved > 0 ? `${cost(saved)} less` : `${cost(-saved)} more`;
  return least && saved > 0 ? `at least ${words}` : words;
}

function file(title, name, text) {
  const copy = element("button.more", { type: "button", onclick: async () => (await navigator.clipboard.writeText(text), say("Copied.")) }, "Copy");
  const save = element("button.more", { type: "button", onclick: () => download(name, text, "application/yaml") }, "Save");
  return element("details.rules", null, element("summary", null, title), element("pre", { tabindex: "0" }, text), element("p", null, copy, " ", save));
}

function bars(today, then, cost) {
  const most = Math.max(today.priceBefore || 0, then.priceBefore || 0, then.priceAfter || 0) || 1;
  const line = (words, value, kind) => {
    const bar = element("span.long-bar", { "aria-hidden": "true" }, element("i." + kind));
    bar.firstChild.style.width = (100 * (value || 0)) / most + "%";
    return element("li", null, element("span.quiet", null, words), bar, element("span.number-cell", null, cost(value)));
  };
  return element("ul.price-bars", null, line("now", today.priceBefore, "c10"), line("today's plan", today.priceAfter, "c0"), line("what if", then.priceAfter, "c2"));
}

/* By how much cheaper it ends; null where nobody knows: nodes of unknown price differ, or pods are left that no price speaks of. */
function difference({ today, then, unplaced }) {
  if (today.priceAfter === null || then.priceAfter === null || today.unpricedNodes !== then.unpricedNodes || unplaced.length) return null;
  return today.priceAfter - then.priceAfter;
}

/* What was planned, where it was not a plan from scratch, and what there was no time for. */
function steps(checked, stopped) {
  const parts = [];
  if (checked) {
    const known = checked.held + checked.dropped;
    parts.push(`; today's steps were checked again: ${number(checked.held)} of ${number(known)} hold, then it goes on from there, so a plan from scratch may end elsewhere`);
    if (checked.unchecked) parts.push(`; there was no time for ${number(checked.unchecked)} more steps, so prices and evictions are those on the way`);
  }
  if (stopped && !(checked && checked.unchecked)) parts.push("; there was no time to look further");
  return parts.join("");
}

/* What becomes of pods that no longer fit on their nodes. */
function homes({ displaced, unplaced }) {
  if (!displaced) return [];
  const moved = displaced - unplaced.length;
  const alike = new Map();
  for (const { pod, reasons } of unplaced) {
    const why = reasons.map((reason) => reason.message).join("; ");
    alike.set(why, (alike.get(why) || []).concat(pod));
  }
  const lines = [...alike].slice(0, REASONS_SHOWN).map(([why, pods]) => element("li", null, element("bdi", null, pods[0]), pods.length > 1 ? ` and ${number(pods.length - 1)} more` : "", `: ${why}`));
  if (alike.size > REASONS_SHOWN) lines.push(element("li", null, "and others for other reasons"));
  return [
    unplaced.length ? element("div.problem", null, element("p", null, "They would wait; prices are without them."), element("ul.plain", null, ...lines)) : null,
    moved ? element("p.notice", null, `${plural(moved, "pod")} no longer fit${moved === 1 ? "s" : ""} where ${moved === 1 ? "it is and gets" : "they are and get"} other places; new nodes for that are counted.`) : null,
  ].filter(Boolean);
}

function uncounted(today, then) {
  const [a, b] = [today.unpricedNodes, then.unpricedNodes];
  if (a !== b) return `; nodes of unknown price are not counted: ${number(a)} today, ${number(b)} then`;
  return a ? `; ${plural(a, "node")} of unknown price not counted` : "";
}

function read(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/* Values of the form as an address has them; whatever else is there is left out. */
function formOf(told) {
  const keys = new Set(KNOBS.flatMap(({ knobs }) => knobs.map((knob) => knob.key)));
  return Object.fromEntries(Object.entries(told || {}).filter(([key, value]) => keys.has(key) && (typeof value === "string" || value === true)));
}
