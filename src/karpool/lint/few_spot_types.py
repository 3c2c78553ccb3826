"""Spot pools that leave the cloud too little choice."""

from collections.abc import Iterator
from typing import Final

from karpool.catalog.instance_types import InstanceType
from karpool.catalog.pricing import cheapest_launch_price, node_price
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Rule, Severity
from karpool.model.labels import ARCH, CAPACITY_TYPE, OS, REGION, SPOT, ZONE
from karpool.model.node import Node
from karpool.model.nodepool import NodePool
from karpool.model.requirements import Requirements, one_of
from karpool.wire.quantity import ZERO

_KEPT: Final = (ARCH, OS, ZONE, REGION, CAPACITY_TYPE)
"""What a pod may depend on; all else is a choice of machines."""
_SHOWN: Final = 3


def find(cluster: LintedCluster) -> Iterator[Finding]:
    least = cluster.settings.spot_floor
    for pool in cluster.pools:
        wanted = pool.requirements
        if pool.static or (CAPACITY_TYPE in wanted and not wanted[CAPACITY_TYPE].has(SPOT)):
            continue
        on_spot = wanted.intersect(Requirements([(CAPACITY_TYPE, one_of(SPOT))]))
        types = cluster.types_for(on_spot)
        if 0 < len(types) < least:
            named = ", ".join(entry.name for entry in types[:_SHOWN]) + (", …" if len(types) > _SHOWN else "")
            kinds = "1 type" if len(types) == 1 else f"{len(types)} types"
            message = f"allows spot capacity of {kinds} ({named}), fewer than {least}"
            field = "spec.template.spec.requirements"
            cost = _too_much(cluster, pool)
            yield Finding(f"NodePool {pool.name}", message, field, per_hour=cost, amount_unknown=cost is None)


def _too_much(cluster: LintedCluster, pool: NodePool) -> float | None:
    """What the pool's spot nodes cost more than the cheapest spot machines that are as large; None if unknown.

    Without any nodes in the input it is not known which the pool has.
    """
    if not cluster.objects.nodes:
        return None
    nodes = cluster.nodes_of.get(pool.name, ())
    spot = [node for node in nodes if node.metadata.labels.get(CAPACITY_TYPE) == SPOT]
    extra = [_more_than_needed(cluster, node) for node in spot]
    known = [price for price in extra if price is not None]
    return sum(known) if len(known) == len(extra) else None


def _more_than_needed(cluster: LintedCluster, node: Node) -> float | None:
    price = node_price(cluster.catalog, node.metadata.labels)
    if price is None:
        return None
    labels = {key: value for key, value in node.metadata.labels.items() if key in _KEPT}
    wanted = Requirements.of_labels(labels)
    prices = (
        cheapest_launch_price(entry, wanted, catalog=cluster.catalog)
        for entry in cluster.types_for(wanted)
        if _as_large(entry, node)
    )
    return price - min((other for other in prices if other is not None and other < price), default=price)


def _as_large(entry: InstanceType, node: Node) -> bool:
    return all(not entry.capacity.get(name, ZERO) < size for name, size in node.status.capacity.items())


RULE = Rule(
    code=LintCode.FEW_SPOT_TYPES,
    severity=Severity.WARNING,
    title="A spot pool of few types",
    why="When the cloud takes one type back, all nodes go at once; and spot nodes are replaced by cheaper ones only "
    "among enough types.",
    action="Allow more families, sizes and zones, at least 15 types.",
    find=find,
    manifests=True,
)
