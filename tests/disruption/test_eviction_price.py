"""Consolidations must pay for the pods that they evict."""

from dataclasses import replace

import pytest
from tests.disruption.scenarios import (
    CATALOG,
    NOTHING,
    NOW,
    REFERENCE,
    NodeWithPods,
    Scenario,
    cluster,
    either_search,
    node,
    pool_of,
)
from tests.factories import Z1, Z2, pod
from tests.tables import row, table

from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import context_of
from karpool.disruption.policies import evictions_cost_more
from karpool.disruption.settings import GLOBAL, DisruptionSettings, Order
from karpool.model.labels import DO_NOT_DISRUPT, POD_DELETION_COST, ZONE
from karpool.packing.options import Options

SMALL = {"cpu": "100m", "memory": "10Mi"}
CHEAP = {**SMALL, "annotations": {POD_DELETION_COST: "-67108864"}}
"""A pod of half the weight."""
WORTHLESS = {**SMALL, "annotations": {POD_DELETION_COST: "-2147483648"}}
IMPORTANT = {**SMALL, "priority": 2**26}
"""A pod of three times the weight."""
OWN = {"tolerations": ["own"], "priority": 2**26}
THREE = [node(name, "huge", pods=[{"cpu": 1}]) for name in "abc"]
"""Three nodes of 3.2 $/h; one of 0.2 $/h holds their pods."""
SPACIOUS = node("b", "medium", pods=[SMALL], annotations={DO_NOT_DISRUPT: "true"})


def priced(price: float) -> DisruptionSettings:
    return replace(REFERENCE, eviction_price=price)


def crowd(*pods: dict[str, object]) -> list[NodeWithPods]:
    """A node of 0.05 $/h with these pods, beside one that has room for all of them."""
    return [node("a", "tiny", pods=pods), SPACIOUS]


@table(
    row(saved=0.05, weights=[1.0] * 5, price=0.01, pays=True),
    row(saved=0.15 - 0.10, weights=[1.0] * 5, price=0.01, pays=True),
    row(saved=0.0499, weights=[1.0] * 5, price=0.01, pays=False),
    row(saved=0.0, weights=[1.0], price=0.001, pays=False),
    row(saved=0.0, weights=[], price=0.001, pays=True),
    row(saved=0.0, weights=[0.0, 0.0], price=9.0, pays=True),
    row(saved=-1.0, weights=[], price=0.001, pays=False),
)
def test_a_saving_pays_for_evictions(saved: float, weights: list[float], price: float, *, pays: bool) -> None:
    assert (evictions_cost_more(saved, weights, price) is None) is pays


