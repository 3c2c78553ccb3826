"""What pools say of moves of consolidation, as metrics and Events tell it: each move once."""

import pytest
from tests.disruption.scenarios import CATALOG, NOW, REFERENCE, NodeWithPods, cluster, node, pool_of

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.decide import Decision, decide
from karpool.disruption.policies import Verdict, Worth, verdict
from karpool.disruption.policies_in_force import Policies
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.nodepool import NodePool
from karpool.packing.engine import Engine
from karpool.packing.options import Options

BALANCED = pool_of(policy="Balanced")
KEPT = {"annotations": {DO_NOT_DISRUPT: "true"}}


def decided(*nodes: NodeWithPods, pools: tuple[NodePool, ...] = (BALANCED,)) -> Decision:
    objects = cluster(nodes, pools=pools)
    policies = Policies({pool.name: pool for pool in pools}, PdbLimits(()), REFERENCE)
    return decide(Engine(Snapshot(objects), CATALOG, Options()), policies, NOW)


@pytest.mark.parametrize(
    ("saved", "disruption", "score", "approved"),
    [(1.0, 8, 0.5, True), (1.0, 9, 0.444, False), (0.4, 3, 0.533, True), (0.3, 3, 0.4, False)],
    ids=["delete", "delete with one pod more", "replace", "replace by a dearer one"],
)
def test_a_score_compares_shares_of_money_and_of_disruption(
    saved: float, disruption: float, score: float, *, approved: bool
) -> None:
    said = verdict(BALANCED, Worth(saved, disruption), Worth(10, 40), ("a",))
    assert said.score == pytest.approx(score, abs=1e-3)
    assert (said.approved, said.savings, said.disruption) == (approved, saved / 10, disruption / 40)


def test_what_is_approved_is_told_in_figures() -> None:
    said = verdict(BALANCED, Worth(1, 8), Worth(10, 40), ("a",)).told
    assert said == "score 0.50, at least 0.50 (k = 2): saves 10.0 % of the pool's price for 20.0 % of its disruption"


def test_a_pool_of_another_policy_approves_without_a_score() -> None:
    plain = pool_of()
    assert decided(node("a", "tiny", pods=1), node("b", pods=3), pools=(plain,)).verdicts == (
        Verdict("default", "WhenEmptyOrUnderutilized", approved=True, nodes=("b",)),
    )


def test_a_replacement_that_a_balanced_pool_rejects_is_told_once() -> None:
    # Deleting it would do (0.2 of 0.6 $/h for half of the disruption), replacing it by one of 0.1 $/h does not.
    found = decided(
        node("a", pods=[{"cpu": "1500m"}]), node("b", "large", pods=[{"cpu": "7500m", "memory": "1Gi"}], **KEPT)
    )
    assert found.commands == ()
    (rejected,) = found.verdicts
    assert (rejected.pool, rejected.approved, rejected.nodes) == ("default", False, ("a",))
    assert rejected.score == pytest.approx(0.333, abs=1e-3)


def test_a_node_whose_deletion_would_be_rejected_is_not_even_tried() -> None:
    found = decided(
        node("a", pods=[{"cpu": "1500m"}]), node("b", "huge", pods=[{"cpu": "63500m", "memory": "1Gi"}], **KEPT)
    )
    assert (found.commands, found.verdicts) == ((), ())


def test_of_several_nodes_that_a_balanced_pool_rejects_the_last_set_tried_is_told() -> None:
    # Two nodes could become a small one; alone neither would be deleted, so that nobody asks for its replacement.
    found = decided(
        node("a", pods=[{"cpu": "900m"}]),
        node("b", pods=[{"cpu": "900m"}]),
        node("c", "huge", pods=[{"cpu": "63500m", "memory": "1Gi"}], **KEPT),
    )
    assert found.commands == ()
    assert [(sorted(said.nodes), said.approved) for said in found.verdicts] == [(["a", "b"], False)]
