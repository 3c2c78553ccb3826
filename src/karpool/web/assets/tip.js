/* One tooltip for cells and slices. */

import { share } from "./fleet.js";

export function makeTip(describe) {
  const tip = byId("tip");

  function show(node, box) {
    tip.replaceChildren(
      element("p.tip-name", null, node.name),
      element("p", null, [money(node.price), node.type, node.capacity, node.zone].filter(Boolean).join(" · ")),
      element("p", null, `CPU ${percent(share(node, "cpu"))} of ${cores(node.cpu)} · memory ${percent(share(node, "memory"))} of ${memory(node.memory)}`),
      element("p", null, `${plural(node.pods.size, "pod")} · ${describe(node)}`)
    );
    place(box);
  }

  function showPod(node, pod, box) {
    tip.replaceChildren(
      element("p.tip-name", null, pod.name),
      element("p.tip-work", null, pod.workload + (pod.daemon ? " (comes and goes with its node)" : "")),
      line("CPU", cores(pod.cpu), pod.cpu / node.cpu),
      line("Memory", memory(pod.memory), pod.memory / node.memory)
    );
    place(box);
  }

  function line(label, amount, part) {
    return element("p", null, element("span.quiet", null, label + " "), `${amount} (${percent(part)} of the node)`);
  }

  /* Above if there is room, else below; never beyond the window's edge. */
  function place(box) {
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const middle = box.left + box.width / 2 - size.width / 2;
    const above = box.top - size.height - 8;
    tip.style.left = Math.max(8, Math.min(middle, document.documentElement.clientWidth - size.width - 8)) + "px";
    tip.style.top = (above > 8 ? above : box.bottom + 8) + "px";
  }

  function hide() {
    tip.hidden = true;
  }

  return { show, showPod, hide };
}