SCENARIOS = [
    Scenario(
        "five evictions at a fifth of the saving each",
        nodes=crowd(*[SMALL] * 5),
        settings=priced(0.01),
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "six evictions at a fifth of the saving each",
        nodes=crowd(*[SMALL] * 6),
        settings=priced(0.01),
        reasons={"a": "EvictionsCostMore"},
        messages={"a": "saves 0.05 $/h, and evicting 6 pods is priced at 0.06 $/h"},
    ),
    Scenario("no price, as with a search of prefixes", nodes=crowd(*[SMALL] * 6), removes="a"),
    Scenario(
        "pods that are cheap to delete count less",
        nodes=crowd(*[CHEAP] * 6),
        settings=priced(0.01),
        removes="a",
    ),
    Scenario(
        "pods that are worthless count for nothing, not less",
        nodes=crowd(*[WORTHLESS] * 2, *[SMALL] * 6),
        settings=priced(0.01),
        reasons={"a": "EvictionsCostMore"},
        messages={"a": "evicting 8 pods is priced at 0.06 $/h"},
    ),
    Scenario(
        "important pods count more",
        nodes=crowd(*[IMPORTANT] * 2),
        settings=priced(0.01),
        reasons={"a": "EvictionsCostMore"},
    ),
    Scenario(
        "a replacement must pay with what it saves",
        nodes=[node("a", "large", pods=[{"cpu": 3}])],
        settings=priced(0.2),
        removes="a",
        launches="medium",
    ),
    Scenario(
        "a replacement that saves less than its evictions cost",
        nodes=[node("a", "large", pods=[{"cpu": 3}])],
        settings=priced(0.201),
        reasons={"a": "EvictionsCostMore"},
    ),
    Scenario(
        "several nodes that save less than their evictions cost, together or alone",
        nodes=THREE,
        settings=priced(3.3),
        reasons=dict.fromkeys("abc", "EvictionsCostMore"),
    ),
    Scenario(
        "pods that have not started are not evicted",
        nodes=crowd(SMALL),
        pods=[pod(f"waiting-{n}", **SMALL) for n in range(9)],
        settings=priced(0.05),
        removes="a",
    ),
    Scenario(
        "a node of unknown price may go: what that saves is unknown, too",
        nodes=[node("a", "tiny", pods=[SMALL], zone="nowhere"), SPACIOUS],
        settings=priced(9.0),
        removes="a",
        launches=NOTHING,
    ),
    Scenario("emptiness evicts nothing", nodes=[node("a", "tiny")], settings=priced(9.0), removes="a"),
    Scenario(
        "drift is not asked what it saves",
        nodes=[node("a", pods=[{"cpu": 3}], claim={"drifted": True})],
        settings=priced(9.0),
        removes="a",
        method="Drift",
    ),
]


@either_search(SCENARIOS)
def test_evictions_have_a_price(scenario: Scenario) -> None:
    scenario.verify()


def test_several_nodes_pay_together() -> None:
    """All of them save 3.13 $/h for each eviction, so that they go, although the third saves only 3.0 more."""
    Scenario("together", nodes=THREE, settings=priced(3.1), removes="a b c", method="Multi", launches="medium").verify()


def test_a_global_search_asks_what_each_eviction_saves() -> None:
    """Without the third node's eviction the end is cheaper: 3.2 + 2 x 3.1 $/h, instead of 0.2 + 3 x 3.1."""
    searched = replace(priced(3.1), search=GLOBAL, effort=0)
    assert Scenario("each", nodes=THREE, settings=searched).plan(None).after.price == pytest.approx(3.2)


def test_a_node_that_did_not_pay_goes_when_a_later_step_makes_room_for_its_pods() -> None:
    """Replacing `a` saves 0.05 $/h for two evictions, deleting it saves 0.10: with the node that replaces `b`."""
    nodes = [
        node("a", "small", pods=[{"cpu": "400m"}] * 2, zone=Z1),
        node("b", "huge", pods=[{**OWN, "cpu": 1, "selector": {ZONE: Z2}}], zone=Z2, taints=["own:NoSchedule"]),
    ]
    settings = replace(REFERENCE, order=Order.COST, eviction_price=0.04)
    scenario = Scenario("later", nodes=nodes, settings=settings, pools=[pool_of(budgets=["1"])])
    made = scenario.plan(None)
    assert [(step.command.nodes, len(step.command.replacements)) for step in made.steps] == [(("b",), 1), (("a",), 0)]


def test_explain_says_that_evictions_would_have_to_be_priced_lower() -> None:
    objects = cluster(crowd(*[SMALL] * 6), pools=[pool_of()])
    context = context_of(objects, CATALOG, now=NOW, settings=priced(0.01), options=Options())
    found = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    codes = [rule.reason.code for rule in found.outcomes if rule.reason is not None and not rule.passed]
    assert codes == ["EvictionsCostMore"]
    assert [entry.condition for entry in found.alternatives] == ["evictions were priced lower (--eviction-price)"]


def test_a_global_search_prices_evictions_unless_told_otherwise() -> None:
    assert DisruptionSettings(search=GLOBAL).effective_eviction_price > 0
    assert DisruptionSettings(search=GLOBAL, eviction_price=0.0).effective_eviction_price == 0
