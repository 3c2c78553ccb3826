"""Pools whose nodes hold more than the pool's limits allow."""

from collections.abc import Iterator

from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Rule, Severity
from karpool.model.nodepool import NodePool
from karpool.wire.quantity import ZERO, Quantity


def find(cluster: LintedCluster) -> Iterator[Finding]:
    for pool in cluster.pools:
        for resource, limit in sorted(pool.spec.limits.items()):
            used = _used(cluster, pool, resource)
            if used > limit:
                message = f"limits {resource} to {limit}, and its nodes have {used} already"
                yield Finding(f"NodePool {pool.name}", message, f"spec.limits.{resource}")


def _used(cluster: LintedCluster, pool: NodePool, resource: str) -> Quantity:
    nodes = cluster.nodes_of.get(pool.name, ())
    if resource == "nodes":
        return Quantity(len(nodes) * 10**9)
    return sum((node.status.capacity.get(resource, ZERO) for node in nodes), ZERO)


RULE = Rule(
    code=LintCode.LIMIT_EXCEEDED,
    severity=Severity.ERROR,
    title="A limit that is exceeded already",
    why="The pool launches nothing more, also no replacement that would be cheaper, until nodes go.",
    action="Raise the limit to what is meant, or let nodes of the pool go.",
    find=find,
)
