"""NodeClaims for pending pods, and for pods whose nodes go."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.reasons import Reason
from karpool.packing.engine import Engine
from karpool.packing.gangs import held_back
from karpool.packing.refusals import why_unplaced
from karpool.packing.result import PlacementResult
from karpool.provisioning.claims import NodeRequest, claim_name, new_claim, with_offered_kinds
from karpool.provisioning.shortages import with_free_slots


@dataclass(frozen=True, slots=True)
class ProvisioningResult:
    """Claims to create, pods by the node or new claim that they are nominated to, and pods without a place, and why.

    Headroom is no pod: nothing is nominated to it, and it is never without a place.
    """

    claims: tuple[NodeClaim, ...] = ()
    nominations: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unschedulable: tuple[tuple[str, Reason], ...] = ()
    deferred: tuple[str, ...] = ()
    """Pods without a place that would have one if there were more of a reservation: they wait for it."""
    headroom: Mapping[str, bool] = field(default_factory=dict)
    """By key of a pod of headroom: whether a node that exists has room for it."""


def provision(engine: Engine, objects: Objects, wanted: Collection[str], now: datetime) -> ProvisioningResult:
    """The nodes to create for pods that the scheduler has no node for, and for bound pods that have to move.

    Existing and in-flight nodes are filled first. No claim is created without pods, and none for a part of a gang.
    """
    snapshot = engine.snapshot
    every = sorted(snapshot.pods.rows[key] for key in wanted if key in snapshot.pods.rows)
    held = _held_back(engine, every)
    rows = [row for row in every if row not in held]
    with engine.what_if() as trial:
        trial.uncount([row for row in rows if int(snapshot.pods.node_of[row]) >= 0])
        placed = trial.place(rows, exempt=[True] * len(rows), strict_reserved=True).result()
        unplaced = sorted(placed.unplaced)
        reasons = {key: why_unplaced(engine, snapshot.pods.rows[key], exempt=True) for key in unplaced}
    reasons.update((snapshot.pods.get(row).key, why) for row, why in sorted(held.items()))
    waiting = _waiting_for_reservations(engine, unplaced)
    headroom = {pod.key for row in every if (pod := snapshot.pods.get(row)).is_headroom}
    claims = _claims(objects, snapshot, engine.catalog, placed, now)
    there = {key for key, target in placed.placed.items() if isinstance(target, str)}
    return ProvisioningResult(
        claims=claims,
        nominations=_nominations(claims, placed, headroom),
        unschedulable=tuple(
            (key, Reason("PodsWouldNotFit", f"no node can take it: {why}", f"Pod {key}"))
            for key, why in sorted(reasons.items())
            if key not in headroom and key not in waiting
        ),
        deferred=tuple(key for key in unplaced if key in waiting and key not in headroom),
        headroom={key: key in there for key in sorted(headroom)},
    )


def _held_back(engine: Engine, wanted: Sequence[int]) -> Mapping[int, str]:
    """Pods, by row, of gangs for which there is no room as a whole, be it on new nodes."""
    pods = engine.snapshot.pods
    waiting = [row for row in wanted if int(pods.node_of[row]) < 0]
    moving = [row for row in wanted if int(pods.node_of[row]) >= 0]

    def homeless(rows: Sequence[int]) -> list[int]:
        placed = [*rows, *moving]
        with engine.what_if() as trial:
            trial.uncount(moving)
            found = trial.place(placed, exempt=[True] * len(placed), strict_reserved=True).result()
        return [pods.rows[key] for key in found.unplaced]

    return held_back(engine.snapshot, waiting, homeless)


def _nominations(
    claims: Sequence[NodeClaim], placed: PlacementResult, headroom: Collection[str]
) -> dict[str, frozenset[str]]:
    guests: dict[str, set[str]] = {}
    there = ((target, (key,)) for key, target in placed.placed.items() if isinstance(target, str))
    new = ((claim.name, node.pods) for claim, node in zip(claims, placed.new_nodes, strict=True))
    for name, keys in (*there, *new):
        guests.setdefault(name, set()).update(key for key in keys if key not in headroom)
    return {name: frozenset(keys) for name, keys in guests.items() if keys}


def _waiting_for_reservations(engine: Engine, unplaced: Sequence[str]) -> set[str]:
    """Of pods without a place, those that reserved capacity would have one for if it were not used up."""
    if not unplaced:
        return set()
    roomy = with_free_slots(engine.catalog, len(unplaced))
    if roomy is engine.catalog:
        return set()
    other = Engine(engine.snapshot, roomy, engine.options)
    pods = engine.snapshot.pods
    rows = [pods.rows[key] for key in unplaced]
    with other.what_if() as trial:
        trial.uncount([row for row in rows if int(pods.node_of[row]) >= 0])
        placed = trial.place(rows, exempt=[True] * len(rows)).result()
    return {key for new in placed.new_nodes if new.reservations for key in new.pods}


def _claims(
    objects: Objects, snapshot: Snapshot, catalog: Catalog, placed: PlacementResult, now: datetime
) -> tuple[NodeClaim, ...]:
    if not placed.new_nodes:
        return ()
    pools = {pool.name: pool for pool in objects.node_pools}
    taken = {claim.name for claim in objects.node_claims}
    claims = []
    for number, new in enumerate(placed.new_nodes):
        requirements = with_offered_kinds(new.requirements, new.instance_types, catalog)
        pods = tuple(snapshot.pods.get(snapshot.pods.rows[key]) for key in new.pods)
        request = NodeRequest(requirements, new.instance_types, pods, new.min_values_relaxed, new.drivers)
        names = (claim_name(new.pool, now.isoformat(), f"{number}", f"{n}", *new.pods[:1]) for n in itertools.count())
        name = next(name for name in names if name not in taken)
        taken.add(name)
        types = [catalog.by_name[kind] for kind in new.instance_types]
        claims.append(new_claim(pools[new.pool], request, name=name, daemons=snapshot.daemons, types=types))
    return tuple(claims)
