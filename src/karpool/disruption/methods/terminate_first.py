"""Terminate-first: a node goes before its replacement can be launched, where there is no room for both.

That is so for a node in a full reservation, whose slot only it can free, and for a pool of fixed size at its limit of
nodes. A feature gate for each cause allows it; ordinary provisioning fills the gap.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from karpool.catalog.instance_types import Catalog, Offering
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command, Method, TerminateFirst
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.refills import Refill, engine_without, refill_for_pods, reservation_of
from karpool.model.nodepool import NodePool
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.templates import template_of

METHOD_OF: Final = {Cause.UNHEALTHY: Method.REPAIR, Cause.DRIFTED: Method.DRIFT}


def allowed_first(context: DecisionContext, cause: Cause) -> bool:
    """Whether nodes may go for a cause before anything replaces them."""
    settings = context.settings
    return settings.terminate_first_repair if cause is Cause.UNHEALTHY else settings.terminate_first_drift


def for_its_slot(context: DecisionContext, candidate: Candidate, moving: Sequence[int], cause: Cause) -> Command | None:
    """The command that ends a node of a full reservation, if its pods fit once its slot is free; else None."""
    if not allowed_first(context, cause) or reservation_of(candidate.state.labels) is None:
        return None
    engine = engine_without(context, candidate)
    nodes, pods = context.snapshot.nodes, context.snapshot.pods
    with engine.what_if() as trial:
        trial.remove([candidate.row])
        placement = trial.place(moving, strict_reserved=True)
        for row, target in zip(placement.pods, placement.targets, strict=True):
            if target == UNPLACED:
                return None
            if target >= 0 and not nodes.get(target).initialized and not context.expected(pods.get(row)):
                return None
        refill = refill_for_pods(context, engine, placement)
    if refill is None:
        return None
    return ends_first(context, candidate, cause, TerminateFirst.NO_RESERVED_CAPACITY, refill=refill, moving=moving)


def ends_first(
    context: DecisionContext,
    candidate: Candidate,
    cause: Cause,
    why: TerminateFirst,
    *,
    refill: Refill,
    moving: Sequence[int],
) -> Command:
    """A command that ends a node, and what is launched in its place then; `moving`: the pods that are asked to go."""
    pods = context.snapshot.pods
    here = (pods.get(row) for row in candidate.pods)
    return Command(
        method=METHOD_OF[cause],
        cause=cause,
        nodes=(candidate.name,),
        moves=refill.moves,
        price=candidate.price or 0.0,
        unpriced=int(candidate.price is None),
        disruption_cost=candidate.cost,
        waves=context.pdbs.waves([pod for pod in here if not context.expected(pod)], context.now),
        ended=tuple(sorted(pods.get(row).key for row in set(candidate.pods).difference(moving))),
        terminate_first=why,
        refills=refill.nodes,
        displaced=refill.displaced,
    )


def reservations_full(context: DecisionContext, pool: NodePool) -> bool:
    """Whether a pool can have reserved nodes only, and none of these now."""
    offerings = list(_offerings(context.catalog, pool))
    return all(offering.reserved for offering in offerings) and not any(offering.launchable for offering in offerings)


def holds_slot(context: DecisionContext, candidate: Candidate, pool: NodePool) -> bool:
    """Whether a node takes a place in a reservation that is still offered."""
    reservation = reservation_of(candidate.state.labels)
    offered = {offering.reservation_id for offering in _offerings(context.catalog, pool) if offering.available}
    return reservation is not None and reservation in offered


def _offerings(catalog: Catalog, pool: NodePool) -> Iterator[Offering]:
    """What nodes of a pool can be, whether that can be had now or not."""
    wanted = template_of(pool).requirements
    for entry in catalog.types:
        if entry.meets(wanted):
            yield from (offering for offering in entry.offerings if offering.requirements.meets(wanted))
