"use strict";
/* Why nodes stay: counted by reason, each opening into its nodes; and one node in full, in a dialog. */

const NODES_SHOWN = 50;

function makeReasons(model, open) {
  const staying = model.nodes.filter((node) => node.verdict === "keep");
  const groups = new Map();
  let several = false;
  for (const node of staying) {
    const codes = new Set(node.reasons.map((reason) => reason.code));
    several = several || codes.size > 1;
    for (const code of codes) {
      if (!groups.has(code)) groups.set(code, []);
      groups.get(code).push(node);
    }
  }
  const ordered = [...groups].sort((a, b) => b[1].length - a[1].length);
  const stay = staying.length === 1 ? "Why 1 node stays" : `Why ${plural(staying.length, "node")} stay`;
  byId("reasons-title").textContent = stay + (model.commands.length ? " after the steps above" : "");
  byId("reasons-note").textContent = several ? "A node with several reasons is counted under each." : "";
  byId("reasons").replaceChildren(...ordered.map(([code, nodes]) => group(code, nodes)));

  function group(code, nodes) {
    const list = element("ul.facts");
    const made = element(
      "details.reason",
      null,
      element(
        "summary",
        null,
        element("span.code", null, code),
        element("span.example.quiet", null, example(code, nodes[0])),
        element("span.share", { "aria-hidden": "true" }, share(nodes.length)),
        element("span.count", null, plural(nodes.length, "node")),
        element("span.count.quiet", null, total(nodes))
      ),
      list
    );
    made.addEventListener("toggle", () => made.open && fill(NODES_SHOWN));

    function fill(limit) {
      list.replaceChildren(...nodes.slice(0, limit).map((node) => line(code, node)));
      if (nodes.length <= limit) return;
      const text = `Show ${number(Math.min(nodes.length - limit, 500))} more of ${number(nodes.length)}`;
      list.append(element("li", null, element("button.more", { type: "button", onclick: () => fill(limit + 500) }, text)));
    }
    return made;
  }

  function example(code, node) {
    return sentence(node.reasons.find((reason) => reason.code === code), node);
  }

  function share(count) {
    const bar = element("i");
    bar.style.width = (100 * count) / staying.length + "%";
    return bar;
  }

  function line(code, node) {
    const texts = node.reasons.filter((reason) => reason.code === code).map((reason) => sentence(reason, node));
    const button = element("button.link", { type: "button", onclick: () => open(node) }, element("bdi", null, node.name));
    return element("li", null, button, element("span", null, texts.join("; ")));
  }
}

function total(nodes) {
  const known = nodes.every((node) => node.price !== null);
  return money(known ? nodes.reduce((sum, node) => sum + node.price, 0) : null);
}

function makeSheet(model) {
  const sheet = byId("sheet");
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());

  function podLine(node, pod) {
    const last = (model.moves.get(pod.name) || []).find((move) => move.from === node.index);
    const where = last ? `→ ${nodeName(model, last.to)} in step ${last.step}` : pod.daemon ? "comes and goes with the node" : "stays";
    return element("li", null, element("b", null, pod.name), element("span", null, `${cores(pod.cpu)}, ${memory(pod.memory)}; ${where}`));
  }

  function open(node) {
    const pods = node.before || node.after || [];
    const close = element("button.close", { type: "button", "aria-label": "Close", onclick: () => sheet.close() }, "×");
    sheet.replaceChildren(
      element("div.sheet-head", null, element("h2", { id: "sheet-title" }, node.name), close),
      element("p", null, element("span.badge." + status(node).kind, null, status(node).text)),
      fact("Type", [node.type || "?", node.capacity || "?", node.zone || "?"].join(", ")),
      fact("Pool", node.pool || "none"),
      fact("Price", money(node.price)),
      fact("Allocatable", `${cores(node.cpu)}, ${memory(node.memory)}`),
      element("h3", null, node.reasons.length ? (node.gone ? "Why it goes" : "Why it stays") : ""),
      element("ul.facts", null, ...node.reasons.map((reason) => element("li", null, element("b", null, reason.code), element("span", null, sentence(reason, node))))),
      element("h3", null, `${plural(pods.length, "pod")} ${node.before ? "today" : "after the plan"}, by their requests`),
      element("ul.facts", null, ...pods.map((pod) => podLine(node, pod)))
    );
    sheet.showModal();
    sheet.scrollTop = 0;
  }
  return { open };
}
