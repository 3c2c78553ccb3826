"""One node that several cheaper ones replace, where the search allows it."""

import pytest
from tests.disruption.scenarios import CATALOG, NOW, cluster, node, pool_of
from tests.factories import affinity_to

from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.methods.single_node import single_node, single_refusal
from karpool.disruption.plan import context_of
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.packing.options import Options

APART = {"cpu": "1500m", "labels": {"app": "apart"}, "anti": [affinity_to({"app": "apart"})]}


def decision_pass(search: str) -> DecisionPass:
    """A node of 0.4 $/h with two pods that must not share a node any more: two of 0.1 $/h would do."""
    objects = cluster([node("a", "large", pods=[APART, APART])], pools=[pool_of()])
    settings = DisruptionSettings(search=search)
    return DecisionPass(context_of(objects, CATALOG, now=NOW, settings=settings, options=Options()))


def test_a_global_search_lets_several_new_nodes_replace_one() -> None:
    (command,) = single_node(decision_pass(GLOBAL))
    assert (command.nodes, command.launched) == (("a",), "2 small")
    assert command.savings == pytest.approx(0.2)


def test_a_search_of_prefixes_does_not() -> None:
    made = decision_pass("prefix")
    assert single_node(made) == ()
    reason = single_refusal(made, made.consolidatable()[0])
    assert reason is not None
    assert reason.code == "NeedsSeveralNodes"


def test_explain_shows_every_new_node_of_a_global_search() -> None:
    made = decision_pass(GLOBAL)
    explained = explain_node(made, made.consolidatable()[0])
    assert explained.command is not None
    assert explained.command.launched == "2 small"
    assert {entry.target for entry in explained.destinations} == {"new-1", "new-2"}
