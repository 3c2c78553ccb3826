"""Static drift: pools with a fixed number of nodes get a new node for each drifted one, within their limit of nodes."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.disruption.situation import Situation, Standing
from karpool.model.nodepool import NodePool
from karpool.packing.templates import template_of


def static_drift(situation: Situation, drifted: Sequence[Standing]) -> tuple[Command, ...]:
    """One command for each drifted node that the budget and the limit of its pool let go now."""
    by_pool: dict[str, list[Standing]] = defaultdict(list)
    for one in drifted:
        by_pool[one.state.pool].append(one)
    commands: list[Command] = []
    for members in by_pool.values():
        pool = members[0].pool
        if pool is not None:
            commands += _of_pool(situation, pool, members)
    return tuple(commands)


def _of_pool(situation: Situation, pool: NodePool, members: Sequence[Standing]) -> list[Command]:
    granted = min(situation.allowance(pool, Cause.DRIFTED).remaining, room_for(situation, pool))
    if granted <= 0:
        return []
    found = (replacement_for(situation, one, pool) for one in members)
    return [made for made in found if made is not None][:granted]


def room_for(situation: Situation, pool: NodePool) -> int:
    """How many nodes a pool may have on top of those it has; none while it has more than it should."""
    nodes = situation.snapshot.nodes
    mine = [state for row in nodes.rows.values() if (state := nodes.get(row)).managed and state.pool == pool.name]
    active = sum(not state.deleting for state in mine)
    if active > (pool.spec.replicas or 0):
        return 0
    limit = pool.spec.limits.get("nodes")
    return len(mine) if limit is None else max(0, limit.units - len(mine))


def replacement_for(situation: Situation, standing: Standing, pool: NodePool) -> Command | None:
    """A new node of the pool that holds everything the drifted one holds; None if no type does."""
    engine, snapshot = situation.engine, situation.snapshot
    table = engine.keeper.pools.types
    template = template_of(pool, situation.catalog)
    width = len(snapshot.resources)
    needed = snapshot.nodes.taken[standing.row, :width]
    room, _ = table.rooms(snapshot.resources)
    fits = (room[:, :width] >= needed[: room.shape[1]]).all(axis=1) & table.suitable(template.requirements)
    types = np.flatnonzero(fits)
    if not len(types):
        return None
    prices = engine.prices(template.requirements)
    ordered = types[np.lexsort((table.rank[types], prices[types]))]
    first = table.types[int(ordered[0])]
    offerings = [o for o in first.offerings if o.available and template.requirements.meets(o.requirements)]
    cheapest = min(offerings, key=lambda o: (o.price is None, o.price or 0.0, o.zone))
    price = float(prices[ordered[0]])
    made = Replacement(
        pool=pool.name,
        requirements=template.requirements,
        instance_types=tuple(table.names[ordered].tolist()),
        capacity_type=cheapest.capacity_type,
        zones=tuple(sorted({o.zone for o in offerings if o.capacity_type == cheapest.capacity_type})),
        price=price if np.isfinite(price) else None,
    )
    moves = tuple(
        Move(pod=pod.key, source=standing.name, target=0)
        for pod in sorted((snapshot.pods.get(row) for row in standing.movers), key=lambda pod: pod.key)
        if not situation.expected(pod)
    )
    return Command(
        method=Method.DRIFT,
        cause=Cause.DRIFTED,
        nodes=(standing.name,),
        replacements=(made,),
        moves=moves,
        price=standing.price or 0.0,
        unpriced=int(standing.price is None),
        disruption_cost=standing.cost,
        waves=situation.pdbs.waves([snapshot.pods.get(row) for row in standing.movers], situation.now),
    )
