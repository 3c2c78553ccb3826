"""Each rule, with a cluster that it warns about and one that it just lets pass."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.factories import (
    Z1,
    affinity_to,
    default_catalog,
    instance_type,
    namespace,
    node,
    node_pool,
    pdb,
    pod,
    spread,
)
from tests.tables import row, table

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sample import sample_types
from karpool.disruption.settings import DisruptionSettings
from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode
from karpool.lint.rules import findings
from karpool.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, SPOT
from karpool.model.nodepool import Budget, NodePool
from karpool.model.objects import Objects
from karpool.wire.duration import parse_duration

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)  # a Monday
WEB = {"app": "web"}
DEMANDED = (CAPACITY_TYPE, "In", ON_DEMAND)
MANY = Catalog(tuple(instance_type(f"t{number}", number, price=number / 10) for number in range(1, 16)))


def found(code: LintCode, catalog: Catalog | None = None, **objects: Sequence[Any]) -> list[Finding]:
    given = Objects(**{name: tuple(listed) for name, listed in objects.items()})
    cluster = LintedCluster(given, catalog or default_catalog(), NOW, DisruptionSettings())
    return [finding for rule, finding in findings(cluster) if rule.code is code]


def closed(schedule: str, duration: str, nodes: str = "0") -> Budget:
    return Budget(nodes=nodes, schedule=schedule, duration=parse_duration(duration))


@table(
    row("two without weights", pools=[node_pool("a"), node_pool("b")], names=["NodePool a"]),
    row("three, said once", pools=[node_pool(name, weight=5) for name in "abc"], names=["NodePool a"]),
    row("different weights", pools=[node_pool("a", weight=1), node_pool("b")], names=[]),
    row("one is tainted", pools=[node_pool("a", taints=["gpu"]), node_pool("b")], names=[]),
    row("one is static", pools=[node_pool("a", replicas=2), node_pool("b")], names=[]),
    row(
        "different types",
        pools=[node_pool(name, requirements=[(INSTANCE_TYPE, "In", name)]) for name in ("default", "small")],
        names=[],
    ),
)
def test_pools_of_equal_weight_that_share_a_machine_are_named_once(pools: list[NodePool], names: list[str]) -> None:
    assert [finding.object for finding in found(LintCode.EQUAL_WEIGHTS, node_pools=pools)] == names


def test_equal_weights_name_the_others_and_a_machine() -> None:
    (finding,) = found(LintCode.EQUAL_WEIGHTS, node_pools=[node_pool("b"), node_pool("a"), node_pool("c")])
    assert finding.message == "has no weight, like b and c, and each could launch small for the same pods"


def test_a_preferred_pool_of_expensive_types_is_named() -> None:
    catalog = Catalog((instance_type("huge", 96, price=10.0), instance_type("tiny", 2, price=0.1)))
    pools = [
        node_pool("vip", weight=10, requirements=[(INSTANCE_TYPE, "In", "huge")]),
        node_pool("rest", requirements=[(INSTANCE_TYPE, "In", "tiny")]),
    ]
    (finding,) = found(LintCode.DEAR_FAVOURITE, catalog, node_pools=pools)
    assert finding.object == "NodePool vip"
    assert "costs 10 $/h and that of rest, tiny, 0.1" in finding.message


@table(
    row("14 spot types", kinds=range(1, 15), capacity=SPOT, count=1),
    row("15 spot types", kinds=range(1, 16), capacity=SPOT, count=0),
    row("few types on demand", kinds=range(1, 3), capacity=ON_DEMAND, count=0),
)
def test_spot_pools_want_fifteen_types(kinds: range, capacity: str, count: int) -> None:
    rules = [(INSTANCE_TYPE, "In", *(f"t{number}" for number in kinds)), (CAPACITY_TYPE, "In", capacity)]
    assert len(found(LintCode.FEW_SPOT_TYPES, MANY, node_pools=[node_pool("p", requirements=rules)])) == count


def test_a_narrow_spot_pool_costs_what_its_nodes_cost_more_than_others_as_large() -> None:
    """Type t3 costs 0.3 $/h, and nothing cheaper is as large; type dear is no larger and costs twice as much."""
    types = (*MANY.types, instance_type("dear", 3, price=0.6))
    pool = node_pool("p", requirements=[(INSTANCE_TYPE, "In", "dear"), (CAPACITY_TYPE, "In", SPOT)])
    nodes = [
        node(f"n{number}", type="dear", pool="p", cpu=3, capacity_type=SPOT, zone=Z1, labels={"extra": "x"})
        for number in (1, 2)
    ]
    (finding,) = found(LintCode.FEW_SPOT_TYPES, Catalog(types), node_pools=[pool], nodes=nodes)
    assert finding.message == "allows spot capacity of 1 type (dear), fewer than 15"
    assert round(finding.per_hour or 0, 6) == 0.6


@table(
    row(
        "a type nobody sells",
        rules=[(INSTANCE_TYPE, "In", "smal")],
        said="node.kubernetes.io/instance-type In [smal]; it does not know smal (did you mean small?)",
    ),
    row(
        "two slips",
        rules=[(INSTANCE_TYPE, "In", "smal"), ("kubernetes.io/arch", "In", "arm")],
        said="meets its requirements together; it does not know smal (did you mean small?), arm",
    ),
    row("a zone that is not there", rules=[("topology.kubernetes.io/zone", "In", "moon-1a")], said="zone In [moon-1a]"),
    row(
        "two that do not go together",
        rules=[("kubernetes.io/arch", "In", "arm64"), (INSTANCE_TYPE, "In", "small")],
        said="instance-type In [small]",
    ),
)
def test_requirements_that_no_type_meets_are_named(rules: list[tuple[str, ...]], said: str) -> None:
    (finding,) = found(LintCode.NO_KNOWN_TYPE, node_pools=[node_pool("p", requirements=rules), node_pool("fine")])
    assert finding.object == "NodePool p"
    assert said in finding.message


def test_one_misspelt_type_among_others_is_named() -> None:
    pools = [node_pool("p", requirements=[(INSTANCE_TYPE, "In", "smal", "default")])]
    (finding,) = found(LintCode.UNKNOWN_TYPES, node_pools=pools)
    assert finding.message == "names 1 of 2 types that the catalogue does not know: smal (did you mean small?)"


@table(
    row("more than the limit", limit={"cpu": 7}, said="limits cpu to 7, and its nodes have 8 already"),
    row("as much as the limit", limit={"cpu": 8}, said=None),
    row("too many nodes", limit={"nodes": 1}, said="limits nodes to 1, and its nodes have 2 already"),
)
def test_limits_that_are_exceeded_are_errors(limit: dict[str, Any], said: str | None) -> None:
    nodes = [node("n1"), node("n2"), node("gone", deleted=NOW), node("other", pool="else")]
    messages = [f.message for f in found(LintCode.LIMIT_EXCEEDED, node_pools=[node_pool(limits=limit)], nodes=nodes)]
    assert messages == ([] if said is None else [said])


@table(
    row("none at all", budgets=["0"], said="for any reason in the next 7 days: budget 1 (nodes 0)"),
    row("always in office hours or not", budgets=[closed("@daily", "24h")], said="for any reason"),
    row("office hours only", budgets=[closed("0 9 * * mon-fri", "8h")], said=None),
    row("not for drift", budgets=[Budget(nodes="0", reasons=("Drifted",)), "1"], said="for Drifted in the next 7"),
    row("a share of one node is one node", budgets=["1%"], said=None),
    row("opens after a week", budgets=[closed("0 0 16 11 *", "192h")], said="for any reason"),
)
def test_budgets_that_never_open_are_named(budgets: list[Any], said: str | None) -> None:
    messages = [f.message for f in found(LintCode.BUDGET_NEVER_OPENS, node_pools=[node_pool(budgets=budgets)])]
    assert [said is not None and said in message for message in messages] == ([] if said is None else [True])


def test_budgets_in_the_annotation_count_where_a_pool_has_them() -> None:
    switched_off = node_pool(budgets=["0"], annotations={"karpool.sh/budgets": '[{"nodes": "10%"}]'})
    assert found(LintCode.BUDGET_NEVER_OPENS, node_pools=[switched_off]) == []


@table(
    row("ten minutes a week for ten nodes", open_for="10m", nodes=10, slow=True),
    row("an hour and forty minutes, one after the other", open_for="100m", nodes=10, slow=False),
)
def test_budgets_must_leave_time_to_replace_all_nodes_within_a_week(open_for: str, nodes: int, *, slow: bool) -> None:
    week = timedelta(days=7)
    length = week - timedelta(minutes=int(open_for.removesuffix("m")))
    minutes = int(length / timedelta(minutes=1))
    pool = node_pool(budgets=[closed("0 0 * * 1", f"{minutes}m"), "1"])
    members = [node(f"n{number}") for number in range(nodes)]
    assert bool(found(LintCode.BUDGET_TOO_SLOW, node_pools=[pool], nodes=members)) is slow


@table(
    row("maxUnavailable 0", budget={"max_unavailable": 0}, said="has maxUnavailable 0"),
    row("minAvailable 100%", budget={"min_available": "100%"}, said="has minAvailable 100%"),
    row("as many as there are", budget={"min_available": 2}, said="needs 2 healthy pods of 2"),
    row("one to spare", budget={"min_available": 1}, said=None),
    row("one unavailable", budget={"max_unavailable": 1}, said=None),
)
def test_pdbs_that_hold_for_ever_are_named(budget: dict[str, Any], said: str | None) -> None:
    pods = [pod(f"web-{number}", labels=WEB, node="n1") for number in (1, 2)]
    messages = [
        f.message for f in found(LintCode.PDB_NEVER_ALLOWS, pods=pods, pod_disruption_budgets=[pdb("p", WEB, **budget)])
    ]
    assert messages == ([] if said is None else [f"{said}, so that none of its 2 pods may ever be evicted"])


def test_a_pdb_without_pods_holds_nobody() -> None:
    assert found(LintCode.PDB_NEVER_ALLOWS, pod_disruption_budgets=[pdb("p", WEB, max_unavailable=0)]) == []


def test_two_pdbs_over_the_same_pods_are_one_finding() -> None:
    pods = [pod(f"web-{number}", labels={**WEB, "tier": "front"}, node="n1") for number in (1, 2)]
    budgets = [pdb("a", WEB), pdb("b", {"tier": "front"}), pdb("c", {"app": "other"})]
    (finding,) = found(LintCode.SEVERAL_PDBS, pods=pods, pod_disruption_budgets=budgets)
    assert finding.object == "PodDisruptionBudget default/a"
    assert "2 pods, such as default/web-1, that default/b covers as well" in finding.message


@table(
    row("for ever, since yesterday", value="true", hours=24, forever=True, expired=False),
    row("for ever, since this morning", value="true", hours=23, forever=False, expired=False),
    row("for four hours, since five", value="4h", hours=5, forever=False, expired=True),
    row("for four hours, since three", value="4h", hours=3, forever=False, expired=False),
    row("a value that means nothing", value="yes", hours=48, forever=False, expired=False),
)
def test_do_not_disrupt_is_for_a_while(value: str, hours: int, *, forever: bool, expired: bool) -> None:
    started = NOW - timedelta(hours=hours)
    pods = [pod("job-1", node="n1", annotations={DO_NOT_DISRUPT: value}, started=started)]
    assert bool(found(LintCode.PROTECTED_FOREVER, pods=pods)) is forever
    assert bool(found(LintCode.PROTECTION_EXPIRED, pods=pods)) is expired


def test_protected_pods_of_one_workload_are_one_finding() -> None:
    started = NOW - timedelta(days=3)
    marked = {DO_NOT_DISRUPT: "true"}
    pods = [pod(f"web-{n}", node=f"n{n % 2}", annotations=marked, started=started, owner=None) for n in (1, 2, 3)]
    assert [f.object for f in found(LintCode.PROTECTED_FOREVER, pods=pods)] == [
        "Pod default/web-1",
        "Pod default/web-2",
        "Pod default/web-3",
    ]
    owned = [pod(f"web-{n}", node=f"n{n % 2}", annotations=marked, started=started) for n in (1, 2, 3)]
    (finding,) = found(LintCode.PROTECTED_FOREVER, pods=owned)
    assert finding.message == f"3 pods marked {DO_NOT_DISRUPT} without an end, running for up to 3 days on 2 nodes"


@table(
    row("neither", cpu=None, memory=None, said="its pod requests no cpu and no memory"),
    row("no memory", cpu="1", memory=None, said="its pod requests no memory"),
    row("both", cpu="1", memory="1Gi", said=None),
)
def test_pods_say_what_they_need(cpu: str | None, memory: str | None, said: str | None) -> None:
    messages = [f.message for f in found(LintCode.MISSING_REQUESTS, pods=[pod(cpu=cpu, memory=memory, node="n1")])]
    assert messages == ([] if said is None else [said])


def test_pods_of_daemonsets_need_no_node_of_their_own() -> None:
    pods = [pod(cpu=None, memory=None, node="n1", owner="DaemonSet")]
    assert found(LintCode.MISSING_REQUESTS, pods=pods) == []


@table(
    row("anti-affinity to itself", rules={"anti": [affinity_to(WEB)]}, alone=True),
    row("anti-affinity to others", rules={"anti": [affinity_to({"app": "db"})]}, alone=False),
    row("anti-affinity by zone", rules={"anti": [affinity_to(WEB, "topology.kubernetes.io/zone")]}, alone=False),
    row("in another namespace", rules={"anti": [affinity_to(WEB, namespaces=["b"])]}, alone=False),
    row(
        "of labels that its own has not", rules={"anti": [affinity_to(WEB, namespace_selector={"x": ""})]}, alone=False
    ),
    row("of labels its own has", rules={"anti": [affinity_to(WEB, namespace_selector={"team": "a"})]}, alone=True),
    row("in all namespaces", rules={"anti": [affinity_to(WEB, namespace_selector={})]}, alone=True),
    row("a spread of one", rules={"spread": [spread(WEB, HOSTNAME)]}, alone=True),
    row("a spread of two", rules={"spread": [spread(WEB, HOSTNAME, 2)]}, alone=False),
    row("a wish", rules={"spread": [spread(WEB, HOSTNAME, when="ScheduleAnyway")]}, alone=False),
)
def test_workloads_that_need_a_node_for_each_pod_are_named(rules: dict[str, Any], *, alone: bool) -> None:
    pods = [pod(f"web-{number}", labels=WEB, node=f"n{number}", **rules) for number in (1, 2)]
    assert bool(found(LintCode.ONE_POD_PER_NODE, pods=pods, namespaces=[namespace("default", team="a")])) is alone
    assert found(LintCode.ONE_POD_PER_NODE, pods=pods[:1]) == []


def test_pods_that_share_nodes_today_are_said_to_part_when_they_move() -> None:
    """Kube-scheduler may put two on each of three nodes, which is no contradiction."""
    pods = [pod(f"web-{n}", labels=WEB, node=f"n{n % 3}", spread=[spread(WEB, HOSTNAME)]) for n in range(6)]
    (finding,) = found(LintCode.ONE_POD_PER_NODE, pods=pods)
    assert finding.message.endswith("each of its 6 pods needs a node of its own when it moves; they are on 3 now")


def test_families_among_types_are_named_with_their_label() -> None:
    rules = [(INSTANCE_TYPE, "In", "m5", "c5")]
    (finding,) = found(LintCode.NO_KNOWN_TYPE, Catalog(sample_types()), node_pools=[node_pool(requirements=rules)])
    assert finding.message.endswith("; c5, m5: for families, use karpenter.k8s.aws/instance-family")


def test_a_budget_of_a_pool_without_nodes_speaks_of_none() -> None:
    (finding,) = found(LintCode.BUDGET_NEVER_OPENS, node_pools=[node_pool(budgets=["0"])])
    assert finding.message.endswith("budget 1 (nodes 0) allows no node at once")


@table(
    row("one", count=1, said="a pod marked karpenter.sh/do-not-disrupt for 4h still runs, unprotected since"),
    row("two", count=2, said="2 pods marked karpenter.sh/do-not-disrupt for 4h still run, unprotected since"),
)
def test_pods_that_outlived_their_protection_are_counted_in_words(count: int, said: str) -> None:
    marked, started = {DO_NOT_DISRUPT: "4h"}, NOW - timedelta(hours=5)
    pods = [pod(f"web-{n}", node="n1", annotations=marked, started=started) for n in range(count)]
    (finding,) = found(LintCode.PROTECTION_EXPIRED, pods=pods)
    assert finding.message.startswith(said)
