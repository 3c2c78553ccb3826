/* Pods on their way: small squares that fly from where they were to where they go, for those who like motion. */

const FLIGHT_MS = 700;
const MOST = 120;

/* `moves`: pod -> {box, to, rank}; `place` says where a node is on the screen now. */
export function drawMoves(moves, place) {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  let count = 0;
  for (const { box, to, rank } of moves.values()) {
    const target = place(to);
    if (!target || count++ >= MOST) continue;
    fly(box, target, rank);
  }
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
