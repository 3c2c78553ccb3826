"""A watch that brings nothing costs no pod its node: what is removed is read again before."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.factories import pod
from tests.virtual.mirror import Mirror
from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.execution import actions as a
from karpool.model.labels import DO_NOT_DISRUPT

EMPTIES = (
    "workloads: [{name: web, cpu: 900m, memory: 1Gi,"
    " replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 0}]}}]"
)
EMPTY_AT = HOUR / 3 + 20
PROTECTED = {DO_NOT_DISRUPT: "true"}


def emptied() -> Mirror:
    """A cluster whose nodes have just become empty, and are not consolidatable yet."""
    mirror = Mirror(virtual_cluster(EMPTIES))
    mirror.cluster.run(EMPTY_AT)
    bound = [pod for pod in mirror.cluster.store.pods if pod.spec.node_name and not pod.is_daemon]
    assert len(mirror.cluster.store.nodes) >= 1
    assert not bound
    return mirror


def test_without_a_stalled_watch_empty_nodes_go() -> None:
    mirror = emptied()
    mirror.cluster.run(EMPTY_AT + HOUR / 6)
    assert len(mirror.cluster.store.nodes) == 0
    assert not mirror.heard.dropped


@pytest.mark.slow
@pytest.mark.parametrize(("annotations", "code"), [(PROTECTED, "PodDoNotDisrupt"), ({}, "PodArrived")])
def test_a_pod_bound_while_the_watch_is_stalled_saves_its_node(annotations: dict[str, str], code: str) -> None:
    mirror = emptied()
    mirror.stall("pods")
    name = mirror.cluster.store.nodes.listed()[0].name
    mirror.cluster.store.pods.put(pod("late-1", node=name, annotations=annotations, phase="Running"))
    mirror.cluster.run(EMPTY_AT + HOUR / 6)
    assert name in mirror.cluster.store.nodes
    assert {reason.code for reason in mirror.heard.dropped} == {code}
    assert mirror.heard.dropped[0].object == "Pod default/late-1"
    mirror.resume("pods")
    mirror.cluster.run(EMPTY_AT + HOUR)
    if annotations:
        assert [node.name for node in mirror.cluster.store.nodes] == [name]


def test_a_node_protected_while_the_watch_is_stalled_stays() -> None:
    mirror = emptied()
    mirror.stall("nodes")
    node = mirror.cluster.store.nodes.listed()[0]
    mirror.cluster.store.nodes.put(replace(node, metadata=replace(node.metadata, annotations=PROTECTED)))
    mirror.cluster.run(EMPTY_AT + HOUR / 6)
    assert node.name in mirror.cluster.store.nodes
    assert {reason.code for reason in mirror.heard.dropped} == {"NodeDoNotDisrupt"}


@pytest.mark.parametrize(
    "when",
    [
        lambda action: isinstance(action, a.AddTaint),
        lambda action: isinstance(action, a.Annotate) and "committed" in (action.value or ""),
    ],
    ids=["after the start", "after the commit"],
)
def test_a_pod_bound_while_a_command_is_under_way_saves_its_node(when: Callable[[a.Action], bool]) -> None:
    mirror = emptied()
    bound: list[str] = []

    def bind(action: a.Action) -> None:
        if when(action) and not bound:
            mirror.stall("pods")
            name = mirror.cluster.store.nodes.listed()[0].name
            late = pod("late-1", node=name, annotations=PROTECTED, phase="Running", created=mirror.cluster.now)
            bound.append(name)
            mirror.cluster.queue.after(0.0, lambda: mirror.cluster.store.pods.put(late))

    mirror.cluster.actuator.observers.append(bind)
    mirror.cluster.run(EMPTY_AT + HOUR / 3)
    assert bound
    assert bound[0] in mirror.cluster.store.nodes
    assert mirror.heard.started
    assert "DisruptionRolledBack" in {event.reason for event in mirror.heard.told}
    node = mirror.cluster.store.nodes.get(bound[0])
    assert node is not None
    assert node.spec.taints == ()
