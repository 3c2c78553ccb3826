"use strict";
/* Wires the page: what is chosen, and what is drawn from it. */

(function () {
  const model = readModel();
  const wide = window.matchMedia("(min-width: 900px)");
  const state = { view: wide.matches ? "both" : "after", measure: "cpu", colour: "namespace", group: null, touched: null, filter: "" };
  const tooltip = makeTooltip(model);
  const sheet = makeSheet(model);
  const bars = makeBars(model, state, tooltip, sheet.open);
  const everyNode = inOrder(model.nodes);

  const steps = makeSteps(model, (command) => {
    state.touched = command ? touched(command) : null;
    bars.top();
    redraw();
  });

  function redraw() {
    const nodes = visible();
    byId("showing").replaceChildren(...counted(nodes.length));
    bars.draw(nodes);
  }

  function visible() {
    const wanted = state.filter.trim().toLowerCase();
    const matches = (text) => text.toLowerCase().includes(wanted);
    const holds = (pods) => (pods || []).some((pod) => matches(pod.name));
    let nodes = everyNode;
    if (wanted) {
      nodes = nodes.filter((node) => [node.name, node.pool, node.type].some(matches) || holds(node.before) || holds(node.after));
    }
    if (!state.touched) return nodes;
    const place = { goes: 0, new: 1, "receives pods": 2 };
    const rank = (node) => place[state.touched.roles.get(node.index)] ?? 3;
    return [...nodes].sort((a, b) => rank(a) - rank(b));
  }

  function counted(count) {
    const parts = [count === everyNode.length ? plural(count, "node") + ", those that change first" : `${number(count)} of ${plural(everyNode.length, "node")}`];
    if (state.touched) parts.push(" · outlined pods move in this step ", element("button.link", { type: "button", onclick: () => steps.clear() }, "show all"));
    return parts;
  }

  function choice(id, key, options) {
    const buttons = options.map(([value, label]) => {
      const press = () => {
        state[key] = value;
        if (key === "colour") state.group = null;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === value));
        legend();
        redraw();
      };
      return element("button", { type: "button", value, "aria-pressed": String(state[key] === value), onclick: press }, label);
    });
    byId(id).replaceChildren(...buttons);
  }

  function legend() {
    const ranks = [...model.colours[state.colour]];
    const own = ranks.filter(([, place]) => place < COLOURS);
    const buttons = own.map(([name, place]) =>
      element("button", { type: "button", "aria-pressed": String(state.group === name), onclick: () => pick(name) }, element("i.c" + place), name || "no workload")
    );
    const rest = ranks.length - own.length;
    if (rest) buttons.push(element("span", null, element("i.c" + COLOURS), plural(rest, "other")));
    buttons.push(element("span", null, element("i.c" + COLOURS + ".daemon"), "striped: DaemonSet"));
    byId("legend").replaceChildren(...buttons);
  }

  function pick(name) {
    state.group = state.group === name ? null : name;
    const at = [...byId("legend").children].indexOf(document.activeElement);
    legend();
    if (at >= 0) byId("legend").children[at].focus();
    redraw();
  }

  function totals() {
    const { before, after, savings } = model;
    const { known, rest, share, month, uncounted } = savedWords(model);
    const cost = alike([before.pricePerHour, after.pricePerHour, known]);
    // What is saved fills the bar, as the number beside it says; of an unknown part nothing does.
    const saved = savings.percent === null ? 0 : Math.max(0, Math.min(100, savings.percent));
    const bar = element("div.compare", { "aria-hidden": "true" }, element("i"));
    bar.firstChild.style.width = saved + "%";
    const moved = model.commands.reduce((sum, command) => sum + command.moves.length, 0);
    byId("totals").replaceChildren(
      element(
        "div.card.hero",
        null,
        element("p.label", null, "Saves"),
        element("p.big", null, cost(known) + rest, element("span.pill", null, share)),
        bar,
        element("p.quiet", null, month + uncounted)
      ),
      card("Price", cost(before.pricePerHour, ""), cost(after.pricePerHour, ""), "$ an hour"),
      card("Nodes", number(before.nodes), number(after.nodes), plural(model.commands.length, "step")),
      card("Pods", number(before.pods), number(after.pods), `${plural(moved, "move")} in all`)
    );
  }

  function card(label, before, after, note) {
    return element(
      "div.card",
      null,
      element("p.label", null, label),
      element("p.big", null, element("span.was", null, before), element("span.arrow", { "aria-label": "to" }, "→"), after),
      element("p.quiet", null, note)
    );
  }

  function pending() {
    byId("pending-card").hidden = !model.unschedulable.length;
    const line = ({ pod, reasons }) => element("li", null, element("b", null, pod), element("span", null, reasons.map((id) => sentence(model.reasons[id])).join("; ")));
    byId("pending").replaceChildren(...model.unschedulable.slice(0, 500).map(line));
    const left = model.unschedulable.length - 500;
    if (left > 0) byId("pending").append(element("li", null, `and ${number(left)} more`));
  }

  let typing = null;
  byId("filter").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      state.filter = event.target.value;
      bars.top();
      redraw();
    }, 120);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || byId("sheet").open) return;
    tooltip.hide();
    steps.clear();
  });

  byId("asof").textContent = "as of " + model.time.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");
  choice("view", "view", [["before", "Before"], ["after", "After"], ["both", "Both"]]);
  choice("measure", "measure", [["cpu", "CPU"], ["memory", "Memory"]]);
  choice("colour", "colour", [["namespace", "Namespace"], ["workload", "Workload"]]);
  byId("colour").hidden = model.workloads.every((name) => !name);
  totals();
  legend();
  makeReasons(model, sheet.open);
  pending();
  redraw();
})();
