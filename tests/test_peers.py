"""What is told of controllers that are compared follows from what was seen."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace as changed

from karpool.catalog.sources import open_catalog
from karpool.disruption.plan import plan
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.model import labels as names
from karpool.model.node import Node, NodeSpec
from karpool.model.pod import Pod, PodStatus
from karpool.model.reading.loading import load
from karpool.wire.objects import Condition, Metadata

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
LABELS = {names.INSTANCE_TYPE: "c-4x-amd64-linux", names.ZONE: "test-zone-a", names.CAPACITY_TYPE: "on-demand"}
PRICE = 0.108589934592
LEFT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


def node(name: str) -> Node:
    return Node(metadata=Metadata(name=name, uid=name, labels=LABELS), spec=NodeSpec())


def pod(name: str, ready: str = "True") -> Pod:
    status = PodStatus(phase="Running", conditions=(Condition(type="Ready", status=ready),))
    return Pod(metadata=Metadata(name=name, namespace="default", uid=name), status=status)


def test_a_record_tells_prices_over_time_pods_that_left_and_the_fewest_that_ran() -> None:
    from peer_record import Record

    now = [100.0]
    record = Record(open_catalog("kwok"), lambda: now[0])
    for name in ("a", "b"):
        record.node(node(name))
        record.pod(pod(name))
    record.begin()
    now[0] = 110.0
    record.node(node("c"))
    now[0] = 120.0
    leaving = pod("a")
    record.pod(changed(leaving, metadata=changed(leaving.metadata, deletion_timestamp=LEFT)))
    record.pod(leaving, gone=True)
    record.pod(pod("new", ready="False"))
    record.pod(pod("new"))
    now[0] = 130.0
    record.node(node("a"), gone=True)
    record.node(node("a"), gone=True)

    assert [when for when, _ in record.prices] == [0.0, 10.0, 30.0]
    assert [price for _, price in record.prices] == pytest.approx([2 * PRICE, 3 * PRICE, 2 * PRICE])
    assert (len(record.leaving), record.fewest, len(record.ready), record.launched) == (1, 1, 2, {"c"})


def figures() -> Any:
    from peer_record import Figures

    return Figures(
        controller="Karpool",
        budget="10%",
        size=10,
        prices=((0.0, 10.0), (20.0, 5.2), (30.0, 6.0), (40.0, 5.0)),
        nodes=5,
        launched=1,
        evictions=1234,
        pods=40,
        fewest=38,
        cpu=1.5,
        memory=100,
        decision=0.5,
        settled=True,
        seconds=40.0,
        limit=300.0,
        load=1.25,
    )


def test_a_price_is_reached_when_it_is_not_exceeded_any_more() -> None:
    run = figures()
    assert run.reached(5.5) == 40.0
    assert run.reached(6.0) == 20.0
    assert run.reached(10.0) == 0.0
    assert run.reached(4.9) is None


def test_the_saving_that_counts_is_that_of_the_better_one() -> None:
    from peer_record import target

    better, worse = figures(), replace(figures(), prices=((0.0, 10.0), (50.0, 8.0)))
    assert target([worse, better]) == pytest.approx(5.5)
    assert worse.reached(target([worse, better])) is None


def test_the_page_says_who_did_not_get_there_and_who_was_cut_off() -> None:
    from peer_page import Conditions, page

    worse = replace(figures(), controller="Karpenter", prices=((0.0, 10.0), (50.0, 8.0)), settled=False)
    conditions = Conditions("v", "m", 60.0, "It is not there.")
    text = page([worse, figures()], [], conditions)
    assert "| time to 90% of the saving | not in 300 s | 40 s |" in text
    assert "| last change | 40 s, cut off | 40 s |" in text
    assert "| evictions | 1,234 | 1,234 |" in text
    assert "It is not there." in text
    assert "A run that was cut off" in text
    assert "A run that was cut off" not in page([figures()], [], conditions)


def test_each_run_says_its_commit_its_day_and_where_loads_were_not_alike() -> None:
    from peer_page import Conditions, page

    conditions = Conditions("v", "m", 60.0, "It is not there.")
    ours = replace(figures(), commit="abc1234", day="2026-01-02")
    busy, alike = replace(ours, load=4.0, commit="", day=""), replace(ours, load=2.0, day="2026-01-03")
    text = page([busy, ours], [], conditions)
    assert "| commit | ? | abc1234 |\n| day | ? | 2026-01-02 |" in text
    assert "The load differed by more than 10% between the columns of budget 10% (4.0 and 1.2).\nSeconds of" in text
    text = page([alike, ours], [], conditions)
    assert "| day | 2026-01-03 | 2026-01-02 |" in text
    assert "Seconds of these" not in text


def test_each_size_of_a_live_cluster_has_a_table_of_its_own() -> None:
    from peer_page import Conditions, page

    larger = replace(figures(), size=100, pods=1300)
    text = page([larger, figures()], [], Conditions("v", "m", 60.0, "It is not there."))
    assert text.index("### 10 nodes, 40 pods; cut off after 300 s") < text.index("### 100 nodes, 1,300 pods")


def test_decisions_that_were_cut_off_say_so() -> None:
    from peer_page import snapshots
    from peer_snapshots import Decided

    one = Decided(
        controller="Karpenter",
        size=1000,
        pods=13000,
        candidates=1000,
        looked=50,
        seconds_per_candidate=0.375,
        before=10.0,
        end=4.0,
        nodes=300,
        commands=9,
        launched=8,
        evictions=9000,
        decision_seconds=600.2,
        finished=False,
    )
    text = snapshots([one, changed(one, controller="Karpool", finished=True, seconds_per_candidate=0.00016)])
    assert "| | Karpenter, 1,000 nodes | Karpool, 1,000 nodes |" in text
    assert "| time for a candidate | 375 ms | 0.16 ms |" in text
    assert "| decisions until the end | 600.2 s, cut off | 600.2 s |" in text
    assert "| commit | ? | ? |" in text


def test_a_commit_is_that_of_the_checkout() -> None:
    from peer_record import ROOT, commit

    if not (ROOT / ".git").exists():
        assert commit() == ""
    else:
        assert re.fullmatch("[0-9a-f]{7,}[+]?", commit())


def test_a_cluster_in_a_file_is_the_planned_one_and_may_be_consolidated(tmp_path: Path) -> None:
    from peer_cluster import layout
    from peer_snapshots import objects_of

    planned, path = layout(12, 150), tmp_path / "cluster.json"
    path.write_bytes(json.encode({"apiVersion": "v1", "kind": "List", "items": list(objects_of(planned))}))
    objects = load([str(path)], stdin=BytesIO()).objects
    bound = {(pod.name, pod.spec.node_name) for pod in objects.pods}
    assert bound == {(pod.name, pod.node) for pod in planned.pods}
    kinds = {node.name: node.metadata.labels[names.INSTANCE_TYPE] for node in objects.nodes}
    assert kinds == planned.nodes
    made = plan(objects, open_catalog("kwok"), now=datetime.now(UTC), settings=DisruptionSettings(search=PREFIX))
    assert made.after.price < made.before.price


def test_looks_that_waited_for_their_validation_do_not_count() -> None:
    from peer_record import Decisions

    decisions = Decisions("d", ("commands_total",))
    decisions.read({'d_count{m="a"}': 1, 'd_sum{m="a"}': 0.5, "commands_total": 0}, 0.0)
    decisions.read({'d_count{m="a"}': 1, 'd_sum{m="a"}': 0.5, "commands_total": 1}, 16.0)
    decisions.read({'d_count{m="a"}': 2, 'd_sum{m="a"}': 16.5, "commands_total": 1}, 17.0)
    decisions.read({'d_count{m="b"}': 1, 'd_sum{m="b"}': 0.25, "commands_total": 1}, 30.0)
    assert decisions.seconds == 0.75


def test_the_longest_search_is_read_from_the_log() -> None:
    from peer_record import longest_search

    line = '{"level":"info","event":"search finished","seconds":%s,"found":true}'
    assert longest_search("\n".join(line % seconds for seconds in (1.5, 8.606, 2))) == 8.606
    assert longest_search('{"event":"controller started"}') == 0.0


def test_the_same_seed_gives_the_same_pods_on_nodes_that_have_room() -> None:
    from peer_cluster import NoRoomError, layout

    planned = layout(12, 150)
    assert planned == layout(12, 150) != layout(12, 150, seed=1)
    kinds = open_catalog("kwok").by_name
    for name, kind in planned.nodes.items():
        sizes = [planned.sizes[pod.owner] for pod in planned.pods if pod.node == name]
        assert sum(cpu for cpu, _ in sizes) <= kinds[kind].allocatable["cpu"].milli
        assert sum(memory for _, memory in sizes) * 2**20 <= kinds[kind].allocatable["memory"].units
    with pytest.raises(NoRoomError, match="fits on none of 1 nodes"):
        layout(1, 300)


def test_gaps_between_renewals_begin_with_the_last_renewal_before_the_launch() -> None:
    from launch import LEASE, Renewals, longest_hold

    from karpool.kube.api_objects import Lease, LeaseSpec

    renewals = Renewals()
    for holder, seconds in (("a", 0), ("a", 2), ("a", 2), ("a", 7), ("b", 8)):
        spec = LeaseSpec(holder_identity=holder, renew_time=datetime.fromtimestamp(seconds, UTC))
        renewals.put(Lease(metadata=Metadata(name=LEASE, namespace="karpool"), spec=spec))
    assert renewals.gaps(3.0) == [5.0, 1.0]
    assert renewals.holders == ["a", "b"]
    assert longest_hold('{"event":"the event loop was held up","seconds":1.312,"by":"x"}') == 1.312
