"""Who pays: what pods take of the price of their nodes, before a plan and after it."""

from functools import partial
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from tests import factories
from tests.disruption import scenarios
from tests.disruption.scenarios import NOW, ZONES, NodeWithPods, cluster, pool_of
from tests.examples import examples
from tests.factories import daemon_set, instance_type, namespace, pod
from tests.strategies import Cluster, clusters
from tests.tables import row, table

from karpool.catalog.instance_types import Catalog
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Planner, context_of
from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.objects import Objects
from karpool.packing.options import Options
from karpool.report.costs.cost_shares import node_shares
from karpool.report.costs.costs import CostTally, Grouping, GroupingError, read_grouping
from karpool.report.costs.costs_csv import costs_csv
from karpool.report.costs.costs_document import CostsPart
from karpool.report.costs.costs_table import print_costs
from karpool.report.terminal import Screen

SETTINGS = DisruptionSettings(search=PREFIX)
# Machines of which nothing is kept for the system, so that shares are round numbers.
CATALOG = Catalog(
    (
        instance_type("medium", 4, "16Gi", price=0.2, zones=ZONES, overhead={}),
        instance_type("large", 8, "32Gi", price=0.4, zones=ZONES, overhead={}),
        instance_type("gpu", 4, "16Gi", price=3.0, zones=ZONES, overhead={}, resources={"nvidia.com/gpu": 4}),
    )
)
node = partial(scenarios.node, catalog=CATALOG)


def context(objects: Objects, catalog: Catalog = CATALOG) -> DecisionContext:
    return context_of(objects, catalog, now=NOW, settings=SETTINGS, options=Options())


def costs(objects: Objects, grouping: str = "workload", *, steps: int = 0) -> CostsPart:
    made = context(objects)
    before = CostTally(made, read_grouping(grouping))
    planner = Planner(made)
    planner.plan(steps)
    return before.compare(CostTally(planner.context, before.grouping))


def today(part: CostsPart) -> dict[str, float | None]:
    entries = (*part.groups, part.headroom, part.system, part.idle, part.total)
    return {
        entry.name: None if entry.before.price_per_hour is None else round(entry.before.price_per_hour, 9)
        for entry in entries
        if entry.before.price_per_hour != 0
    }


@table(
    row("half of a price is for each of CPU and memory", pods=[{"cpu": 2, "memory": "4Gi"}], paid=0.075, idle=0.125),
    row("a pod that requests nothing pays nothing", pods=[{"cpu": None, "memory": None}], paid=0.0, idle=0.2),
    row("a full node has no idle room", pods=[{"cpu": 4, "memory": "16Gi"}], paid=0.2, idle=0.0),
    row(
        "neighbours change nothing",
        pods=[{"cpu": 2, "memory": "4Gi"}, {"cpu": 1, "memory": "8Gi", "owner": None, "name": "alone"}],
        paid=0.075,
        idle=0.05,
    ),
    row("what is over-committed is shared", pods=[{"cpu": 8, "memory": "8Gi"}], paid=0.15, idle=0.05),
)
def test_a_pod_pays_for_what_it_requests(pods: list[dict[str, Any]], paid: float, idle: float) -> None:
    (shares,) = node_shares(context(cluster([node("a", pods=pods)], pools=[pool_of()])))
    assert shares.price == pytest.approx(0.2)
    first = next(cost for entry, cost in shares.pods if entry.name != "alone")
    assert (first, shares.idle) == (pytest.approx(paid), pytest.approx(idle))


def test_accelerators_are_a_third_of_a_price() -> None:
    pods = [{"cpu": None, "memory": None, "requests": {"nvidia.com/gpu": 2}}]
    objects = cluster([node("a", "gpu", pods=pods)], pools=[pool_of()])
    (shares,) = node_shares(context(objects))
    assert (shares.pods[0][1], shares.idle) == (pytest.approx(0.5), pytest.approx(2.5))


def test_daemon_sets_pay_for_themselves_also_before_their_pods_are_there() -> None:
    agent = daemon_set("agent", cpu=1, memory="4Gi")
    for pods in (
        [],
        [{"name": "agent-x", "namespace": "kube-system", "owner": "DaemonSet", "cpu": 1, "memory": "4Gi"}],
    ):
        objects = cluster([node("a", pods=pods)], pools=[pool_of()], daemon_sets=(agent,))
        (shares,) = node_shares(context(objects))
        assert (shares.system, shares.pods) == (pytest.approx(0.05), ())


def test_groups_headroom_system_and_idle_are_the_total() -> None:
    nodes = [node("a", pods=[{"cpu": 2, "memory": "4Gi", "name": "web-5d-1", "namespace": "shop"}]), node("b", "large")]
    part = costs(cluster(nodes, pools=[pool_of()]), "namespace")
    assert today(part) == {"shop": 0.075, "idle": 0.525, "total": 0.6}


