"""Pods that were asked whether they can move are asked again only if the answer may be another one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import node, pdb, pod

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.movable_pods import MovablePods
from karpool.disruption.candidates.pdbs import PdbLimits, currently_reschedulable
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.objects import Objects
from karpool.model.pod import Pod

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)
WEB = {"app": "web"}


class Asked(PdbLimits):
    """Budgets that count how often they are asked about a pod."""

    asked = 0

    def fully_blocked(self, pod: Pod, now: datetime) -> Any:
        self.asked += 1
        return super().fully_blocked(pod, now)


def among(known: MovablePods, snapshot: Snapshot, pdbs: PdbLimits, now: datetime = NOW) -> set[str]:
    rows = known.among(sorted(snapshot.pods.rows.values()), snapshot.pods, pdbs, now)
    expected = {p.key for p in snapshot.pods.objects if p is not None and currently_reschedulable(p, pdbs, now)}
    assert {snapshot.pods.get(row).key for row in rows} == expected
    return expected


def cluster(*pods: Pod) -> Snapshot:
    return Snapshot(Objects(nodes=(node("n1"),), pods=pods))


def test_a_pod_is_asked_again_when_it_changes_and_not_before() -> None:
    snapshot, known, pdbs = cluster(pod("web-1", node="n1"), pod("web-2", node="n1")), MovablePods(), Asked(())
    assert len(among(known, snapshot, pdbs)) == 2
    pdbs.asked = 0
    known.among(snapshot.pods.rows.values(), snapshot.pods, pdbs, NOW)
    assert pdbs.asked == 0
    snapshot.put_pod(pod("web-1", node="n1", annotations={DO_NOT_DISRUPT: "true"}))
    assert among(known, snapshot, pdbs) == {"default/web-2"}


@pytest.mark.parametrize("most", [0, 1])
def test_pods_are_asked_again_when_a_budget_is_written_anew_but_not_for_its_status(most: int) -> None:
    snapshot, known = cluster(pod("web-1", node="n1")), MovablePods()
    before = pdb("web", WEB, max_unavailable=1)
    assert among(known, snapshot, PdbLimits([before])) == {"default/web-1"}
    status = Asked([replace(before, status=pdb("web", WEB, allowed=0).status)])
    known.among(snapshot.pods.rows.values(), snapshot.pods, status, NOW)
    assert status.asked == 0
    assert bool(among(known, snapshot, PdbLimits([pdb("web", WEB, max_unavailable=most)]))) is (most > 0)
    assert among(known, snapshot, PdbLimits([before])) == {"default/web-1"}


def test_a_protection_that_ends_is_looked_at_each_time() -> None:
    kept = pod("web-1", node="n1", annotations={DO_NOT_DISRUPT: "1h"}, started=NOW)
    snapshot, known = cluster(kept), MovablePods()
    assert among(known, snapshot, PdbLimits(())) == set()
    assert among(known, snapshot, PdbLimits(()), NOW + timedelta(hours=1)) == {"default/web-1"}
