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
    values = {(name.removeprefix(PREFIX), *labels.values()): value for name, labels, value in samples}
    assert {name for name, *_ in values} == set(HELP)
    assert values["total_node_count", "main"] == 2
    assert values["underutilized_node_count", "main"] == 1
    assert values["marked_for_removal_node_count", "main"] == 1
    assert values["scale_down_in_progress_node_count", "main"] == 1
    assert values["total_node_count", "other"] == values["total_node_count", ""] == 1
    assert values["underutilized_node_count", "other"] == 0
    assert values["allocatable_cpu", "a", "main"] == 4000
    assert values["allocatable_memory", "a", "main"] == 16384
    assert values["total_cpu_requests", "a", "main"] == 1000
    assert values["total_memory_requests", "a", "main"] == 4096
    assert values["utilized_cpu_ratio", "a", "main"] == values["utilized_memory_ratio", "a", "main"] == 0.25
    assert values["utilized_cpu_ratio", "c", "other"] == 0.25
    assert len(samples) == 4 * 3 + 6 * 4


def test_the_labels_are_those_that_dashboards_ask_for() -> None:
    samples = measure(decided(pool_node("a", pods=["1"])))
    assert {tuple(sample.labels) for sample in samples} == {("nodepool",), ("node", "nodepool")}
    assert all(sample.name.startswith("estafette_node_compactor_") for sample in samples)


def test_an_unknown_ratio_has_no_series() -> None:
    names = {sample.name for sample in measure(decided(pool_node("a", cpu="0")))}
    assert f"{PREFIX}utilized_cpu_ratio" not in names
    assert f"{PREFIX}utilized_memory_ratio" in names