def test_what_a_plan_saves_is_idle_room() -> None:
    nodes = [node(name, pods=[{"cpu": 1, "memory": "4Gi", "name": f"web-5d-{name}"}]) for name in "ab"]
    part = costs(cluster(nodes, pools=[pool_of()]), steps=1)
    assert part.total.before.price_per_hour == pytest.approx(0.4)
    assert part.total.after.price_per_hour == pytest.approx(0.2)
    assert part.idle.after.price_per_hour == pytest.approx(0.1)
    (web,) = part.groups
    assert (web.before.pods, web.after.pods) == (2, 2)
    assert web.before.price_per_hour == pytest.approx(web.after.price_per_hour)


def test_unknown_prices_stay_unknown() -> None:
    labels = {"team": "sea"}
    others = (pod("web-2", node="b", labels=labels), pod("only", node="b", labels={"team": "sky"}))
    nodes = [
        node("a", pods=[{"cpu": 2, "memory": "8Gi", "labels": labels}]),
        NodeWithPods(factories.node("b", type="x9"), None, others),
    ]
    part = costs(cluster(nodes, pools=[pool_of()]), "label=team")
    assert today(part) == {"sea": 0.1, "sky": None, "idle": 0.1, "total": 0.2}
    unpriced = {entry.name: entry.before.unpriced for entry in (*part.groups, part.idle, part.total)}
    assert unpriced == {"sea": 1, "sky": 1, "idle": 1, "total": 1}
    printed = shown(part)
    assert "0.10 + ?" in printed
    assert any(line.split()[:5] == ["sky", "|", "1", "|", "?"] for line in printed.splitlines())


def test_a_pod_without_a_label_has_that_of_its_namespace() -> None:
    pods = [{"name": "own", "labels": {"team": "sky"}}, {"name": "its"}, {"name": "none", "namespace": "lost"}]
    objects = cluster([node("a", pods=pods)], pools=[pool_of()], namespaces=(namespace("default", team="sea"),))
    assert {group.name for group in costs(objects, "label=team").groups} == {"sky", "sea", ""}
    assert "(no such label)" in shown(costs(objects, "label=team"))


def test_a_waiting_pod_counts_where_there_is_room() -> None:
    objects = cluster([node("a")], pools=[pool_of()], pods=[pod("web-1", pending=True, cpu=4, memory="16Gi")])
    assert costs(objects, "namespace").idle.before.price_per_hour == pytest.approx(0.0)


@given(clusters())
@examples(20)
def test_nothing_of_a_price_is_lost_or_paid_twice(made: Cluster) -> None:
    for shares in node_shares(context(made.objects, made.catalog)):
        if shares.price is not None:
            paid = sum(cost or 0.0 for _, cost in shares.pods)
            assert paid + (shares.system or 0.0) + (shares.idle or 0.0) == pytest.approx(shares.price, rel=1e-12)
            assert all((cost or 0.0) >= 0 for _, cost in shares.pods)


@pytest.mark.parametrize("text", ["", "node", "label", "label=", "label= ", "label=a=b", "Namespace"])
def test_what_is_no_grouping_is_refused(text: str) -> None:
    with pytest.raises(GroupingError, match="label=team"):
        read_grouping(text)


def test_a_grouping_is_read() -> None:
    assert read_grouping("label=app.kubernetes.io/name") == Grouping("label", "app.kubernetes.io/name")


def shown(part: CostsPart) -> str:
    text = StringIO()
    print_costs(part, Screen(text, width=80), every_group=False)
    return text.getvalue()


def test_the_table_fits_80_columns_and_names_what_it_leaves_out() -> None:
    pods = [{"name": f"w{number}-5d-1", "namespace": "a-namespace-with-a-long-name"} for number in range(25)]
    printed = shown(costs(cluster([node("a", "large", pods=pods)], pools=[pool_of()])))
    assert max(map(len, printed.splitlines())) <= 80
    assert "and 5 more" in printed


def test_a_spreadsheet_has_a_line_for_each_group_and_leaves_empty_what_nobody_knows() -> None:
    pods = [{"cpu": 2, "memory": "4Gi", "labels": {"team": "=a"}}]
    objects = cluster([node("a", pods=pods), node("odd", labels={INSTANCE_TYPE: "odd"}, pods=pods)], pools=[pool_of()])
    lines = costs_csv(costs(objects, "label=team")).splitlines()
    assert lines[0].split(",")[:4] == ["team", "kind", "podsBefore", "podsAfter"]
    assert lines[1] == "'=a,label,2,2,0.075,0.075,54.75,54.75,1,1"
    assert [line.split(",")[1] for line in lines[2:]] == ["headroom", "system", "idle", "total"]
    unknown = costs_csv(
        costs(cluster([node("odd", labels={INSTANCE_TYPE: "odd"}, pods=pods)], pools=[pool_of()]), "label=team")
    )
    assert unknown.splitlines()[1] == "'=a,label,1,1,,,,,1,1"
