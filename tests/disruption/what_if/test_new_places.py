"""What-ifs about requests: pods that no longer fit where they are need other places, and what those cost is told."""

from collections.abc import Sequence

import pytest
from tests.disruption.scenarios import CATALOG, NOW, NodeWithPods, cluster, node, pool_of
from tests.factories import daemon_set, pod
from tests.tables import row, table

from karpool.disruption.settings import PREFIX, DisruptionSettings
from karpool.disruption.what_if.answer import WhatIf, WhatIfAnswer
from karpool.disruption.what_if.pod_knobs import Requests
from karpool.disruption.what_if.question import Question
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.nodepool import NodePool
from karpool.model.workloads import DaemonSet
from karpool.packing.options import Options
from karpool.report.what_if.what_if_document import what_if_document

WEB = "Deployment default/web"
FIXED = {DO_NOT_DISRUPT: "true"}


def asked(
    nodes: Sequence[NodeWithPods],
    *,
    workload: str = WEB,
    cpu: float = 1.0,
    memory: float = 1.0,
    pool: NodePool | None = None,
    daemons: Sequence[DaemonSet] = (),
) -> WhatIfAnswer:
    """What becomes of nodes when a workload requests so many times what it does."""
    objects = cluster(nodes, pools=[pool or pool_of()], daemon_sets=tuple(daemons))
    question = Question(objects, CATALOG, DisruptionSettings(search=PREFIX), Options(), NOW)
    return WhatIf(question).ask([Requests(workload=workload, cpu=cpu, memory=memory)])


def web(name: str, **rest: object) -> NodeWithPods:
    """A node of 4 CPUs with three pods of 0.9 CPUs and 1 Gi each."""
    return node(name, pods=[{"cpu": 0.9, "memory": "1Gi", "name": f"web-7f-{at}", **rest} for at in range(3)])


def test_pods_that_outgrow_a_node_that_stays_have_nodes_launched_for_them() -> None:
    """Of three pods of 1.8 CPUs, two stay on 4 CPUs, and the third has a node of its own, which costs 0.1 $/h."""
    answer = asked([web("a", annotations=FIXED)], cpu=2)
    assert (answer.today.after.nodes, answer.today.after.price) == (1, pytest.approx(0.2))
    assert (answer.displaced, answer.unplaced, answer.then.launches) == (1, (), 1)
    assert (answer.then.after.nodes, answer.then.after.price) == (2, pytest.approx(0.3))
    assert answer.then.after.pods == 3
    assert (answer.saved, answer.then.savings) == (pytest.approx(-0.1), pytest.approx(-0.1))
    assert answer.then.before == answer.today.before


def test_a_node_that_went_today_stays_where_its_pods_need_it() -> None:
    half = [{"cpu": 1, "name": "web-7f-1"}]
    nodes = [node("a", pods=half), node("b", pods=[{"cpu": 2.5, "name": "big", "annotations": FIXED}])]
    answer = asked(nodes, cpu=1.5)
    assert (answer.today.after.nodes, answer.then.after.nodes) == (1, 2)
    assert answer.displaced == 0  # it fits where it is, but no longer on b
    assert answer.then.after.price > answer.today.after.price


def test_a_pod_that_outgrows_a_node_that_goes_today_has_another_place() -> None:
    nodes = [
        node("a", "small", pods=[{"cpu": 0.9, "name": "web-7f-1"}]),
        node("b", pods=[{"cpu": 1, "name": "other", "annotations": FIXED}]),
    ]
    answer = asked(nodes, cpu=3)
    assert answer.today.after.nodes == 1
    assert (answer.displaced, answer.unplaced, answer.then.launches) == (1, (), 0)
    assert [there.name for there in answer.there.objects.nodes] == ["b"]
    assert answer.then.evictions == 0  # the scheduler puts it there as it is made anew


@table(
    row("CPU", factors={"cpu": 100.0}, lacks="cpu"),
    row("memory", factors={"memory": 100.0}, lacks="memory"),
)
def test_pods_that_fit_nowhere_are_told(factors: dict[str, float], lacks: str) -> None:
    """The largest type has 64 CPUs and 256 Gi."""
    pods = [{"cpu": 1, "memory": "3Gi", "name": "web-7f-1"}, {"cpu": 1, "memory": "3Gi", "name": "other"}]
    answer = asked([node("a", pods=pods)], **factors)
    ((name, why),) = answer.unplaced
    assert (name, why.code, why.object) == ("default/web-7f-1", "PodsWouldNotFit", "Pod default/web-7f-1")
    assert lacks in why.message
    document = what_if_document(answer)
    assert (document.displaced, [entry.pod for entry in document.unplaced]) == (1, ["default/web-7f-1"])


def test_a_limit_of_the_pool_leaves_pods_without_a_place() -> None:
    answer = asked([web("a", annotations=FIXED)], cpu=2, pool=pool_of(limits={"cpu": 4}))
    assert len(answer.unplaced) == 1
    assert answer.then.launches == 0


def test_the_pods_of_a_daemon_set_have_no_place_but_their_node() -> None:
    agent = pod("agent-x7f2k", node="a", cpu=1, owner="DaemonSet")
    nodes = [node("a", pods=[agent, {"cpu": 2, "name": "web-7f-1"}])]
    answer = asked(
        nodes, workload="DaemonSet default/agent", cpu=3, daemons=[daemon_set("agent", namespace="default", cpu=1)]
    )
    assert [name for name, _ in answer.unplaced] == ["default/agent-x7f2k"]


def test_pods_that_request_less_stay_where_they_are() -> None:
    """Also on a node that has more on it than it holds already: nothing has grown."""
    pods = [{"cpu": 3, "name": f"web-7f-{at}", "annotations": FIXED} for at in range(2)]
    answer = asked([node("a", pods=pods)], cpu=0.9)
    assert (answer.displaced, answer.unplaced) == (0, ())
    assert answer.then.after.nodes == 1


def test_only_pods_of_the_workload_go_and_the_largest_first() -> None:
    """Four CPUs hold `other` and two of the three small pods, when they have doubled, without the large one."""
    sizes = {"small1": 0.25, "small2": 0.25, "large": 1.5}
    pods = [{"cpu": cpu, "name": f"web-7f-{name}", "annotations": FIXED} for name, cpu in sizes.items()]
    answer = asked([node("a", pods=[*pods, {"cpu": 2, "name": "other", "annotations": FIXED}])], cpu=2)
    assert answer.displaced == 1
    on = {entry.metadata.name: entry.spec.node_name for entry in answer.there.objects.pods}
    assert (on["other"], on["web-7f-small1"], on["web-7f-small2"]) == ("a", "a", "a")
    assert on["web-7f-large"] not in ("", "a")


def test_a_new_node_has_a_name_that_none_has() -> None:
    answer = asked([web("new-1", annotations=FIXED)], cpu=2)
    assert sorted(there.name for there in answer.there.objects.nodes) == ["new-1", "new-2"]
