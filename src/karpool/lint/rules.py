"""All rules, in the order in which findings are shown."""

from typing import Final

from karpool.lint import (
    budgets,
    dear_favourite,
    equal_weights,
    few_spot_types,
    limit_exceeded,
    missing_requests,
    no_known_type,
    one_pod_per_node,
    pdbs,
    protection,
    unknown_types,
)
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, Rule

RULES: Final = (
    no_known_type.RULE,
    limit_exceeded.RULE,
    dear_favourite.RULE,
    unknown_types.RULE,
    equal_weights.RULE,
    few_spot_types.RULE,
    budgets.NEVER_OPEN,
    budgets.TOO_SLOW,
    pdbs.NEVER_ALLOWS,
    pdbs.SEVERAL,
    protection.FOREVER_RULE,
    protection.EXPIRED_RULE,
    one_pod_per_node.RULE,
    missing_requests.RULE,
)


def findings(cluster: LintedCluster, *, manifests: bool = False) -> list[tuple[Rule, Finding]]:
    """Everything that is found, by rule; `manifests`: only by rules that need no more than manifests of pools."""
    rules = (rule for rule in RULES if rule.manifests or not manifests)
    return [(rule, finding) for rule in rules for finding in rule.find(cluster)]
