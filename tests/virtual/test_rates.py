"""Rates hold in any hour of a busy cluster, however often the controller dies."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace as struct_replace
from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.controller.observer import DecisionObserver
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.decide import Decision
from karpool.execution import actions as a
from karpool.model.labels import MAX_EVICTIONS
from karpool.model.pod import Pod
from karpool.model.workloads import Namespace
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.control_plane.pdb_controller import EvictionStatus
from karpool.wire.objects import Metadata

AN_HOUR = timedelta(hours=1)
# Waves of pods leave half-empty nodes behind, again and again.
WAVES = (
    "workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: {steps: ["
    "{after: 0s, value: 30}, {after: 30m, value: 10}, {after: 60m, value: 30}, {after: 90m, value: 8},"
    "{after: 2h, value: 30}, {after: 150m, value: 6}]}}]"
)


class Counted(DecisionObserver):
    """When nodes were deleted by commands and pods evicted, and which brakes held."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.nodes: list[datetime] = []
        self.evictions: list[datetime] = []
        self.codes: set[str] = set()
        cluster.controller.observers.append(self)
        cluster.actuator.observers.append(self._action)
        cluster.api.on_eviction.append(self._eviction)

    def _action(self, action: a.Action) -> None:
        if isinstance(action, a.DeleteClaim):
            self.nodes.append(self.cluster.now)

    def _eviction(self, _pod: Pod, code: EvictionStatus) -> None:
        if code is EvictionStatus.CREATED:
            self.evictions.append(self.cluster.now)

    def pass_finished(self, decision: Decision) -> None:
        self.codes |= {str(stop.code) for stop in decision.stops}
        self.codes |= {str(why.code) for reasons in decision.reasons.values() for why in reasons}

    def wants_reasons(self, commands: object) -> bool:
        return not commands


def most_in_an_hour(moments: list[datetime]) -> int:
    return max((sum(start <= other < start + AN_HOUR for other in moments) for start in moments), default=0)


def played(*, dies: bool = False, namespace: str | None = None, **rates: int) -> Counted:
    """Three hours of waves; a controller that dies is another one every few minutes."""
    cluster = virtual_cluster(WAVES)
    settings = cluster.controller.settings
    cluster.controller.settings = replace(settings, search="prefix", brakes=BrakeSettings(**rates))
    if namespace is not None:
        known = cluster.store.namespaces.get("default") or Namespace(metadata=Metadata(name="default"))
        limited = struct_replace(known.metadata, annotations={MAX_EVICTIONS: namespace})
        cluster.store.namespaces.put(struct_replace(known, metadata=limited))
    counted = Counted(cluster)
    for minutes in range(0, 181, 7):
        cluster.run(minutes * 60.0)
        if dies and cluster.controller.running:
            cluster.controller.stop()
            cluster.controller.start()
    cluster.run(3 * HOUR)
    return counted


def test_without_rates_more_goes() -> None:
    counted = played()
    assert most_in_an_hour(counted.nodes) > 3
    assert most_in_an_hour(counted.evictions) > 4
    assert "RateReached" not in counted.codes


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies often"])
def test_no_hour_has_more_nodes_or_evictions_than_allowed(*, dies: bool) -> None:
    nodes = played(dies=dies, most_nodes_per_hour=3)
    assert 0 < most_in_an_hour(nodes.nodes) <= 3
    assert "RateReached" in nodes.codes
    pods = played(dies=dies, most_evictions_per_hour=4)
    assert 0 < most_in_an_hour(pods.evictions) <= 4
    assert "RateReached" in pods.codes


def test_no_hour_has_more_evictions_of_a_namespace_than_its_annotation_allows() -> None:
    counted = played(namespace="4")
    assert 0 < most_in_an_hour(counted.evictions) <= 4
    assert "RateReached" in counted.codes
    assert played(namespace="four").evictions == []
