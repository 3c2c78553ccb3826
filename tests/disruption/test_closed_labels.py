"""What covers pods is remembered by their labels; whether they may go is asked in every pass."""

from typing import Any

import numpy as np
from msgspec.structs import replace
from tests.factories import node, pdb, pod

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.closed_labels import ClosedLabels
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget

WEB, API = {"app": "web"}, {"app": "api"}
PODS = (pod("web-1", node="n1", labels=WEB), pod("web-2", node="n1", labels=WEB), pod("api-1", node="n1", labels=API))


class Asked(PdbLimits):
    """Budgets that count how often they are matched with a pod."""

    asked = 0

    def matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        self.asked += 1
        return super().matching(pod)


def closed(known: ClosedLabels, pdbs: PdbLimits, pods: tuple[Pod, ...] = PODS) -> list[str]:
    snapshot = Snapshot(Objects(nodes=(node("n1"),), pods=pods))
    rows = np.array(sorted(snapshot.pods.rows.values()))
    kept = known.among(rows, snapshot.pods, pdbs).tolist()
    return [snapshot.pods.get(row).name for row, is_kept in zip(rows.tolist(), kept, strict=True) if is_kept]


def web(**given: Any) -> PodDisruptionBudget:
    return pdb("web", WEB, **given)


def test_the_status_of_a_budget_counts_at_once_though_nobody_matches_it_anew() -> None:
    known, budget = ClosedLabels(), web(max_unavailable=1, allowed=1)
    assert closed(known, PdbLimits([budget])) == []
    shut = Asked([replace(budget, status=web(allowed=0).status)])
    assert closed(known, shut) == ["web-1", "web-2"]
    assert shut.asked == 0
    assert closed(known, PdbLimits([budget])) == []


def test_budgets_with_other_rules_are_matched_anew() -> None:
    known, open_ = ClosedLabels(), web(max_unavailable=1, allowed=1)
    assert closed(known, PdbLimits([open_])) == []
    assert closed(known, PdbLimits([web(max_unavailable=0, allowed=1)])) == ["web-1", "web-2"]
    assert closed(known, PdbLimits([open_, pdb("all", {}, max_unavailable=1, allowed=1)])) == ["web-1", "web-2"]
    assert closed(known, PdbLimits([])) == []


def test_a_budget_that_cannot_be_read_keeps_all_pods_of_its_namespace() -> None:
    known, budget = ClosedLabels(), web(allowed=1)
    lost = replace(budget, metadata=replace(budget.metadata, unreadable="spec"))
    elsewhere = replace(lost, metadata=replace(lost.metadata, namespace="other"))
    assert closed(known, PdbLimits([elsewhere])) == []
    assert closed(known, PdbLimits([lost])) == ["web-1", "web-2", "api-1"]
    assert closed(known, PdbLimits([budget])) == []
