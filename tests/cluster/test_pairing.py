"""Nodes and NodeClaims are paired the same way, whatever arrives first and whatever they say of each other."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.factories import node, node_claim

from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import Pairing, PairingChange, with_claims
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim

NAMES = ("a", "b", "c", "d")
PROVIDERS = ("", "p", "q", "r")


def some_node(chance: Random, name: str) -> Node:
    taints = chance.choice([(), ["karpenter.sh/unregistered:NoExecute"]])
    made = node(name, taints=taints)
    return replace(made, spec=replace(made.spec, provider_id=chance.choice(PROVIDERS)))


def some_claim(chance: Random, name: str) -> NodeClaim:
    made = node_claim(name, node_name=chance.choice(["", *NAMES]))
    return replace(made, status=replace(made.status, provider_id=chance.choice(PROVIDERS)))


def apply(rows: dict[str, StateNode], change: PairingChange) -> None:
    for name in change.gone:
        del rows[name]
    for state in change.states:
        rows[state.name] = state


@examples(150)
@given(st.integers(0, 2**32))
def test_changes_end_where_pairing_anew_would(seed: int) -> None:
    chance, pairing, rows = Random(seed), Pairing(), dict[str, StateNode]()
    for _ in range(60):
        name = chance.choice(NAMES)
        if chance.random() < 0.5:
            apply(rows, pairing.set_node(name, some_node(chance, name) if chance.random() < 0.7 else None))
        else:
            apply(rows, pairing.set_claim(name, some_claim(chance, name) if chance.random() < 0.7 else None))
        anew = Pairing(pairing.nodes.values(), pairing.claims.values()).states()
        assert len({state.name for state in anew}) == len(anew)
        assert rows == {state.name: state for state in anew}


@examples(100)
@given(st.integers(0, 2**32))
def test_nodes_of_a_moment_have_the_claims_that_kept_pairs_say(seed: int) -> None:
    chance = Random(seed)
    nodes = [some_node(chance, name) for name in NAMES]
    claims = [some_claim(chance, name) for name in chance.sample(NAMES, chance.randint(0, len(NAMES)))]
    pairing = Pairing(nodes, claims)
    assert list(with_claims(nodes, claims)) == [(each, pairing.claim_of(each)) for each in nodes]


@pytest.mark.parametrize("provider", ["p", ""])
def test_a_node_and_its_claim_are_one_row(provider: str) -> None:
    machine, claim = node("a"), node_claim("c", node_name="a")
    machine = replace(machine, spec=replace(machine.spec, provider_id=provider))
    claim = replace(claim, status=replace(claim.status, provider_id="p"))
    for pairing in (Pairing([machine], [claim]), Pairing()):
        pairing.set_claim("c", claim)
        pairing.set_node("a", machine)
        assert pairing.claim_of(machine) == claim
        assert pairing.node_of(claim) == machine
