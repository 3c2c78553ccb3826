"""New places for pods that ask for more than before: those that no longer fit where they are have to go.

Pods with other requests are made anew, so the scheduler looks for a node for each of them, and new nodes are launched
for those that find none. Pods for which there is no place at all are told, because no price speaks of them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as changed

from karpool.disruption.command import Cause, Command, Method, Move
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.replacements import ReplacementFinder
from karpool.disruption.predict import apply
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.what_if.question import Question
from karpool.disruption.what_if.reached import reached
from karpool.model.objects import Objects
from karpool.model.pod import Amounts, Pod
from karpool.model.reasons import Reason
from karpool.model.requests import effective_requests
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusals import why_unplaced

_OWN_NODE: Final = "its node has no room for it, and it belongs to no other"


@dataclass(frozen=True, slots=True)
class NewPlaces:
    """A cluster in which pods that no longer fitted have other places."""

    question: Question
    displaced: int = 0
    """How many pods no longer fitted where they were."""
    launched: int = 0
    """How many new nodes they need."""
    unplaced: tuple[tuple[str, Reason], ...] = ()
    """Those of them for which there is no place, and why; they are on no node."""


def without_overflow(objects: Objects, chosen: Callable[[Pod], bool], resources: Collection[str]) -> tuple[Pod, ...]:
    """All pods, those of `chosen` unbound that no longer fit on their nodes: the largest first, so that few have to go.

    Only `resources` are looked at.
    """
    rooms = {node.name: node.status.allocatable for node in objects.nodes}
    here = defaultdict[str, list[Pod]](list)
    for pod in objects.pods:
        if pod.spec.node_name in rooms and not pod.terminal and not pod.unreadable:
            here[pod.spec.node_name].append(pod)
    out = set[str]()
    for name, pods in here.items():
        if any(map(chosen, pods)):
            room = {resource: rooms[name][resource].nano for resource in resources if resource in rooms[name]}
            out.update(_too_many(pods, chosen, room))
    return tuple(changed(pod, spec=changed(pod.spec, node_name="")) if pod.key in out else pod for pod in objects.pods)


def _too_many(pods: Iterable[Pod], chosen: Callable[[Pod], bool], room: Mapping[str, int]) -> set[str]:
    """Keys of the chosen pods that have to leave a node so that the others fit."""
    asked = {pod.key: effective_requests(pod) for pod in pods}
    over = {name: sum(_nano(wants, name) for wants in asked.values()) - most for name, most in room.items()}
    movable = {pod.key for pod in pods if chosen(pod) and pod.active}
    out = set[str]()
    while movable and max(over.values(), default=0) > 0:
        scarcest = max(over, key=lambda name: over[name] / max(1, room[name]))
        largest = max(sorted(movable), key=lambda key: _nano(asked[key], scarcest))
        movable.discard(largest)
        out.add(largest)
        over = {name: much - _nano(asked[largest], name) for name, much in over.items()}
    return out


def _nano(wants: Amounts, name: str) -> int:
    return wants[name].nano if name in wants else 0


def with_new_places(before: Question, after: Question) -> NewPlaces:
    """The question with places for the pods that knobs have taken from their nodes; new nodes are launched for them."""
    if after.objects.pods is before.objects.pods:
        return NewPlaces(after)
    bound = {pod.key for pod in before.objects.pods if pod.bound}
    displaced = {pod.key: pod for pod in after.objects.pods if not pod.bound and pod.key in bound}
    if not displaced:
        return NewPlaces(after)
    context = after.context()
    pods = context.snapshot.pods
    unplaced = {
        key: _OWN_NODE if pod.is_daemon or pod.is_mirror else "it is gated"
        for key, pod in displaced.items()
        if not pod.waits_for_node
    }
    rows = [row for row in context.unplaced if pods.get(row).key in displaced]
    launches, refused = _launches(context, rows)
    unplaced.update(refused)
    names = _names(context, len(launches.replacements))
    apply(context, launches, names)
    context.pending.difference_update(displaced)  # they are on their new nodes now
    return NewPlaces(
        question=replace(reached(after, context), settings=after.settings),
        displaced=len(displaced),
        launched=len(names),
        unplaced=tuple(
            (key, Reason(ReasonCode.PODS_WOULD_NOT_FIT, f"no node can take it: {why}", f"Pod {key}"))
            for key, why in sorted(unplaced.items())
        ),
    )


def _launches(context: DecisionContext, rows: Sequence[int]) -> tuple[Command, dict[str, str]]:
    """A command that launches what pods need, and why some of them find no place even so."""
    finder, pods = ReplacementFinder(context), context.snapshot.pods
    with context.engine.what_if() as trial:
        placement = trial.place(rows, exempt=[True] * len(rows))
        made = [finder.at_any_price(placement, claim) for claim in range(placement.claims)]
        numbers = {claim: at for at, claim in enumerate(claim for claim, new in enumerate(made) if new is not None)}
        moves, refused = list[Move](), dict[str, str]()
        for row, target in zip(placement.pods, placement.targets, strict=True):
            key = pods.get(row).key
            if target == UNPLACED:
                why = context.held_back.get(row) or why_unplaced(context.engine, row, exempt=True)
                refused[key] = why or "there is none"
            elif target >= 0:
                moves.append(Move(key, None, context.snapshot.nodes.get(target).name))
            elif -2 - target in numbers:
                moves.append(Move(key, None, numbers[-2 - target]))
            else:
                refused[key] = "the types that a NodeClaim can name are too few for its pool's minValues"
    replacements = tuple(new for new in made if new is not None)
    command = Command(Method.SINGLE_NODE, Cause.EMPTY, (), replacements, tuple(moves))
    return command, refused


def _names(context: DecisionContext, count: int) -> list[str]:
    """Names that no node has."""
    names, number = list[str](), 0
    while len(names) < count:
        number += 1
        if (name := f"new-{number}") not in context.snapshot.nodes.rows:
            names.append(name)
    return names
