"""Nodes that go soon ask pods to stay away, and nobody else does."""

from tests.factories import node

from karpool.cluster.nodes import StateNode
from karpool.execution.actions import AddTaint, RemoveTaint
from karpool.execution.steering import STEERING, steer
from karpool.model.scheduling import Taint


def test_nodes_that_go_soon_are_marked_once_and_others_are_not_marked_any_more() -> None:
    nodes = [node("new"), node("marked", taints=[STEERING]), node("stays", taints=[STEERING]), node("other")]
    assert steer(nodes, {"new", "marked"}) == [AddTaint("new", STEERING), RemoveTaint("stays", STEERING)]


def test_the_mark_is_no_rule_to_decisions() -> None:
    hard = Taint(key="own", effect="NoSchedule")
    marked = StateNode(node("a", taints=[STEERING, hard]), None)
    assert marked.steered
    assert marked.taints == (hard,)
    assert not StateNode(node("b", taints=[hard]), None).steered
