"""In which order a scheduler sees the pods that come back when nodes are drained.

Drains evict the pods of a node by name, those that share a PodDisruptionBudget in waves. A controller makes its missing
pods together when it sees that the first of them is gone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from karpool.disruption.command import Move
from karpool.disruption.context import DecisionContext
from karpool.model.pod import Pod


def in_order_of_arrival(context: DecisionContext, moves: Mapping[int, Move], nodes: Sequence[str]) -> list[int]:
    """The rows of pods, by row, that leave nodes; room that is only kept comes last."""
    pods = context.snapshot.pods
    turn = {name: at for at, name in enumerate(sorted(nodes))}
    evicted = sorted(moves, key=lambda row: (turn.get(moves[row].source or "", -1), moves[row].pod))
    seen: Counter[str] = Counter()
    first: dict[tuple[int, str], int] = {}
    places: dict[int, tuple[bool, int, int, int]] = {}
    for at, row in enumerate(evicted):
        pod = pods.get(row)
        wave = _wave(context, pod, seen)
        made_with = first.setdefault((wave, _controller(pod)), at)
        places[row] = (moves[row].headroom, wave, made_with, at)
    return sorted(evicted, key=places.__getitem__)


def _wave(context: DecisionContext, pod: Pod, seen: Counter[str]) -> int:
    """In which wave PodDisruptionBudgets let a pod go, if those before it were counted."""
    wave = 0
    for budget in context.pdbs.matching(pod):
        wave = max(wave, seen[budget.key] // max(1, budget.status.disruptions_allowed))
        seen[budget.key] += 1
    return wave


def _controller(pod: Pod) -> str:
    """Who makes a pod anew."""
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    return pod.key if owner is None else f"{pod.metadata.namespace}/{owner.kind}/{owner.name}"
