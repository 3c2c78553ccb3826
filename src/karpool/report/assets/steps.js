"use strict";
/* The list of steps. Choosing one opens it and lights up its nodes and pods in the cluster. */

const STEPS_AT_ONCE = 100;
const MOVES_SHOWN = 12;
const NODES_LISTED = 8;

function makeSteps(model, choose) {
  const list = byId("steps");
  const more = byId("more-steps");
  const cost = alike(model.commands.map((command) => command.saved));
  let chosen = null;

  function append() {
    const from = list.children.length;
    const next = model.commands.slice(from, from + STEPS_AT_ONCE);
    for (const command of next) list.append(item(command));
    const left = model.commands.length - from - next.length;
    more.hidden = left <= 0;
    more.textContent = `Show ${number(Math.min(left, STEPS_AT_ONCE))} of ${plural(left, "more step")}`;
  }

  function item(command) {
    const button = element(
      "button.step",
      { type: "button", "aria-expanded": "false", onclick: () => select(chosen === command ? null : command) },
      element("span.number", null, String(command.step)),
      element("span.what", null, title(command)),
      element("span.saved", { title: "change of the price" }, saving(command.saved, cost)),
      element("small", null, subtitle(command))
    );
    const made = element("li", null, button);
    made.command = command;
    return made;
  }

  function select(command) {
    chosen = command;
    for (const made of list.children) {
      const open = made.command === command;
      made.classList.toggle("chosen", open);
      made.firstChild.setAttribute("aria-expanded", String(open));
      if (made.children.length > 1) made.lastChild.remove();
      if (open) made.append(details(command));
    }
    choose(command);
  }

  function details(command) {
    return element(
      "div.details",
      null,
      fact("Leaves", command.nodes.map((id) => nodeName(model, id)).join(", ")),
      ...command.replacements.slice(0, NODES_LISTED).map((made) => fact("Comes", replacement(made))),
      command.replacements.length > NODES_LISTED ? fact("Comes", plural(command.replacements.length - NODES_LISTED, "more node")) : null,
      ...Object.entries(command.waves)
        .filter(([, turns]) => turns > 1)
        .map(([pdb, turns]) => fact("PDB", `pods under ${pdb} leave in ${turns} waves`)),
      element("button.more.see", { type: "button", onclick: () => byId("cluster").scrollIntoView({ behavior: "smooth" }) }, "See it in the cluster ↓"),
      command.moves.length ? moves(command) : fact("Pods", "none has to move")
    );
  }

  function replacement(made) {
    const others = made.types.length - 1;
    const type = (made.types[0] || "?") + (others > 0 ? ` or ${plural(others, "other type")}` : "");
    return `${nodeName(model, made.node)}: ${type}, ${money(made.price)}`;
  }

  function moves(command) {
    const lines = element("ul.moves");
    const show = (limit) => {
      lines.replaceChildren(...command.moves.slice(0, limit).map(move));
      if (command.moves.length > limit) {
        const rest = `Show all ${number(command.moves.length)} moves`;
        lines.append(element("li", null, element("button.more", { type: "button", onclick: () => show(Infinity) }, rest)));
      }
    };
    show(MOVES_SHOWN);
    return lines;
  }

  function move([pod, from, to]) {
    return element("li", null, element("b", null, pod), element("span", null, `${nodeName(model, from)} → ${nodeName(model, to)}`));
  }

  more.addEventListener("click", append);
  if (model.commands.length) append();
  else list.replaceWith(element("p.nothing", null, model.before.nodes ? "Nothing to do at this time; below is why each node stays." : "There are no nodes, so there is nothing to plan."));
  return { clear: () => chosen && select(null) };
}

function fact(label, text) {
  return element("p.fact", null, element("span.quiet", null, label + " "), text);
}

function title(command) {
  const nodes = plural(command.nodes.length, "node");
  if (!command.replacements.length) return `Delete ${nodes}`;
  if (command.decision === "terminate-first") return `Terminate ${nodes} first, then launch ${command.replacements.length}`;
  return `Replace ${nodes} with ${command.replacements.length}`;
}

function subtitle(command) {
  const moved = command.moves.length ? `${plural(command.moves.length, "pod")} move${command.moves.length === 1 ? "s" : ""}` : "no pod moves";
  const begins = command.begins ? ` · can begin at ${command.begins}` : "";
  return `${spaced(command.method)} · ${moved}${begins}`;
}

function saving(value, cost) {
  if (value === null) return "−? $/h";
  return (value < 0 ? "+" : "−") + cost(Math.abs(value));
}
