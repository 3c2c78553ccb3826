"""The gauges, under their old names."""

from tests.compaction.clusters import decided, draining, pool_node
from tests.factories import pod

from karpool.compaction.metrics import HELP, PREFIX, measure


def test_every_pool_and_node_is_measured_enabled_or_not() -> None:
    web = pod("web-1", cpu="1", memory="4Gi", node="a")
    samples = measure(
        decided(
            pool_node("a", pods=[web]), draining("b"), pool_node("c", pods=["1"], pool="other"), pool_node("d", pool="")
        )
    )
    found = {(name.removeprefix(PREFIX), *labels.values()): value for name, labels, value in samples}
    assert {name for name, *_ in found} == set(HELP)
    assert found["total_node_count", "main"] == 2
    assert found["underutilized_node_count", "main"] == 1
    assert found["marked_for_removal_node_count", "main"] == 1
    assert found["scale_down_in_progress_node_count", "main"] == 1
    assert found["total_node_count", "other"] == found["total_node_count", ""] == 1
    assert found["underutilized_node_count", "other"] == 0
    assert found["allocatable_cpu", "a", "main"] == 4000
    assert found["allocatable_memory", "a", "main"] == 16384
    assert found["total_cpu_requests", "a", "main"] == 1000
    assert found["total_memory_requests", "a", "main"] == 4096
    assert found["utilized_cpu_ratio", "a", "main"] == found["utilized_memory_ratio", "a", "main"] == 0.25
    assert found["utilized_cpu_ratio", "c", "other"] == 0.25
    assert len(samples) == 4 * 3 + 6 * 4


def test_the_labels_are_those_that_dashboards_ask_for() -> None:
    samples = measure(decided(pool_node("a", pods=["1"])))
    assert {tuple(sample.labels) for sample in samples} == {("nodepool",), ("node", "nodepool")}
    assert all(sample.name.startswith("estafette_node_compactor_") for sample in samples)


def test_an_unknown_ratio_has_no_series() -> None:
    names = {sample.name for sample in measure(decided(pool_node("a", cpu="0")))}
    assert f"{PREFIX}utilized_cpu_ratio" not in names
    assert f"{PREFIX}utilized_memory_ratio" in names
