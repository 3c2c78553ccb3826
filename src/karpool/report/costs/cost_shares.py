"""What each pod takes of the price of its node.

The price of a node is divided into equal parts: one for its CPU, one for its memory, and one for its accelerators if it
has any. A pod pays for the share of each part that it requests, DaemonSets and static pods together for theirs, and
what nobody requests is idle. Where more is requested of a part than there is, shares are reduced in proportion. So the
shares of a node are its price, whoever is on it, and what a pod costs does not depend on who its neighbours are.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.resources import CPU, MEMORY
from karpool.disruption.context import DecisionContext
from karpool.model.pod import Pod

_ACCELERATOR: Final = re.compile(
    r"nvidia\.com/|amd\.com/gpu|gpu\.intel\.com/|habana\.ai/|google\.com/tpu|aws\.amazon\.com/neuron"
)
"""Resources that machines are bought for; one machine may offer the same device under several names."""


@dataclass(frozen=True, slots=True)
class NodeShares:
    """A node's price, if it is known, and who pays it; the amounts of a node of unknown price are None."""

    price: float | None
    pods: tuple[tuple[Pod, float | None], ...]
    system: float | None
    """DaemonSets and static pods; those of DaemonSets that are still to come are counted, too."""
    idle: float | None


def node_shares(context: DecisionContext) -> Iterator[NodeShares]:
    """The shares of every node; a pod that waits counts where there is room for it."""
    accelerators = _accelerators(context)
    for row in context.rows():
        yield _shares(context, row, accelerators)


def _accelerators(context: DecisionContext) -> list[int]:
    return [column for name, column in context.snapshot.resources.index.items() if _ACCELERATOR.match(name)]


def _shares(context: DecisionContext, row: int, accelerators: list[int]) -> NodeShares:
    snapshot, price = context.snapshot, context.candidate(row).price
    rows = snapshot.pods_on(row)
    pods = [snapshot.pods.get(at) for at in rows]
    paying = [at for at, pod in zip(rows, pods, strict=True) if not _of_system(pod)]
    named = [pod for pod in pods if not _of_system(pod)]
    if price is None:
        return NodeShares(None, tuple((pod, None) for pod in named), None, None)
    width = len(snapshot.resources)
    asked = snapshot.classes.requests[snapshot.pods.class_of[paying], :width]
    others = _system_requests(context, row, [at for at, pod in zip(rows, pods, strict=True) if _of_system(pod)])
    taken = _taken(np.vstack((asked, others[None])), snapshot.nodes.room[row, :width], accelerators)
    costs = (price * taken).tolist()
    # The last is what the system takes; what is left over is idle, so that all of it is the price.
    return NodeShares(price, tuple(zip(named, costs, strict=False)), costs[-1], max(0.0, price - math.fsum(costs)))


def _of_system(pod: Pod) -> bool:
    return pod.is_daemon or pod.is_mirror


def _system_requests(context: DecisionContext, row: int, rows: list[int]) -> Array:
    """What DaemonSets and static pods request of a node, as far as known; at least what DaemonSets will take."""
    snapshot, width = context.snapshot, len(context.snapshot.resources)
    requests = snapshot.classes.requests[snapshot.pods.class_of[rows], :width].sum(axis=0)
    nodes = snapshot.nodes
    to_come = nodes.overhead[nodes.shape[row], :width] - nodes.daemon_taken[row, :width]
    total: Array = requests + np.maximum(0, to_come)
    return total


def _taken(requests: Array, room: Array, accelerators: list[int]) -> Array:
    """By request: the share of the whole node that it takes, at most 1 for all of them together."""
    parts = [[column] for column in (CPU, MEMORY) if room[column] > 0]
    devices = [column for column in accelerators if room[column] > 0]
    parts += [devices] if devices else []
    shares: Array = np.zeros(len(requests))
    for columns in parts:
        part = (requests[:, columns] / room[columns]).max(axis=1)
        shares += part / max(1.0, float(part.sum())) / len(parts)
    return shares
