"""What is told of controllers that are compared follows from what was seen."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed

from karpool.catalog.sources import open_catalog
from karpool.model import labels as names
from karpool.model.node import Node, NodeSpec
from karpool.model.pod import Pod, PodStatus
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
    conditions = Conditions("v", "m", "2026-01-01", "", 10, 40, 300.0, 60.0, "It is not there.")
    text = page([worse, figures()], conditions)
    assert "| time to 90% of the saving | not in 300 s | 40 s |" in text
    assert "| last change | 40 s, cut off | 40 s |" in text
    assert "| evictions | 1,234 | 1,234 |" in text
    assert "It is not there." in text
    assert "A run that was cut off" in text
    assert "A run that was cut off" not in page([figures()], conditions)


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
