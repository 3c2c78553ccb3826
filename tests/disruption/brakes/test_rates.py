"""Nodes and evictions within an hour, in all and of a namespace: what would pass a rate waits, and says how long."""

from dataclasses import replace as replaced
from datetime import datetime

import msgspec
import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, REFERENCE, Scenario, ago, node, pool_of
from tests.factories import namespace, pod

from karpool.disruption.brakes.ledger import COUNTED, LedgerEntry, disruption, ledger_of
from karpool.disruption.brakes.rates import rates_left
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.disruption.settings import GLOBAL
from karpool.model.labels import DISRUPTIONS, MAX_EVICTIONS
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.workloads import Namespace


def entry(command: str = "c1", at: datetime = NOW, nodes: int = 1, **pods: int) -> LedgerEntry:
    return LedgerEntry(command=command, since=at, at=at, committed=True, nodes=nodes, pods=pods)


def pool_with(*entries: LedgerEntry, name: str = "default") -> NodePool:
    return pool_of(name, annotations={DISRUPTIONS: msgspec.json.encode(entries).decode()})


def limited(name: str, text: str) -> Namespace:
    made = namespace(name)
    return replace(made, metadata=replace(made.metadata, annotations={MAX_EVICTIONS: text}))


def scenario(*nodes: object, pools: tuple[NodePool, ...], spaces: tuple[Namespace, ...] = (), **rates: int) -> Scenario:
    settings = replaced(REFERENCE, brakes=BrakeSettings(**rates))
    return Scenario(
        "rates",
        nodes=nodes,  # type: ignore[arg-type]
        pools=pools,
        settings=settings,
        other_objects={"namespaces": spaces},
    )


def reasons(made: Scenario) -> dict[str, list[str]]:
    return {fate.candidate.name: [str(why.code) for why in fate.reasons] for fate in made.plan().fates}


def test_without_limits_nothing_is_counted() -> None:
    assert not rates_left(Objects(node_pools=(pool_with(entry(nodes=1000)),)), BrakeSettings(), NOW)


def test_what_all_pools_did_within_the_hour_counts_and_when_there_is_room_again_is_told() -> None:
    pools = (
        pool_with(entry("c1", ago(minutes=50), 2), entry("c0", NOW - COUNTED, 9)),
        pool_with(entry("c2", ago(minutes=10), 1), name="other"),
    )
    (stop,) = stops_of(Objects(node_pools=pools), BrakeSettings(most_nodes_per_hour=3), NOW)
    assert (stop.code, stop.pool, stop.until) == ("RateReached", None, ago(minutes=50) + COUNTED)
    assert stop.message == (
        "3 nodes were disrupted in the last hour, and the limit is 3 (--max-nodes-per-hour): there is room at 12:11 UTC"
    )
    assert not stops_of(Objects(node_pools=pools), BrakeSettings(most_nodes_per_hour=4), NOW)


def test_where_more_has_gone_than_the_limit_allows_there_is_room_only_when_enough_of_it_is_old() -> None:
    pools = (pool_with(entry("c1", ago(minutes=50), 5), entry("c2", ago(minutes=20), 5)),)
    (stop,) = stops_of(Objects(node_pools=pools), BrakeSettings(most_nodes_per_hour=3), NOW)
    assert stop.until == ago(minutes=20) + COUNTED
    left = rates_left(Objects(node_pools=pools), BrakeSettings(most_nodes_per_hour=12), NOW).nodes
    assert left is not None
    assert (left.room_at(2, NOW), left.room_at(3, NOW)) == (NOW, ago(minutes=50) + COUNTED)


def test_a_limit_of_zero_stops_everything_and_says_that_time_does_not_help() -> None:
    (stop,) = stops_of(Objects(node_pools=(pool_of(),)), BrakeSettings(most_evictions_per_hour=0), NOW)
    assert (stop.until, stop.message.partition(": ")[2]) == (None, "that never fits, raise the limit")


def test_empty_nodes_go_as_far_as_the_rate_allows_whatever_their_pools() -> None:
    pools = (pool_with(entry(nodes=1)), pool_of("other"))
    nodes = [*(node(f"a{n}") for n in range(3)), *(node(f"b{n}", pool="other") for n in range(3))]
    plan = scenario(*nodes, pools=pools, most_nodes_per_hour=5).plan()
    assert len(plan.steps[0].command.nodes) == 4


def test_pods_of_daemon_sets_on_empty_nodes_count_together() -> None:
    """A command that the ledger has no room for is dropped when it starts, and decided again for ever."""
    nodes = [node(f"n{n}", pods=[{"name": f"agent-{n}", "owner": "DaemonSet"}]) for n in range(4)]
    plan = scenario(*nodes, pools=(pool_of(),), most_evictions_per_hour=3).plan()
    assert len(plan.steps[0].command.nodes) == 3
    assert len(scenario(*nodes, pools=(pool_of(),)).plan().steps[0].command.nodes) == 4


def test_the_largest_set_that_keeps_to_the_rate_goes() -> None:
    nodes = [node(f"n{n}", pods=[{"cpu": 1}]) for n in range(4)]
    assert len(scenario(*nodes, pools=(pool_of(),)).plan().steps[0].command.nodes) > 2
    plan = scenario(*nodes, pools=(pool_of(),), most_evictions_per_hour=2).plan()
    assert len(plan.steps[0].command.evicted) <= 2
    limited_nodes = scenario(*nodes, pools=(pool_of(),), most_nodes_per_hour=2).plan()
    assert len(limited_nodes.steps[0].command.nodes) == 2


