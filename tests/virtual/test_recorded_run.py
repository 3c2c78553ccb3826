"""What a recording says of its own run: who left and why, and null where it does not say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.factories import node, pod
from tests.virtual.worlds import BY_PREFIXES, CATALOG, HOUR, POOL

from karpool.catalog.pricing import node_price
from karpool.model.labels import ZONE
from karpool.model.objects import Objects
from karpool.recording.observer import Observer
from karpool.recording.writer import RecordingWriter
from karpool.report.simulations.simulation_document import numbers, series
from karpool.report.simulations.simulation_table import ROWS, written
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.market import PriceChange, SpotPrices
from karpool.virtual.recorder import Run
from karpool.virtual.replays.recorded_cluster import RecordedCluster
from karpool.virtual.replays.recorded_run import recorded_run
from karpool.virtual.scenario import SpotHistorySettings, read_scenario

START = datetime(2026, 11, 16, 8, tzinfo=UTC)
EXPIRING = POOL.replace(
    "spec:\n        requirements",
    "spec:\n        expireAfter: 20m\n        terminationGracePeriod: 5m\n        requirements",
)
HELD = "workloads: [{name: web, cpu: 500m, replicas: 4, protection: {maxUnavailable: 0}}]"


def really(path: Path, length: float) -> Run:
    return recorded_run(path, CATALOG, length=length, every=60.0)


def test_pods_that_are_deleted_at_a_deadline_are_no_evictions_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "expiring.recording"
    cluster = VirtualCluster(read_scenario(EXPIRING + HELD), CATALOG, policy=BY_PREFIXES, seed=1)
    with RecordedCluster(cluster, path):
        cluster.run(HOUR)
    simulated, recorded = cluster.recorder.summary(), really(path, HOUR).summary
    assert simulated.evictions_forced == recorded.evictions_forced >= 4
    assert simulated.evictions == recorded.evictions == 0


def test_recorded_spot_nodes_cost_what_the_history_says(tmp_path: Path) -> None:
    path, kind = tmp_path / "spot.recording", CATALOG.types[0].name
    with RecordingWriter(path, START) as writer:
        observer = Observer(writer.history, writer.write)
        nodes = (
            node("n1", type=kind, zone="test-zone-a", capacity_type="spot"),
            node("n2", type=kind, zone="test-zone-a"),
        )
        observer.listed(Objects(nodes=nodes), START)
        observer.alive(START + timedelta(hours=1))
    zone = nodes[0].metadata.labels[ZONE]
    usual = really(path, HOUR).summary.cost
    on_demand = node_price(CATALOG, nodes[1].metadata.labels)
    change = PriceChange(HOUR / 2, (kind, zone), 7.0)
    spot = SpotPrices({(kind, zone): 3.0}, (change,), SpotHistorySettings(file="history.csv"))
    run = recorded_run(path, CATALOG, length=HOUR, every=600.0, spot=spot)
    assert on_demand is not None
    assert run.summary.cost == pytest.approx(5.0 + on_demand) != pytest.approx(usual)
    assert [round(sample.price_per_hour - on_demand, 6) for sample in run.samples] == [3.0] * 3 + [7.0] * 4
    dearer = recorded_run(path, replace(CATALOG, node_fee=0.5), length=HOUR, every=600.0, spot=spot)
    assert dearer.summary.cost == pytest.approx(run.summary.cost + 2 * 0.5)


@pytest.mark.parametrize("kind", ["", "Eviction", "Node"])
def test_what_a_recording_does_not_hold_is_unknown_and_not_zero(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "some.recording"
    with RecordingWriter(path, START) as writer:
        observer = Observer(writer.history, writer.write)
        if kind:
            observer.missed(kind, "the source does not say", START)
        observer.listed(Objects(nodes=() if kind == "Node" else (node("n1"),), pods=(pod("web", node="n1"),)), START)
        observer.alive(START + timedelta(hours=1))
    run = really(path, HOUR)
    summary = {name: values[0] for name, values in numbers((run,)).items()}
    never = {"interruptions", "failedLaunches", "pdbRefusals", "pdbWaitSeconds"}
    evictions, machines = {"evictions", "evictionsForced", "movesPerPod"}, {"nodeHours", "nodesAtEnd", "nodesLaunched"}
    nobody_knows = never | {"Eviction": evictions, "Node": machines}.get(kind, set())
    for name in never | evictions | machines:
        assert (summary[name] is None) is (name in nobody_knows), name
    assert (series((run,))["evictions"][-1] is None) is (kind == "Eviction")
    assert (series((run,))["nodes"][-1] is None) is (kind == "Node")
    (row,) = (row for row in ROWS if row.key == "interruptions")
    assert written(row, summary) == "?"
