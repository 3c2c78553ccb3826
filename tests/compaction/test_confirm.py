"""Before a node is cordoned or loses pods, it is compared with what the API server has of it."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.compaction.clusters import NOW, ROOMY, cluster, config, draining, pool_node
from tests.factories import pod

from karpool.compaction.actions import SetNodeState
from karpool.compaction.advance import CompactionStep, advance
from karpool.compaction.confirm import confirmed, nodes_to_read
from karpool.compaction.settings import DEFAULTS
from karpool.execution.actions import EvictPod, RecordEvent
from karpool.execution.fresh_facts import FreshNode
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.node import Node
from karpool.model.pod import Pod

PROTECTED = {DO_NOT_DISRUPT: "true"}
LEAVES = pool_node("a", pods=["100m"])
DRAINS = draining("a", pods=["100m"])
NEW = pod("new-1", node="a")


def step(leaving: tuple[Node, tuple[Pod, ...]]) -> CompactionStep:
    """A step that begins with a node, or goes on with it."""
    return advance(cluster([leaving, ROOMY]), config(), NOW, DEFAULTS)


def annotated(obj: Any) -> Any:
    return replace(obj, metadata=replace(obj.metadata, annotations={**obj.metadata.annotations, **PROTECTED}))


@pytest.mark.parametrize("leaving", [LEAVES, DRAINS], ids=["begins", "goes on"])
def test_a_node_that_is_as_it_was_is_drained(leaving: tuple[Node, tuple[Pod, ...]]) -> None:
    planned = step(leaving)
    assert nodes_to_read(planned.actions) == ["a"]
    result = confirmed(planned, {"a": FreshNode(*leaving)})
    assert result == (planned.actions, {})
    gone = confirmed(planned, {"a": FreshNode(leaving[0], ())})
    assert gone.refused == {}


@pytest.mark.parametrize("leaving", [LEAVES, DRAINS], ids=["begins", "goes on"])
@pytest.mark.parametrize(
    ("now", "code"),
    [
        (lambda node, pods: FreshNode(node, (*pods, NEW)), "FactsChanged"),
        (lambda node, pods: FreshNode(node, (*pods, annotated(NEW))), "PodDoNotDisrupt"),
        (lambda node, pods: FreshNode(node, (annotated(pods[0]),)), "PodDoNotDisrupt"),
        (lambda node, _: FreshNode(node, (pod("a-0", cpu="3", memory="64Mi", node="a"),)), "FactsChanged"),
        (lambda node, pods: FreshNode(annotated(node), pods), "NodeDoNotDisrupt"),
        (lambda _node, _pods: FreshNode(None, ()), "FactsChanged"),
        (lambda _node, _pods: FreshNode(problem="no answer in time"), "FactsUnknown"),
    ],
)
def test_a_node_that_is_not_what_was_decided_on_is_left_alone(
    leaving: tuple[Node, tuple[Pod, ...]], now: Any, code: str
) -> None:
    planned = step(leaving)
    result = confirmed(planned, {"a": now(*leaving)})
    assert {name: reason.code for name, reason in result.refused.items()} == {"a": code}
    done = [action for action in result.actions if not isinstance(action, RecordEvent)]
    assert not [action for action in done if isinstance(action, EvictPod)]
    assert not [action for action in done if isinstance(action, SetNodeState) and action.node == "a"]
    (told,) = [action for action in result.actions if isinstance(action, RecordEvent)]
    assert (told.name, told.reason) == ("a", code)


def test_a_node_that_only_gets_a_mark_is_not_read() -> None:
    planned = step(pool_node("a", pods=["100m"], mark=None))
    assert [action.node for action in planned.actions if isinstance(action, SetNodeState)]
    assert nodes_to_read(planned.actions) == []
    assert confirmed(planned, {}).actions == planned.actions