def test_a_global_search_keeps_to_the_rate_too() -> None:
    nodes = [node(f"n{n}", pods=[{"cpu": 1}]) for n in range(6)]
    made = scenario(*nodes, pools=(pool_of(),), most_nodes_per_hour=2)
    made = replaced(made, settings=replaced(made.settings, search=GLOBAL))
    assert len(made.plan().steps[0].command.nodes) <= 2


def test_a_node_with_more_pods_than_are_left_stays_and_says_so() -> None:
    nodes = (node("a", pods=[{"cpu": "200m"}] * 3), node("b", "large", pods=[{"cpu": 3}] * 2))
    pools = (pool_with(entry(at=ago(minutes=30), default=8)),)
    assert scenario(*nodes, pools=pools).plan().steps
    made = scenario(*nodes, pools=pools, most_evictions_per_hour=9)
    assert reasons(made) == {"a": ["RateReached"], "b": ["RateReached"]}
    fate = next(fate for fate in made.plan().fates if fate.candidate.name == "a")
    assert fate.reasons[0].message == (
        "3 more pods would pass the limit of 9 pods an hour (--max-evictions-per-hour; 8 in the last hour): "
        "there is room at 12:31 UTC"
    )


def test_pods_of_a_namespace_have_a_limit_of_their_own() -> None:
    nodes = (
        node("a", pods=[{"name": "web-1", "namespace": "shop"}, {"name": "web-2", "namespace": "shop"}]),
        node("b", pods=[{"name": "job-1", "namespace": "batch"}]),
        node("c", "large", pods=[{"cpu": 6}]),
    )
    pools = (pool_with(entry(at=ago(minutes=5), shop=3)),)
    made = scenario(*nodes, pools=pools, spaces=(limited("shop", "4"), namespace("batch")))
    plan = made.plan()
    assert plan.steps[0].command.nodes == ("b",)
    fate = next(fate for fate in plan.fates if fate.candidate.name == "a")
    assert (fate.reasons[0].code, fate.reasons[0].object) == ("RateReached", "Namespace shop")
    assert fate.reasons[0].message == (
        "2 more pods would pass the limit of 4 pods an hour (annotation karpool.sh/max-evictions-per-hour of the "
        "Namespace; 3 in the last hour): there is room at 12:56 UTC"
    )


def test_pods_of_namespaces_without_a_name_may_be_of_any_namespace() -> None:
    counted = replace(entry(shop=3), others=2)
    objects = Objects(node_pools=(pool_with(counted),), namespaces=(limited("shop", "9"), limited("batch", "9")))
    rates = rates_left(objects, BrakeSettings(most_evictions_per_hour=9), NOW)
    assert {name: left.remaining for name, left in rates.namespaces.items()} == {"shop": 4, "batch": 7}
    assert rates.evictions is not None
    assert rates.evictions.remaining == 4


@pytest.mark.parametrize("text", ["ten", "-1", "1.5", "", "1e3", "٣", "9" * 10])
def test_a_limit_that_cannot_be_read_keeps_the_pods_of_its_namespace(text: str) -> None:
    nodes = (node("a", pods=[{"namespace": "shop"}]), node("b", pods=[{"namespace": "batch"}]))
    made = scenario(*nodes, node("c", "large", pods=[{"cpu": 6}]), pools=(pool_of(),), spaces=(limited("shop", text),))
    plan = made.plan()
    assert plan.steps[0].command.nodes == ("b",)
    fate = next(fate for fate in plan.fates if fate.candidate.name == "a")
    assert (fate.reasons[0].code, fate.reasons[0].object) == ("RateInvalid", "Namespace shop")
    assert "is not allowed; write a whole number such as 10, or 0 to evict no pod" in fate.reasons[0].message


@pytest.mark.parametrize(("rates", "pool"), [({}, "default"), ({"most_nodes_per_hour": 9}, None)])
def test_a_ledger_that_cannot_be_read_stops_its_pool_or_everything_if_rates_count_on_it(
    rates: dict[str, int], pool: str | None
) -> None:
    broken = pool_of("default", annotations={DISRUPTIONS: "[{]"})
    (stop,) = stops_of(Objects(node_pools=(broken, pool_of("other"))), BrakeSettings(**rates), NOW)
    assert (stop.code, stop.object, stop.pool) == ("RateInvalid", "NodePool default", pool)
    assert stop.message.endswith("until the annotation karpool.sh/disruptions is removed")
    assert "\n" not in stop.message


def test_an_entry_counts_the_pods_that_leave_with_the_nodes() -> None:
    pods = [
        pod("web-1", node="a"),
        pod("web-2", node="a", ready=False),
        pod("job-1", node="a", namespace="batch", owner="Job"),
        pod("done-1", node="a", phase="Succeeded"),
        pod("alone", node="a", owner=None),
        pod("agent-1", node="a", owner="DaemonSet", tolerations=["karpenter.sh/disrupted:NoSchedule"]),
        pod("static-1", node="a", owner="Node"),
    ]
    made = disruption("c1", "Drift", ["a", "b", "c", "d", "e"], pods, NOW)
    assert made.pods == {"default": 3, "batch": 1}
    assert sorted(made.owners.values()) == [(1, 0, 0), (2, 1, 2)]
    assert (made.nodes, made.names) == (5, "a, b, c and 2 more")
    assert ledger_of(pool_with(made)) == (made,)
