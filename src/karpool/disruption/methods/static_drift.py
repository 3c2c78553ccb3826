"""Static drift: pools with a fixed number of nodes get a new node for each drifted one, within their limit of nodes."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import numpy as np

from karpool.disruption.budgets import UNLIMITED
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command, Move, TerminateFirst
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.refills import refill_of_static
from karpool.disruption.methods.replacements import ReplacementFinder
from karpool.disruption.methods.terminate_first import (
    METHOD_OF,
    allowed_first,
    ends_first,
    holds_slot,
    reservations_full,
)
from karpool.disruption.reasons import ReasonCode
from karpool.model.nodepool import NodePool
from karpool.model.reading.unreadable import UNKNOWN
from karpool.model.reasons import Reason
from karpool.packing.templates import template_of


def static_replacements(context: DecisionContext, drifted: Sequence[Candidate]) -> tuple[Command, ...]:
    """One command for each drifted node that the budget and the limit of its pool let go now."""
    by_pool: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in drifted:
        by_pool[candidate.pool_name].append(candidate)
    commands: list[Command] = []
    for members in by_pool.values():
        pool = members[0].pool
        if pool is not None:
            commands += _of_pool(context, pool, members)
    return tuple(commands)


def _of_pool(context: DecisionContext, pool: NodePool, members: Sequence[Candidate]) -> list[Command]:
    granted = min(context.allowance(pool, Cause.DRIFTED).remaining, len(members))
    room = room_for(context, pool)
    if granted <= 0 or _hopeless(room):
        return []
    first = (ended_first(context, node, pool, room, Cause.DRIFTED) for node in members)
    early = list(islice((command for command in first if isinstance(command, Command)), granted))
    if early or isinstance(room, Reason) or _full(context, pool, Cause.DRIFTED):
        return early
    commands = (replacement_for(context, candidate, pool) for candidate in members)
    return list(islice((command for command in commands if command is not None), min(granted, room)))


def _hopeless(room: int | Reason) -> bool:
    """Whether a pool lets nothing go, whatever comes first."""
    return isinstance(room, Reason) and room.code != ReasonCode.NODE_LIMIT_REACHED


def _full(context: DecisionContext, pool: NodePool, cause: Cause) -> bool:
    return _allowed_first(context, cause) and reservations_full(context, pool)


def _allowed_first(context: DecisionContext, cause: Cause) -> bool:
    """Whether nodes may go first; nobody would refill the pool without the gate of static pools."""
    return context.settings.static_capacity and allowed_first(context, cause)


def ended_first(
    context: DecisionContext, candidate: Candidate, pool: NodePool, room: int | Reason, cause: Cause
) -> Command | Reason | None:
    """What ends a node before anything can replace it, or why that does not help; None if it need not be."""
    if _full(context, pool, cause):
        if holds_slot(context, candidate, pool):
            return _refilled(context, candidate, pool, cause, TerminateFirst.NO_RESERVED_CAPACITY)
        message = "all reservations of its pool are full, and it has no place in one that it could give back"
        return Reason(ReasonCode.PODS_WOULD_NOT_FIT, message, f"Node {candidate.name}")
    if isinstance(room, Reason) and _allowed_first(context, cause):
        return _refilled(context, candidate, pool, cause, TerminateFirst.STATIC_AT_LIMIT)
    return None


def _refilled(
    context: DecisionContext, candidate: Candidate, pool: NodePool, cause: Cause, why: TerminateFirst
) -> Command:
    """A command that ends a node, whose pool launches another then."""
    moving = _moving(context, candidate, cause)
    refill = refill_of_static(context, candidate, pool, moving)
    return ends_first(context, candidate, cause, why, refill=refill, moving=moving)


def _moving(context: DecisionContext, candidate: Candidate, cause: Cause) -> Sequence[int]:
    """The pods that are given another place; a broken node keeps none."""
    return candidate.pods if cause is Cause.UNHEALTHY else context.movers(candidate)


def room_for(context: DecisionContext, pool: NodePool) -> int | Reason:
    """How many nodes a pool may have on top of those it has; or why it may have none."""
    nodes = context.snapshot.nodes
    mine = [state for row in nodes.rows.values() if (state := nodes.get(row)).managed and state.pool == pool.name]
    active, wanted = sum(not state.deleting for state in mine), pool.spec.replicas or 0
    limit = pool.spec.limits.get("nodes")
    withheld = not context.snapshot.withheld_pools.isdisjoint((pool.name, UNKNOWN))
    if withheld or not pool.ready:
        return Reason(ReasonCode.NO_READY_NODE_POOL, "cannot supply new nodes now", f"NodePool {pool.name}")
    if active > wanted:
        message = f"has {active} nodes and wants {wanted}: it loses nodes before it replaces any"
        return Reason(ReasonCode.SCALE_DOWN_FIRST, message, f"NodePool {pool.name}")
    if limit is not None and limit.units <= len(mine):
        message = f"has {len(mine)} nodes of {limit.units} that its limit allows: there is no room for a replacement"
        return Reason(ReasonCode.NODE_LIMIT_REACHED, message, f"NodePool {pool.name}")
    return UNLIMITED if limit is None else limit.units - len(mine)


def static_size(context: DecisionContext, candidate: Candidate, pool: NodePool) -> Reason:
    """Why consolidation leaves a node of a static pool alone, and what the pool does about its size."""
    nodes = context.snapshot.nodes
    states = (nodes.get(row) for row in nodes.rows.values())
    size = sum(state.managed and state.pool == pool.name and not state.deleting for state in states)
    message = f"NodePool {pool.name} keeps a fixed number of nodes: it has {size} and wants {pool.spec.replicas}"
    if not context.settings.static_capacity:
        message += ", and is left at that: the feature gate StaticCapacity is off"
    elif size > (pool.spec.replicas or 0):
        message += ", so that some of them will be deleted, those without pods first"
    elif size < (pool.spec.replicas or 0):
        limit = pool.spec.limits.get("nodes")
        more = limit is None or size < limit.units
        message += ", so that more will be launched" if more else ", and its limit of nodes allows no more"
    return Reason(ReasonCode.STATIC_POOL, message, f"Node {candidate.name}")


def static_outcome(context: DecisionContext, candidate: Candidate, cause: Cause = Cause.DRIFTED) -> Command | Reason:
    """What replaces a node of a static pool, or why nothing does; budgets aside."""
    pool = candidate.pool
    if pool is None:
        return Reason(ReasonCode.NODE_POOL_NOT_FOUND, "its NodePool does not exist", f"Node {candidate.name}")
    room = room_for(context, pool)
    if isinstance(room, Reason) and _hopeless(room):
        return room
    early = ended_first(context, candidate, pool, room, cause)
    if early is not None:
        return early
    if isinstance(room, Reason):
        return room
    message = f"no type of NodePool {pool.name} would hold what it holds"
    refused = Reason(ReasonCode.PODS_WOULD_NOT_FIT, message, f"Node {candidate.name}")
    return replacement_for(context, candidate, pool, cause) or refused


def replacement_for(
    context: DecisionContext,
    candidate: Candidate,
    pool: NodePool,
    cause: Cause = Cause.DRIFTED,
) -> Command | None:
    """A new node of the pool that holds everything the old one holds; None if no type does."""
    snapshot, finder = context.snapshot, ReplacementFinder(context)
    width = len(snapshot.resources)
    room = finder.table.room_in(pool.name, snapshot.resources)
    fits = np.asarray(np.all(room[:, :width] >= snapshot.nodes.taken[candidate.row, :width], axis=1))
    made = finder.of_pool(pool.name, template_of(pool).requirements, fits)
    if made is None:
        return None
    moving = _moving(context, candidate, cause)
    pods = sorted((snapshot.pods.get(row) for row in moving), key=lambda pod: pod.key)
    evicted = [pod for pod in pods if not context.expected(pod)]
    return Command(
        method=METHOD_OF[cause],
        cause=cause,
        nodes=(candidate.name,),
        replacements=(made,),
        moves=tuple(Move(pod=pod.key, source=candidate.name, target=0) for pod in evicted),
        price=candidate.price or 0.0,
        unpriced=int(candidate.price is None),
        disruption_cost=candidate.cost,
        waves=context.pdbs.waves(evicted, context.now),
    )
