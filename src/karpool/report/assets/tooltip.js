"use strict";
/* One tooltip for every slice of every bar. */

function makeTooltip(model) {
  const tip = byId("tip");
  let shown = null;

  function hide() {
    tip.hidden = true;
  }

  function show(node, pod, slice) {
    const moves = (model.moves.get(pod.name) || []).map((move) =>
      element("p.tip-move", null, `Step ${move.step}: ${nodeName(model, move.from)} → ${nodeName(model, move.to)}`)
    );
    tip.replaceChildren(
      element("p.tip-name", null, pod.name),
      element("p.tip-work", null, pod.workload + (pod.daemon ? " (comes and goes with its node)" : "")),
      line("CPU", cores(pod.cpu), pod.cpu / node.cpu),
      line("Memory", memory(pod.memory), pod.memory / node.memory),
      ...moves.slice(0, 4)
    );
    tip.hidden = false;
    shown = slice;
    place(slice.getBoundingClientRect());
  }

  function line(label, amount, share) {
    return element("p", null, element("span.quiet", null, label + " "), `${amount} (${percent(share)} of the node)`);
  }

  /* Above the slice if there is room, else below; never beyond the window's edge. */
  function place(slice) {
    const size = tip.getBoundingClientRect();
    const middle = slice.left + slice.width / 2 - size.width / 2;
    const left = Math.max(8, Math.min(middle, document.documentElement.clientWidth - size.width - 8));
    const above = slice.top - size.height - 8;
    tip.style.left = left + "px";
    tip.style.top = (above > 8 ? above : slice.bottom + 8) + "px";
  }

  function follow() {
    if (tip.hidden) return;
    if (shown.isConnected) place(shown.getBoundingClientRect());
    else hide();
  }

  document.addEventListener("scroll", follow, { capture: true, passive: true });
  return { show, hide };
}
