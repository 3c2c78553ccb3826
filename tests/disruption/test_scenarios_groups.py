"""Several nodes at once, one node after the other, and whether a move is worth it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.scenarios import (
    CATALOG,
    MIXED,
    NOTHING,
    REFERENCE,
    NodeWithPods,
    Scenario,
    ago,
    either_search,
    node,
    pool_of,
)
from tests.factories import Z1, Z2, instance_type, pdb

from karpool.catalog.instance_types import Catalog
from karpool.cluster.nodes import StateNode
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.methods.search import Judged, Proposal, longest_prefix
from karpool.disruption.settings import Order, Partition
from karpool.model.labels import (
    ARCH,
    BALANCED_K,
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    MINIMUM_SAVINGS,
    ON_DEMAND,
    POD_DELETION_COST,
    SPOT,
)
from karpool.model.nodepool import PoolRequirement

GATE = replace(REFERENCE, spot_to_spot=True)
LARGE = (INSTANCE_TYPE, "In", "large")


def three(kinds: tuple[str, str, str] = (ON_DEMAND, ON_DEMAND, ON_DEMAND), **rest: Any) -> list[NodeWithPods]:
    """Three expensive nodes with a pod each that will not fit on a node that has one already."""
    return [
        node(name, "huge", pods=[{"cpu": 1}], capacity_type=kind, **rest)
        for name, kind in zip("abc", kinds, strict=True)
    ]


def choosy(count: int) -> PoolRequirement:
    return PoolRequirement(key=INSTANCE_TYPE, operator="Exists", min_values=count)


MULTI = [
    Scenario(
        "three expensive nodes, one small one instead",
        free_choice=True,
        nodes=three(),
        pools=[pool_of(budgets=["2"])],
        removes="a b",
        method="Multi",
        launches=NOTHING,
    ),
    Scenario("three expensive on-demand nodes", nodes=three(), removes="a b c", method="Multi", launches="medium"),
    Scenario(
        "three expensive spot nodes, gate on",
        nodes=three((SPOT, SPOT, SPOT)),
        pools=[MIXED],
        settings=GATE,
        removes="a b c",
        launches="medium",
        check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT,
    ),
    Scenario(
        "three expensive spot nodes, gate off: two fit on the third",
        nodes=three((SPOT, SPOT, SPOT)),
        pools=[MIXED],
        removes="a b",
        launches=NOTHING,
    ),
    Scenario(
        "spot and on-demand mixed needs no gate",
        nodes=three((SPOT, ON_DEMAND, SPOT)),
        pools=[MIXED],
        removes="a b c",
        launches="medium",
        check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT,
    ),
    Scenario(
        "spot pairs need no fifteen types",
        nodes=three((SPOT, SPOT, SPOT)),
        pools=[pool_of("default", SPOT)],
        settings=GATE,
        removes="a b c",
        launches="medium",
    ),
    Scenario(
        "two nodes into one of the same type is no rebuilding when it is simply deleted",
        free_choice=True,
        nodes=[node("a", pods=3), node("b", pods=3)],
        removes="a",
        method="Single",
        launches=NOTHING,
    ),
    Scenario(
        "not to a type that one of them has",
        nodes=[node("a", "medium", pods=[{"cpu": 2}]), node("b", "large", pods=[{"cpu": 2}], taints=["x"])],
        pools=[pool_of(requirements=[(INSTANCE_TYPE, "In", "medium", "large")])],
        removes="b",
        method="Single",
        launches="medium",
    ),
    Scenario(
        "all nodes at a fifth: some go",
        free_choice=True,
        nodes=[node(f"n{i}", pods=[{"cpu": "700m"}]) for i in range(5)],
        removes="n0 n1 n2 n3",
        method="Multi",
        launches=NOTHING,
    ),
    Scenario("one candidate alone is no group", nodes=[node("a", "huge", pods=1)], removes="a", method="Single"),
    Scenario("budget of one: no group", nodes=three(), pools=[pool_of(budgets=["1"])], removes="a", method="Single"),
    Scenario(
        "ten nodes with tiny pods, 30%",
        free_choice=True,
        nodes=[node(f"n{i}", pods=[{"cpu": "100m"}]) for i in range(10)],
        pools=[pool_of(budgets=["30%"])],
        removes="n0 n1 n2",
        method="Multi",
        launches=NOTHING,
    ),
    Scenario(
        "a budget for drift does not hold consolidation back",
        nodes=three(),
        pools=[pool_of(budgets=["100%"])],
        removes="a b c",
    ),
    Scenario(
        "equal prices, different numbers of pods: fewer pods first",
        free_choice=True,
        nodes=[
            node("a", pods=[{"cpu": "100m"}] * 4),
            node("b", pods=[{"cpu": "100m"}] * 1),
            node("c", pods=[{"cpu": "100m"}] * 3),
        ],
        pools=[pool_of(budgets=["2"])],
        removes="b c",
        method="Multi",
        launches=NOTHING,
    ),
    Scenario(
        "more expensive per pod first",
        free_choice=True,
        nodes=[
            node("a", "large", pods=[{"cpu": "100m"}] * 4),
            node("b", "tiny", pods=[{"cpu": "100m"}]),
            node("c", "medium", pods=[{"cpu": "100m"}]),
        ],
        pools=[pool_of(budgets=["1"])],
        removes="c",
        method="Single",
        launches=NOTHING,
    ),
    Scenario(
        "an expensive pod comes last",
        free_choice=True,
        nodes=[
            node("a", pods=[{"annotations": {POD_DELETION_COST: "134217728"}}]),
            node("b", pods=1),
            node("c", pods=1),
        ],
        pools=[pool_of(budgets=["2"])],
        removes="b c",
        launches=NOTHING,
    ),
    Scenario(
        "an important pod comes last",
        free_choice=True,
        nodes=[node("a", pods=[{"priority": 1_000_000_000}]), node("b", pods=1), node("c", pods=1)],
        pools=[pool_of(budgets=["2"])],
        removes="b c",
        launches=NOTHING,
    ),
    Scenario(
        "after the same-type filter minimums break: one node is deleted",
        nodes=[
            node("a", "large", pods=[{"cpu": "500m"}]),
            node("b", "large", pods=[{"cpu": 1}]),
            node("c", "small", pods=[{"cpu": "200m"}]),
        ],
        pools=[pool_of(requirements=[choosy(3)])],
        removes="a b",
        launches=NOTHING,
    ),
    Scenario(
        "waves of a shared budget",
        nodes=three(),
        pdbs=[pdb("one", {}, allowed=1)],
        removes="a b c",
        check=lambda p: p.steps[0].command.waves["default/one"].waves == 3,
    ),
]


def tenants(*counts: int, cpu: str = "100m", **pool: Any) -> Scenario:
    """Pools t0, t1, … with a taint each, so that their pods cannot share nodes, and some nodes in each."""
    pools = [pool_of(f"t{i}", taints=[f"tenant=t{i}"], **pool) for i in range(len(counts))]
    nodes = [
        node(
            f"t{i}-{n}",
            "large",
            pods=[{"cpu": cpu, "tolerations": [f"tenant=t{i}"]}],
            pool=f"t{i}",
            taints=[f"tenant=t{i}"],
        )
        for i, count in enumerate(counts)
        for n in range(count)
    ]
    return Scenario("tenants", nodes=nodes, pools=pools)


@either_search(MULTI)
def test_several_nodes_go_together(scenario: Scenario) -> None:
    scenario.verify()


def test_bins_are_tried_from_the_one_with_most_nodes_down() -> None:
    made = tenants(2, 4, 3).plan(None)
    groups = [step.command.nodes for step in made.steps]
    assert [nodes[0][:2] for nodes in groups[:3]] == ["t1", "t2", "t0"]
    assert [len(nodes) for nodes in groups[:3]] == [4, 3, 2]


def test_how_large_a_bin_is_does_not_depend_on_what_a_budget_leaves_of_it() -> None:
    """Of the four nodes of the first tenant, its budget lets two go; the second has three, and may lose all."""
    limited = tenants(4, 3)
    pools = [
        pool_of(pool.name, taints=pool.spec.template.spec.taints, budgets=b)
        for pool, b in zip(limited.pools, (["2"], ["100%"]), strict=True)
    ]
    first = replace(limited, pools=pools).plan().steps[0].command.nodes
    assert [name[:2] for name in first] == ["t0", "t0"]


def test_without_bins_tenants_stand_in_each_others_way() -> None:
    """Three tenants of two nodes: their pods never fit on one new node, so no prefix of all nodes goes at once."""
    alone = replace(tenants(2, 2, 2, cpu="7"), settings=replace(REFERENCE, partition=Partition.NONE))
    assert {step.command.method for step in alone.plan(None).steps} <= {"SingleNodeConsolidation"}


def equal_pools(partition: Partition, **second: Any) -> Scenario:
    """A heavy pool and its fallback, each with a node that is too expensive for its pod."""
    pools = [pool_of("first", weight=10), pool_of("second", **second)]
    nodes = [node("a", "huge", pods=[{"cpu": 40}], pool="first"), node("b", "large", pods=[{"cpu": 7}], pool="second")]
    return Scenario("alike", nodes=nodes, pools=pools, settings=replace(REFERENCE, partition=partition), catalog=BIG)


BIG = Catalog((*CATALOG.types, instance_type("mid", 48, "192Gi", price=2.4, zones=[Z1, Z2])))


@pytest.mark.parametrize(
    ("partition", "second", "together"),
    [
        (Partition.AUTO, {}, True),
        (Partition.NONE, {}, True),
        (Partition.POOL, {}, False),
        (Partition.AUTO, {"labels": {"team": "red"}}, False),
        (Partition.AUTO, {"taints": ["soft:PreferNoSchedule"]}, False),
        (Partition.AUTO, {"requirements": [("team", "In", "red")]}, False),
        (Partition.AUTO, {"weight": 3}, True),
        (Partition.AUTO, {"limits": {"cpu": 100}}, True),
    ],
)
def test_equal_pools_share_a_bin(partition: Partition, second: dict[str, Any], *, together: bool) -> None:
    scenario = equal_pools(partition, **second)
    if "requirements" in second:
        scenario = replace(
            scenario,
            nodes=[scenario.nodes[0], node("b", "large", pods=[{"cpu": 7}], pool="second", labels={"team": "red"})],
        )
    nodes = scenario.plan().steps[0].command.nodes
    assert (set(nodes) == {"a", "b"}) is together


def test_architectures_do_not_share_a_bin() -> None:
    arm = instance_type("arm", 8, "32Gi", price=0.3, arch="arm64", zones=[Z1])
    catalog = Catalog((*CATALOG.types, arm))
    held = {ARCH: "arm64"}
    nodes = [
        node("x", "large", pods=[{"cpu": 1, "selector": {ARCH: "amd64"}}]),
        node("y", "arm", pods=[{"cpu": 1, "selector": held}], catalog=catalog),
        node("z", "arm", pods=[{"cpu": 1, "selector": held}], catalog=catalog),
    ]
    scenario = Scenario("arches", nodes=nodes, catalog=catalog, removes="y", method="Single", launches=NOTHING)
    assert scenario.plan().steps[0].command.nodes in (("y",), ("x",), ("y", "z"))
    first = replace(scenario, settings=replace(REFERENCE, partition=Partition.POOL)).plan().steps[0].command
    assert len({"arm" if name in "yz" else "amd" for name in first.nodes}) == 1


def test_single_node_consolidation_gives_every_pool_its_turn() -> None:
    """A pool of many candidates that cannot go does not keep another pool waiting."""
    scenario = tenants(1, 1, 1)
    made = scenario.plan(None)
    assert sorted(name for step in made.steps for name in step.command.nodes) == ["t0-0", "t1-0", "t2-0"]
    assert {step.command.method for step in made.steps} == {"SingleNodeConsolidation"}


@pytest.mark.parametrize(
    ("order", "first"),
    [(Order.RATIO, "expensive"), (Order.COST, "old")],
)
def test_both_orders_of_candidates(order: Order, first: str) -> None:
    """By ratio the expensive node goes first; by cost the one that has little of its life before it."""
    life = {"expire_after": "100h"}
    nodes = [
        node("expensive", "large", pods=2, claim={**life, "created": ago(hours=1)}),
        node("old", "small", pods=2, claim={**life, "created": ago(hours=90)}),
        node("host", "huge", pods=1, annotations={"karpenter.sh/do-not-disrupt": "true"}),
    ]
    made = Scenario(
        "order", nodes=nodes, pools=[pool_of(budgets=["1"])], settings=replace(REFERENCE, order=order)
    ).plan()
    assert made.steps[0].command.nodes == (first,)


def numbered(count: int) -> list[Candidate]:
    """So many candidates of which only the order matters."""
    given = node("a", "small")
    state = StateNode(given.node, given.claim)
    return [
        Candidate(number, f"n{number}", state, None, "", None, None, (), 1.0, 1.0, (0.0, f"n{number}"))
        for number in range(count)
    ]


def prefix_of(proposal: Proposal) -> Command:
    names = tuple(candidate.name for candidate in proposal.candidates)
    assert names == tuple(f"n{number}" for number in range(len(names)))
    assert proposal.most_new_nodes == 1
    return Command(method=Method.MULTI_NODE, cause=Cause.UNDERUTILIZED, nodes=names)


@pytest.mark.parametrize(
    ("length", "works", "found"),
    [(2, 2, 2), (2, 1, None), (10, 7, 7), (10, 10, 10), (100, 64, 64), (300, 300, 100), (300, 101, 100), (1, 1, None)],
)
def test_halving_finds_the_longest_prefix_that_works(length: int, works: int, found: int | None) -> None:
    tried: list[int] = []

    def judge(proposals: Sequence[Proposal]) -> Judged | None:
        for place, proposal in enumerate(proposals):
            tried.append(len(proposal.candidates))
            if tried[-1] <= works:
                return Judged(place, prefix_of(proposal))
        return None

    best = longest_prefix(numbered(length), judge)
    assert (None if best is None else len(best.nodes)) == found
    assert len(tried) <= 7
    assert all(size >= 2 for size in tried)


@given(st.integers(0, 30), st.sets(st.integers(2, 30)))
def test_lengths_are_tried_one_by_one_as_halving_does(count: int, working: set[int]) -> None:
    """Whether a prefix works need not depend on its length in any orderly way."""
    tried: list[int] = []

    def judge(proposals: Sequence[Proposal]) -> Judged | None:
        for place, proposal in enumerate(proposals):
            tried.append(len(proposal.candidates))
            if tried[-1] in working:
                return Judged(place, prefix_of(proposal))
        return None

    halved: list[int] = []
    best, low, high = None, 1, count - 1
    while low <= high:
        middle = (low + high) // 2
        halved.append(middle + 1)
        if middle + 1 in working:
            best, low = middle + 1, middle + 1
        else:
            high = middle - 1
    command = longest_prefix(numbered(count), judge)
    assert (None if command is None else len(command.nodes)) == best
    assert tried == halved


def balanced(k: str | None = None, **rest: Any) -> Any:
    return pool_of(policy="Balanced", annotations={} if k is None else {BALANCED_K: k}, **rest)


def crowd(pods: int) -> list[NodeWithPods]:
    """Two nodes: `a`, a quarter of the price, with so many pods of the ten; `b` has the others and room for all."""
    small = {"cpu": "100m", "memory": "10Mi"}
    return [
        node("a", "tiny", pods=[small] * pods),
        node("b", "medium", pods=[small] * (10 - pods), annotations={DO_NOT_DISRUPT: "true"}),
    ]


WORTH = [
    Scenario(
        "a fifth of the money for half the trouble",
        nodes=crowd(5),
        pools=[balanced()],
        reasons={"a": "BalancedScoreTooLow"},
    ),
    Scenario(
        "a fifth of the money for a quarter of the trouble",
        nodes=crowd(2),
        pools=[balanced()],
        removes="a",
        launches=NOTHING,
    ),
    Scenario("k 5 asks for less", nodes=crowd(5), pools=[balanced("5")], removes="a", launches=NOTHING),
    Scenario("k 1 asks for more", nodes=crowd(2), pools=[balanced("1")], reasons={"a": "BalancedScoreTooLow"}),
    Scenario(
        "an unreadable k approves nothing", nodes=crowd(2), pools=[balanced("much")], reasons={"a": "BalancedKInvalid"}
    ),
    Scenario("other policies do not ask", nodes=crowd(5), removes="a", launches=NOTHING),
    Scenario(
        "minimum saving in $/h, reached",
        nodes=crowd(5),
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "0.05"})],
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "minimum saving in $/h, missed",
        nodes=crowd(5),
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "0.06"})],
        reasons={"a": "SavingsBelowMinimum"},
        messages={"a": "saves 0.05 $/h"},
    ),
    Scenario(
        "minimum saving as a share, reached",
        nodes=[node("a", "large", pods=[{"cpu": 3}])],
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "50%"})],
        removes="a",
        launches="medium",
    ),
    Scenario(
        "minimum saving as a share, missed",
        nodes=[node("a", "large", pods=[{"cpu": 3}])],
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "51%"})],
        reasons={"a": "SavingsBelowMinimum"},
    ),
    Scenario(
        "minimum saving does not concern emptiness",
        nodes=[node("a", "tiny")],
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "9"})],
        removes="a",
    ),
    Scenario(
        "minimum saving does not concern drift",
        nodes=[node("a", pods=[{"cpu": 3}], claim={"drifted": True})],
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "9"})],
        removes="a",
        method="Drift",
    ),
    Scenario(
        "unreadable minimum saving",
        nodes=crowd(5),
        pools=[pool_of(annotations={MINIMUM_SAVINGS: "lots"})],
        reasons={"a": "MinimumSavingsInvalid"},
    ),
    Scenario(
        "Balanced does not concern emptiness",
        nodes=[node("a", "tiny"), node("b", "huge", pods=1, pool="still")],
        pools=(balanced(), pool_of("still", consolidate_after="Never")),
        removes="a",
    ),
]


@either_search(WORTH)
def test_a_move_must_be_worth_its_trouble(scenario: Scenario) -> None:
    scenario.verify()


def test_one_balanced_pool_that_objects_stops_a_move_of_two_pools() -> None:
    """The pair would go into one node; the pool with the many pods gains too little of what the pair saves."""
    small = {"cpu": "100m", "memory": "10Mi"}
    pools = [balanced(requirements=[(ARCH, "Exists")]), pool_of("plain", requirements=[(ARCH, "Exists")])]
    nodes = [
        node("a", "small", pods=[small] * 9),
        node("b", "small", pods=[{"cpu": "1500m"}]),
        node("c", "huge", pods=[small], pool="plain"),
    ]
    free = Scenario("pair", nodes=nodes, pools=[replace_policy(pools[0]), pools[1]])
    assert "a" in {name for step in free.plan(None).steps for name in step.command.nodes}
    bound = Scenario("pair", nodes=nodes, pools=pools)
    assert "a" not in bound.plan().steps[0].command.nodes


def replace_policy(pool: Any) -> Any:
    from msgspec.structs import replace as changed

    spec = pool.spec
    disruption = changed(spec.disruption, consolidation_policy="WhenEmptyOrUnderutilized")
    return changed(pool, spec=changed(spec, disruption=disruption))


def test_two_clusters_alike_but_for_the_order_of_their_objects_get_the_same_plan() -> None:
    nodes = [node(f"n{i}", "large", pods=1 + i % 4, zone=(Z1, Z2)[i % 2]) for i in range(8)]
    plans = [Scenario("order", nodes=listed).plan(None) for listed in (nodes, nodes[::-1])]
    assert [step.command.nodes for step in plans[0].steps] == [step.command.nodes for step in plans[1].steps]
    assert plans[0].after == plans[1].after


def test_capacity_type_of_every_listed_type() -> None:
    new = Scenario("types", nodes=three(), pools=[MIXED]).plan().steps[0].command.replacements[0]
    assert new.requirements[CAPACITY_TYPE].values == {SPOT}
    for name in new.instance_types:
        offerings = CATALOG.by_name[name].offerings
        assert any(offering.capacity_type == SPOT and offering.zone in new.zones for offering in offerings)
