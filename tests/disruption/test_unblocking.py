"""What would have to be otherwise for a node that stays, in words that fit who manages it."""

from typing import Any

import pytest
from tests.disruption.scenarios import NOW, REFERENCE, Scenario, node, pool_of

from karpool.disruption.candidates.node_checks import CODES_OF_MANAGERS
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import context_of
from karpool.disruption.reasons import LEFT_ALONE
from karpool.disruption.unblocking import otherwise
from karpool.model.managers import COMPUTE_TYPE
from karpool.model.reasons import Reason

CLAIM = "its NodeClaim were in the input"


@pytest.mark.parametrize("code", sorted(CODES_OF_MANAGERS - LEFT_ALONE))
def test_who_manages_a_node_is_never_told_as_a_rule_that_should_hold(code: str) -> None:
    assert otherwise("managed by a NodePool or a node group", Reason(code, "stays", "Node a")) == CLAIM


@pytest.mark.parametrize(
    ("labels", "code"), [({}, "NotManaged"), ({COMPUTE_TYPE: "auto"}, "AutoModeNode")], ids=["Karpenter", "Auto Mode"]
)
def test_a_node_of_a_pool_without_its_claim_could_go_if_the_claim_were_there(labels: dict[str, Any], code: str) -> None:
    nodes = [
        node("a", pods=[{"cpu": "200m"}], managed=False, labels=labels),
        node("b", "large", pods=[{"cpu": 3}]),
    ]
    made = Scenario("told", nodes=nodes, pools=(pool_of(),), settings=REFERENCE)
    context = context_of(made.objects, made.catalog, now=NOW, settings=made.settings, options=made.options)
    told = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    assert [reason.code for reason in told.hindrances] == [code]
    assert [entry.condition for entry in told.alternatives] == [CLAIM]
    assert told.alternatives[0].savings > 0
