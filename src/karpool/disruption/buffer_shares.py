"""What the room that CapacityBuffers keep costs, and where it is."""

from collections import defaultdict
from dataclasses import dataclass

from karpool.cluster.resources import CPU, MEMORY
from karpool.disruption.context import DecisionContext
from karpool.model.headroom import headroom_of


@dataclass(frozen=True, slots=True)
class BufferShare:
    """A buffer's room: for how many pods, on which nodes of today there is some, and what that costs an hour.

    Nodes that hold nothing but headroom cost their whole price; of others it is the share of what it takes most of.
    `price` is None if that of one of the nodes is not known; `reason` says why a buffer has no pods.
    """

    buffer: str
    reason: str
    message: str
    pods: int
    placed: int
    nodes: tuple[str, ...]
    price: float | None


def buffer_shares(context: DecisionContext) -> tuple[BufferShare, ...]:
    """The room of each buffer, by name."""
    if not context.settings.capacity_buffers:
        return ()
    pods, nodes = context.snapshot.pods, context.snapshot.nodes
    shares = []
    weights: dict[int, float] = {}
    for headroom in headroom_of(context.snapshot.objects):
        by_node: defaultdict[int, float] = defaultdict(float)
        placed = 0
        for pod in headroom.pods:
            row = pods.rows.get(pod.key, -1)
            node = int(pods.node_of[row]) if row >= 0 else -1
            if node >= 0:
                placed += 1
                by_node[node] += _share(context, row, node)
        price: float | None = 0.0
        for node, share in by_node.items():
            whole = context.candidate(node).price
            weights.setdefault(node, _weight(context, node))
            price = None if price is None or whole is None else price + whole * share * weights[node]
        names = tuple(sorted(nodes.get(node).name for node in by_node))
        key, reason, message = headroom.buffer.key, headroom.reason, headroom.message
        shares.append(BufferShare(key, reason, message, len(headroom.pods), placed, names, price))
    return tuple(shares)


def _share(context: DecisionContext, row: int, node: int) -> float:
    """The part of a node that a pod takes, by the resource of which it takes most."""
    requests = context.snapshot.classes.requests[context.snapshot.pods.class_of[row]]
    room = context.snapshot.nodes.room[node]
    return max((int(requests[at]) / int(room[at]) for at in (CPU, MEMORY) if room[at]), default=0.0)


def _weight(context: DecisionContext, node: int) -> float:
    """By how much the shares of headroom are raised, so that a node that is there for nothing else is paid for."""
    here = context.snapshot.pods_on(node)
    pods = [(row, context.snapshot.pods.get(row)) for row in here]
    if any(not pod.is_headroom and not pod.is_daemon for _, pod in pods):
        return 1.0
    taken = sum(_share(context, row, node) for row, pod in pods if pod.is_headroom)
    return 1 / taken if taken else 1.0
