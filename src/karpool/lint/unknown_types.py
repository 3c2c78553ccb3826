"""Pools that name instance types of which some are not known, beside others that are."""

from collections.abc import Iterator

from karpool.catalog.unknown_values import listed, unknown_values
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Rule, Severity
from karpool.model.labels import INSTANCE_TYPE


def find(cluster: LintedCluster) -> Iterator[Finding]:
    for pool in cluster.pools:
        named = pool.requirements.get(INSTANCE_TYPE)
        if named is None or named.complement or not cluster.types_for(pool.requirements):
            continue
        if unknown := unknown_values(cluster.catalog, [INSTANCE_TYPE], named):
            message = f"names {len(unknown)} of {len(named.values)} types that the catalogue does not know: "
            yield Finding(f"NodePool {pool.name}", message + listed(unknown), "spec.template.spec.requirements")


RULE = Rule(
    code=LintCode.UNKNOWN_TYPES,
    severity=Severity.WARNING,
    title="Types that the catalogue does not know",
    why="A misspelt type is never launched, and plans do without one that the region or the catalogue lacks.",
    action="Correct the name, take it out, or name a catalogue that has the type (--catalog).",
    find=find,
    manifests=True,
)
