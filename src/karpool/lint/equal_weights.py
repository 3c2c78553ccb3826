"""Pools of equal weight that could launch the same machines for the same pods."""

from collections.abc import Iterator
from functools import partial

from karpool.catalog.pricing import cheapest_launch_price
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import with_weight
from karpool.model.nodepool import NodePool


def find(cluster: LintedCluster) -> Iterator[Finding]:
    for together in _overlapping(cluster):
        first, *others = together
        names = " and ".join(pool.name for pool in others)
        has = f"has weight {first.weight}" if first.weight else "has no weight"
        shared = _shared_type(cluster, first, others[0])
        message = f"{has}, like {names}, and each could launch {shared} for the same pods"
        yield Finding(f"NodePool {first.name}", message, "spec.weight", _prefer_cheapest(cluster, together))


def _overlapping(cluster: LintedCluster) -> Iterator[list[NodePool]]:
    """Pools of one weight, each with those later ones that no earlier one overlaps with."""
    left = list(cluster.open_pools)
    while left:
        first = left.pop(0)
        alike = [pool for pool in left if pool.weight == first.weight and _shared_type(cluster, first, pool)]
        if alike:
            yield [first, *alike]
            left = [pool for pool in left if pool not in alike]


def _shared_type(cluster: LintedCluster, first: NodePool, second: NodePool) -> str:
    """The cheapest type that both could launch at the same place; empty if there is none."""
    wanted = first.requirements.intersect(second.requirements)
    types = cluster.types_for(wanted) if wanted.satisfiable else ()
    priced = [(cheapest_launch_price(entry, wanted, catalog=cluster.catalog), entry.name) for entry in types]
    return min(((price is None, price or 0.0, name) for price, name in priced), default=(True, 0.0, ""))[2]


def _prefer_cheapest(cluster: LintedCluster, pools: list[NodePool]) -> Remedy | None:
    """The pool with the cheapest machine goes first."""
    offers = [
        (price, pool)
        for pool in pools
        for entry in cluster.types_for(pool.requirements)
        if (price := cheapest_launch_price(entry, pool.requirements, catalog=cluster.catalog)) is not None
    ]
    if not offers:
        return None
    cheapest = min(offers, key=lambda offer: (offer[0], offer[1].name))[1]
    return Remedy(partial(with_weight, name=cheapest.name, weight=cheapest.weight + 1))


RULE = Rule(
    code=LintCode.EQUAL_WEIGHTS,
    severity=Severity.WARNING,
    title="Overlapping pools of equal weight",
    why="Which of them gets a pod is decided by a hash of their names, so that nodes come from pools nobody chose.",
    action="Give the pools different weights, make them one pool, or keep them apart with taints or requirements.",
    find=find,
    manifests=True,
)
