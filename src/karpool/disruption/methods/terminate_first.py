"""Terminate-first: a node goes before its replacement can be launched, where there is no room for both.

That is so for a node in a full reservation, whose slot only it can free, and for a pool of fixed size at its limit of
nodes. A feature gate for each cause allows it; ordinary provisioning fills the gap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command, Method, Move, TerminateFirst
from karpool.disruption.context import DecisionContext
from karpool.model.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from karpool.model.nodepool import NodePool
from karpool.packing.engine import Engine
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.templates import template_of

METHOD_OF: Final = {Cause.UNHEALTHY: Method.REPAIR, Cause.DRIFTED: Method.DRIFT}


def allowed_first(context: DecisionContext, cause: Cause) -> bool:
    """Whether nodes may go for a cause before anything replaces them."""
    settings = context.settings
    return settings.terminate_first_repair if cause is Cause.UNHEALTHY else settings.terminate_first_drift


def for_its_slot(context: DecisionContext, candidate: Candidate, moving: Sequence[int], cause: Cause) -> Command | None:
    """The command that ends a node of a full reservation, if its pods fit once its slot is free; else None."""
    reservation = _reservation(candidate)
    if not allowed_first(context, cause) or reservation is None:
        return None
    engine = Engine(context.snapshot, _credited(context.catalog, reservation), context.engine.options)
    nodes, pods = context.snapshot.nodes, context.snapshot.pods
    moves = []
    with engine.what_if() as trial:
        trial.remove([candidate.row])
        placement = trial.place(moving, strict_reserved=True)
        for row, target in zip(placement.pods, placement.targets, strict=True):
            pod = pods.get(row)
            if target == UNPLACED:
                return None
            if target >= 0:
                state = nodes.get(target)
                if not state.initialized and not context.expected(pod):
                    return None
                source = None if pod.key in context.pending else candidate.name
                moves.append(Move(pod.key, source, state.name, leaving=pod.key in context.leaving))
    command = ends_first(context, candidate, cause, TerminateFirst.NO_RESERVED_CAPACITY)
    return replace(command, moves=tuple(sorted(moves, key=lambda move: move.pod)))


def ends_first(context: DecisionContext, candidate: Candidate, cause: Cause, why: TerminateFirst) -> Command:
    """A command that ends a node; where its pods go is seen when something replaces it."""
    here = (context.snapshot.pods.get(row) for row in candidate.pods)
    return Command(
        method=METHOD_OF[cause],
        cause=cause,
        nodes=(candidate.name,),
        price=candidate.price or 0.0,
        unpriced=int(candidate.price is None),
        disruption_cost=candidate.cost,
        waves=context.pdbs.waves([pod for pod in here if not context.expected(pod)], context.now),
        terminate_first=why,
    )


def reservations_full(context: DecisionContext, pool: NodePool) -> bool:
    """Whether a pool can have reserved nodes only, and none of these now."""
    offerings = list(_offerings(context.catalog, pool))
    return all(offering.reserved for offering in offerings) and not any(offering.launchable for offering in offerings)


def holds_slot(context: DecisionContext, candidate: Candidate, pool: NodePool) -> bool:
    """Whether a node takes a place in a reservation that is still offered."""
    reservation = _reservation(candidate)
    offered = {offering.reservation_id for offering in _offerings(context.catalog, pool) if offering.available}
    return reservation is not None and reservation in offered


def _reservation(candidate: Candidate) -> str | None:
    labels = candidate.state.labels
    return labels.get(RESERVATION_ID) if labels.get(CAPACITY_TYPE) == RESERVED else None


def _offerings(catalog: Catalog, pool: NodePool) -> Iterator[Offering]:
    """What nodes of a pool can be, whether that can be had now or not."""
    wanted = template_of(pool).requirements
    for entry in catalog.types:
        if entry.meets(wanted):
            yield from (offering for offering in entry.offerings if offering.requirements.meets(wanted))


def _credited(catalog: Catalog, reservation: str) -> Catalog:
    """A catalogue with one more unit of a reservation."""
    return replace(catalog, types=tuple(_with_unit(entry, reservation) for entry in catalog.types))


def _with_unit(entry: InstanceType, reservation: str) -> InstanceType:
    if not any(offering.reservation_id == reservation for offering in entry.offerings):
        return entry
    offerings = (
        replace(offering, reservation_capacity=offering.reservation_capacity + 1)
        if offering.reservation_id == reservation
        else offering
        for offering in entry.offerings
    )
    return replace(entry, offerings=tuple(offerings))
