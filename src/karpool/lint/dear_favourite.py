"""A preferred pool of few expensive types, before a pool that would run the same pods for a fraction of the price."""

from collections.abc import Iterator
from functools import partial

from karpool.catalog.weights import expensive_favourites
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import with_weight


def find(cluster: LintedCluster) -> Iterator[Finding]:
    for pool, flaw in expensive_favourites(cluster.pools, cluster.catalog):
        unpreferred = Remedy(partial(with_weight, name=pool.name, weight=None))
        yield Finding(f"NodePool {pool.name}", flaw.message, flaw.field, unpreferred)


RULE = Rule(
    code=LintCode.DEAR_FAVOURITE,
    severity=Severity.WARNING,
    title="A high weight on few expensive types",
    why="The heaviest pool that can run a pod gets it, whatever that costs: prices are compared within a pool only.",
    action="Give the pool a taint, limits or smaller types, or take its weight away.",
    find=find,
    manifests=True,
)
