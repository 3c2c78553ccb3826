/* Pods on their way: small squares that fly from where they were to where they go, for those who like motion. */

const FLIGHT_MS = 700;
const MOST = 120;
const FOLLOWS_MS = 60000;

/* `moves`: [{box, to, rank}]; `place` says where a node is on the screen now. */
export function drawMoves(moves, place, most = MOST) {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  let count = 0;
  for (const { box, to, rank } of moves) {
    if (count >= most) break;
    const target = place(to);
    if (!target || !(seen(box) || seen(target))) continue;
    count += 1;
    fly(box, target, rank);
  }
}

/* Who comes for whom in a live cluster: a pod that moves is one that goes, and another one of its workload that comes. */
export class Follower {
  constructor() {
    this.left = new Map(); /* workload -> [{box, at}] */
  }

  /* What has happened as moves; `place` says where nodes were until now, `waiting` where pods without a node are. */
  moves({ left, landed }, place, waiting) {
    const now = performance.now();
    for (const { pod, node } of left) {
      const box = pod.daemon ? null : place(node.name);
      if (box) this.left.set(pod.workload, [...(this.left.get(pod.workload) || []).slice(-MOST), { box, at: now }]);
    }
    return landed.filter(({ pod }) => !pod.daemon).map(({ pod, node, from }) => ({ pod, box: (from && place(from.name)) || this.before(pod, now) || waiting, to: node.name }));
  }

  before(pod, now) {
    const own = (this.left.get(pod.workload) || []).filter(({ at }) => now - at < FOLLOWS_MS);
    const first = own.shift();
    if (own.length) this.left.set(pod.workload, own);
    else this.left.delete(pod.workload);
    return first ? first.box : null;
  }
}

function seen(box) {
  return box.top < innerHeight && box.top + box.height > 0;
}

function fly(from, to, rank) {
  const pod = element("i.flying.c" + (rank ?? 10), { "aria-hidden": "true" });
  const middle = (box) => [box.left + (box.width || 0) / 2, box.top + ((box.height || 0) / 2)];
  const [x0, y0] = middle(from);
  const [x1, y1] = middle(to);
  document.body.append(pod);
  const flight = pod.animate(
    [
      { transform: `translate(${x0}px, ${y0}px) scale(1)`, opacity: 0.2 },
      { opacity: 1, offset: 0.15 },
      { transform: `translate(${x1}px, ${y1}px) scale(1)`, opacity: 0.9 },
    ],
    { duration: FLIGHT_MS + Math.random() * 250, easing: "cubic-bezier(.4, 0, .2, 1)" }
  );
  flight.onfinish = flight.oncancel = () => pod.remove();
}
