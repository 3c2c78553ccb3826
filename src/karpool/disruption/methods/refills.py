"""What ordinary provisioning launches in the place of a node that goes first, and which of its pods find room then.

A pool of fixed size launches the cheapest node that it may have, whatever the pods of the old one need. Elsewhere new
nodes come for the pods. Either may have the slot of a reservation that the old node gives back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.cluster.arrays import Array
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Move, Replacement
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.replacements import ReplacementFinder
from karpool.model.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from karpool.model.nodepool import NodePool
from karpool.packing.engine import Engine
from karpool.packing.placement import Placement
from karpool.packing.templates import template_of

_FIRST_NEW: Final = -2
"""The target of pods that a placement puts on its first new node; those of the next are smaller by one each."""


class Refill(NamedTuple):
    """The nodes that come once another is gone, its pods that have a place then, and the keys of the others."""

    nodes: tuple[Replacement, ...]
    moves: tuple[Move, ...]
    displaced: tuple[str, ...] = ()


def reservation_of(labels: Mapping[str, str]) -> str | None:
    """The reservation in which a node has a slot."""
    return labels.get(RESERVATION_ID) if labels.get(CAPACITY_TYPE) == RESERVED else None


def credited(catalog: Catalog, reservation: str | None) -> Catalog:
    """A catalogue with one more unit of a reservation; the same one if it offers none."""
    if reservation is None or not any(_offers(entry, reservation) for entry in catalog.types):
        return catalog
    return replace(catalog, types=tuple(_with_unit(entry, reservation) for entry in catalog.types))


def engine_without(context: DecisionContext, candidate: Candidate) -> Engine:
    """An engine that knows that a node gives its slot back."""
    catalog = credited(context.catalog, reservation_of(candidate.state.labels))
    if catalog is context.catalog:
        return context.engine
    return Engine(context.snapshot, catalog, context.engine.options)


def refill_for_pods(context: DecisionContext, engine: Engine, placement: Placement) -> Refill | None:
    """What comes for pods that a trial of this engine has placed; None if no type can be named for some."""
    finder = ReplacementFinder(context, engine)
    made = [finder.at_any_price(placement, claim) for claim in range(placement.claims)]
    nodes = tuple(new for new in made if new is not None)
    if len(nodes) < len(made):
        return None
    return Refill(nodes, _moves(context, placement.pods, placement.targets))


def refill_of_static(context: DecisionContext, candidate: Candidate, pool: NodePool, moving: Sequence[int]) -> Refill:
    """What a pool of fixed size launches again, and which pods of the old node it holds."""
    snapshot, finder = context.snapshot, ReplacementFinder(context, engine_without(context, candidate))
    width, wanted = len(snapshot.resources), template_of(pool).requirements
    room = finder.table.room_in(pool.name, snapshot.resources)[:, :width]
    requests = snapshot.classes.requests[:, :width]
    # What is on every node of the pool is on the new one, too, and decides with the price of which type it is.
    everywhere = snapshot.nodes.taken[candidate.row, :width] - _sum(requests, snapshot, candidate.pods)
    types = np.flatnonzero(finder.table.suitable(wanted) & (room >= everywhere).all(axis=1))
    nodes = (finder.made(pool.name, wanted, types),) if len(types) else ()
    fitting: list[int] = []
    if nodes:
        left = room[finder.table.numbers(nodes[0].instance_types[:1])[0]] - everywhere
        fitting = _fitting(snapshot, requests, left, moving)
    others = (snapshot.pods.get(row) for row in set(moving).difference(fitting))
    displaced = sorted(pod.key for pod in others if not context.expected(pod) and not pod.is_headroom)
    return Refill(nodes, _moves(context, fitting, [_FIRST_NEW] * len(fitting)), tuple(displaced))


def _sum(requests: Array, snapshot: Snapshot, rows: Sequence[int]) -> Array:
    total: Array = requests[snapshot.pods.class_of[list(rows)]].sum(axis=0)
    return total


def _fitting(snapshot: Snapshot, requests: Array, left: Array, moving: Sequence[int]) -> list[int]:
    """The pods that find room on a new node, largest first."""
    rows, fitting = np.array(moving, dtype=np.int32), []
    for row in rows[snapshot.pods.ranking.order(rows)].tolist():
        asked = requests[snapshot.pods.class_of[row]]
        if (asked <= left).all():
            left = left - asked
            fitting.append(row)
    return fitting


def _moves(context: DecisionContext, rows: Sequence[int], targets: Sequence[int]) -> tuple[Move, ...]:
    pods, nodes = context.snapshot.pods, context.snapshot.nodes
    moves = []
    for row, target in zip(rows, targets, strict=True):
        pod = pods.get(row)
        key, headroom = pod.key, pod.is_headroom
        source = None if key in context.pending and not headroom else nodes.get(int(pods.node_of[row])).name
        place = nodes.get(target).name if target >= 0 else _FIRST_NEW - target
        moves.append(Move(pod=key, source=source, target=place, leaving=key in context.leaving, headroom=headroom))
    return tuple(sorted(moves, key=lambda move: move.pod))


def _offers(entry: InstanceType, reservation: str) -> bool:
    return any(offering.reservation_id == reservation for offering in entry.offerings)


def _with_unit(entry: InstanceType, reservation: str) -> InstanceType:
    if not _offers(entry, reservation):
        return entry
    offerings = (
        replace(offering, reservation_capacity=offering.reservation_capacity + 1)
        if offering.reservation_id == reservation
        else offering
        for offering in entry.offerings
    )
    return replace(entry, offerings=tuple(offerings))
