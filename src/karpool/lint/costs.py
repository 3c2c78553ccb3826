"""What a finding costs: the price of the fleet planned for a cluster, less that of one planned without the finding."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Final

from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import Weights
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding
from karpool.model.objects import Objects
from karpool.packing.options import Options

QUICK: Final = 0
"""How long each plan is searched for: many are made."""


class Costs:
    """Prices findings of a cluster, each by a plan; both plans search alike and obey weights.

    Without any pods, as in manifests of pools alone, every fleet is free, and nothing is known.
    """

    def __init__(self, cluster: LintedCluster, options: Options) -> None:
        self._cluster = cluster
        self._options = options

    def per_hour(self, finding: Finding) -> float | None:
        """What the finding costs in $/h; None if that is not known. Never below 0: no rule pays for itself."""
        if finding.remedy is None:
            return finding.per_hour
        if not self._cluster.pods:
            return None
        before = self._braked if finding.remedy.budgets else self._free
        after = self._planned(finding.remedy.apply, budgets=finding.remedy.budgets)
        return None if before is None or after is None else max(0.0, before - after)

    @cached_property
    def _free(self) -> float | None:
        return self._planned(lambda objects: objects, budgets=False)

    @cached_property
    def _braked(self) -> float | None:
        return self._planned(lambda objects: objects, budgets=True)

    def _planned(self, change: Callable[[Objects], Objects], *, budgets: bool) -> float | None:
        """What the fleet costs at the end of a plan; None where a price on the way is not known."""
        plan = Planner(self._context(change(self._cluster.objects), budgets=budgets)).plan()
        unknown = plan.after.unpriced or any(step.command.unpriced for step in plan.steps)
        return None if unknown else plan.after.price

    def _context(self, objects: Objects, *, budgets: bool) -> DecisionContext:
        cluster = self._cluster
        settings = replace(cluster.settings, effort=QUICK, weights=Weights.STRICT, ignore_budgets=not budgets)
        return context_of(objects, cluster.catalog, now=cluster.now, settings=settings, options=self._options)
