"""Provisioning: pods that wait, and pods whose nodes go, become NodeClaims."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.reasons import Reason
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.packing.refusals import refusals, sentence
from karpool.packing.result import NewNode, PlacementResult
from karpool.provisioning.claims import Wanted, claim_name, new_claim, with_offered_kinds
from karpool.provisioning.launching import foresee


@dataclass(frozen=True, slots=True)
class ProvisioningResult:
    """Claims to create, nodes that pods were promised (by name), and pods that found no place, with the reason."""

    claims: tuple[NodeClaim, ...] = ()
    nominations: frozenset[str] = frozenset()
    unschedulable: tuple[tuple[str, Reason], ...] = ()


def provision(
    objects: Objects,
    catalog: Catalog,
    now: datetime,
    options: Options | None = None,
    *,
    moving: Collection[str] = (),
) -> ProvisioningResult:
    """The nodes that should come: for pods that the scheduler has no node for, and for bound pods that are `moving`.

    Nodes that exist or are on their way are filled first. Claims without pods are never made.
    """
    options = options or Options()
    seen = foresee(objects, catalog)
    wanted = {pod.key for pod in objects.pods if pod.provisionable} | set(moving)
    if not wanted:
        return ProvisioningResult()
    engine = Engine(Snapshot(seen, preferences=options.preferences), catalog, options)
    return provision_on(engine, objects, wanted, now)


def provision_on(engine: Engine, objects: Objects, wanted: Collection[str], now: datetime) -> ProvisioningResult:
    """The nodes that should come for some pods, asked of an engine that is there already."""
    snapshot = engine.snapshot
    rows = sorted(snapshot.pods.rows[key] for key in wanted if key in snapshot.pods.rows)
    with engine.what_if() as trial:
        trial.uncount([row for row in rows if int(snapshot.pods.node_of[row]) >= 0])
        answer = trial.place(rows, exempt=[True] * len(rows), strict_reserved=True).result()
        reasons = _reasons(engine, answer)
    return ProvisioningResult(
        claims=_claims(objects, snapshot, engine.catalog, answer, now),
        nominations=frozenset(target for target in answer.placed.values() if isinstance(target, str)),
        unschedulable=reasons,
    )


def _reasons(engine: Engine, answer: PlacementResult) -> tuple[tuple[str, Reason], ...]:
    found = []
    for key in sorted(answer.unplaced):
        said = sentence(refusals(engine, engine.snapshot.pods.rows[key], exempt=True))
        found.append((key, Reason("PodsWouldNotFit", f"no node can take it: {said}", f"Pod {key}")))
    return tuple(found)


def _claims(
    objects: Objects, snapshot: Snapshot, catalog: Catalog, answer: PlacementResult, now: datetime
) -> tuple[NodeClaim, ...]:
    if not answer.new_nodes:
        return ()
    pools = {pool.name: pool for pool in objects.node_pools}
    taken = {claim.name for claim in objects.node_claims}
    made = []
    for number, new in enumerate(answer.new_nodes):
        requirements = with_offered_kinds(new.requirements, new.instance_types, catalog)
        pods = tuple(snapshot.pods.get(snapshot.pods.rows[key]) for key in new.pods)
        wanted = Wanted(requirements, new.instance_types, pods, new.min_values_relaxed)
        name = _free_name(new, number, taken, now)
        taken.add(name)
        made.append(new_claim(pools[new.pool], wanted, name=name, daemons=snapshot.daemons))
    return tuple(made)


def _free_name(new: NewNode, number: int, taken: Collection[str], now: datetime) -> str:
    attempt = 0
    while True:
        name = claim_name(new.pool, now.isoformat(), str(number), str(attempt), *new.pods[:1])
        if name not in taken:
            return name
        attempt += 1
