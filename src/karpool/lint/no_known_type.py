"""Pools that can never give a node."""

from collections.abc import Iterator

from karpool.catalog.unknown_values import families_among, listed, unknown_values
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Rule, Severity
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.nodepool import NodePool


def find(cluster: LintedCluster) -> Iterator[Finding]:
    if not any(not entry.observed for entry in cluster.catalog.types):
        return
    for pool in cluster.pools:
        if not cluster.types_for(pool.requirements):
            message = f"no type that the catalogue knows {_unmet(cluster, pool)}"
            yield Finding(f"NodePool {pool.name}", message, "spec.template.spec.requirements")


def _unmet(cluster: LintedCluster, pool: NodePool) -> str:
    """Which single requirement is to blame, if one is, and the values that no type has."""
    wanted = pool.requirements
    blamed = [key for key in wanted if cluster.types_for(wanted.without(key))]
    suspected = blamed or [key for key, allowed in wanted.items() if not allowed.given]
    exact = ((key, wanted[key]) for key in suspected if not wanted[key].complement)
    unknown = [value for key, allowed in exact for value in unknown_values(cluster.catalog, [key], allowed)]
    names = f"; it does not know {listed(unknown)}" if unknown else ""
    families = families_among(cluster.catalog, [value.value for value in unknown])
    if families is not None and INSTANCE_TYPE in suspected:
        names += f"; {families[0]}: for families, use {families[1]}"
    if not blamed:
        return f"meets its requirements together{names}"
    return " or ".join(f"meets {key} {wanted[key]}" for key in blamed) + names


RULE = Rule(
    code=LintCode.NO_KNOWN_TYPE,
    severity=Severity.ERROR,
    title="Requirements that no type meets",
    why="The pool never launches a node, and pods that only it would take wait for ever.",
    action="Correct the requirement, or name a catalogue that has the type (--catalog).",
    find=find,
    manifests=True,
)
