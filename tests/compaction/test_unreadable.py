"""What cannot be read: the compactor leaves the nodes alone that it bears on."""

from dataclasses import replace as replaced
from typing import Any

import pytest
from tests.compaction.clusters import NOW, ROOMY, cluster, codes, config, decided, draining, names, pool_node
from tests.factories import csi_node, daemon_set, namespace, pdb, pod
from tests.factories.unreadable import unreadable

from karpool.compaction.advance import advance
from karpool.compaction.confirm import confirmed
from karpool.compaction.decide import CompactionDecision
from karpool.compaction.explain import explain
from karpool.compaction.settings import DEFAULTS
from karpool.execution.actions import RecordEvent
from karpool.execution.fresh_facts import FreshNode


def reason_of(decision: CompactionDecision, name: str) -> str:
    (reason,) = next(verdict.reasons for verdict in decision.nodes if verdict.view.name == name)
    return f"{reason.code}: {reason.object} {reason.message}"


def test_a_node_that_cannot_be_read_is_not_drained() -> None:
    made, pods = pool_node("a", pods=["1"])
    assert names(decided((made, pods), ROOMY)) == ["a"]
    decision = decided((unreadable(made), pods), ROOMY)
    assert names(decision) == []
    assert (
        reason_of(decision, "a") == "Unreadable: Node a cannot be read: status.capacity: expected a mapping, got text"
    )


@pytest.mark.parametrize(
    "others",
    [
        {"pods": [unreadable(pod("lost", node="a"))]},
        {"pods": [unreadable(pod("lost", node="a"), spec__nodeName=7)]},
        {"csi_nodes": (unreadable(csi_node("a")),)},
        {"namespaces": (unreadable(namespace("default")),)},
        {"daemon_sets": (unreadable(daemon_set()),)},
    ],
    ids=["a pod on it", "a pod that may be on it", "its CSINode", "the namespace of its pods", "a DaemonSet"],
)
def test_a_node_is_not_drained_while_this_cannot_be_read(others: dict[str, Any]) -> None:
    decision = decided(pool_node("a", pods=["1"]), ROOMY, **others)
    assert (names(decision), codes(decision)["a"]) == ([], ["Unreadable"])


def test_pods_of_a_budget_that_cannot_be_read_are_not_evicted() -> None:
    lost = unreadable(pdb("web", {"app": "web"}, allowed=3))
    decision = decided(pool_node("a", pods=["1"]), ROOMY, pod_disruption_budgets=(lost,))
    assert (names(decision), codes(decision)["a"]) == ([], ["Unreadable"])


def test_no_pod_is_sent_to_a_node_with_a_pod_that_cannot_be_read() -> None:
    decision = decided(pool_node("a", pods=["1"]), ROOMY, pods=[unreadable(pod("lost", node="z-roomy"))])
    assert codes(decision)["a"] == ["PodsWouldNotFit"]
    assert "something that bears on it cannot be read" in reason_of(decision, "a")


def test_a_scale_down_is_given_up_when_a_pod_cannot_be_read_any_more() -> None:
    objects = cluster([draining("a", pods=["1"]), ROOMY], pods=[unreadable(pod("lost", node="a"))])
    step = advance(objects, config(), NOW, DEFAULTS)
    (event,) = [action for action in step.actions if isinstance(action, RecordEvent)]
    assert (event.reason, event.type) == ("Unreadable", "Warning")
    assert event.message.startswith("its scale-down was given up: Pod default/lost: cannot be read: spec.containers")


def test_nothing_is_written_on_a_node_that_cannot_be_read() -> None:
    made, pods = draining("a", pods=["1"])
    step = advance(cluster([(unreadable(made), pods), ROOMY]), config(), NOW, DEFAULTS)
    assert step.actions == ()


def test_explain_names_what_cannot_be_read() -> None:
    objects = cluster([pool_node("a", pods=["1"]), ROOMY], pods=[unreadable(pod("lost", node="a"))])
    told = explain(objects, config(), NOW, "a", replaced(DEFAULTS))
    assert ("Unreadable", "Pod default/lost") in [(reason.code, reason.object) for reason in told.reasons]


@pytest.mark.parametrize("owner", ["ReplicaSet", "DaemonSet"])
def test_a_drain_waits_when_a_pod_cannot_be_read_again(owner: str) -> None:
    made, pods = pool_node("a", pods=["100m"])
    planned = advance(cluster([(made, pods), ROOMY]), config(), NOW, DEFAULTS)
    lost = unreadable(pod("lost", node="a", owner=owner))
    refused = confirmed(planned, {"a": FreshNode(made, (*pods, lost))}).refused
    assert [(reason.code, reason.object) for reason in refused.values()] == [("Unreadable", "Pod default/lost")]
