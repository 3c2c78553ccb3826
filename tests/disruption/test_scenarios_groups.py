"""Several nodes at once, one node after the other, and whether a move is worth it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.scenes import CATALOG, MIXED, Box, Scene, ago, box, names, pool_of
from tests.factories import Z1, Z2, instance_type, pdb

from karpool.catalog.instance_types import Catalog
from karpool.disruption.search import longest_prefix
from karpool.disruption.settings import DisruptionSettings, Order, Partition
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

GATE = DisruptionSettings(spot_to_spot=True)
LARGE = (INSTANCE_TYPE, "In", "large")


def three(kinds: tuple[str, str, str] = (ON_DEMAND, ON_DEMAND, ON_DEMAND), **rest: Any) -> list[Box]:
    """Three dear nodes with a pod each that will not fit on a node that has one already."""
    return [box(name, "huge", [{"cpu": 1}], kind=kind, **rest) for name, kind in zip("abc", kinds, strict=True)]


def choosy(count: int) -> PoolRequirement:
    return PoolRequirement(key=INSTANCE_TYPE, operator="Exists", min_values=count)


MULTI = [
    Scene("three dear nodes, one small one instead", three(), "a b", by="Multi", to="", pools=[pool_of(budgets=["2"])]),
    Scene("three dear on-demand nodes", three(), "a b c", by="Multi", to="medium"),
    Scene("three dear spot nodes, gate on", three((SPOT, SPOT, SPOT)), "a b c", pools=[MIXED], settings=GATE,
          to="medium",
          check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT),
    Scene("three dear spot nodes, gate off: two fit on the third", three((SPOT, SPOT, SPOT)), "a b", pools=[MIXED],
          to=""),
    Scene("spot and on-demand mixed needs no gate", three((SPOT, ON_DEMAND, SPOT)), "a b c", pools=[MIXED], to="medium",
          check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT),
    Scene("spot pairs need no fifteen types", three((SPOT, SPOT, SPOT)), "a b c", pools=[pool_of("default", SPOT)],
          settings=GATE,
          to="medium"),
    Scene("two nodes into one of the same type is no rebuilding when it is simply deleted",
          [box("a", pods=3), box("b", pods=3)], "a",
          by="Single", to=""),
    Scene("not to a type that one of them has",
          [box("a", "medium", [{"cpu": 2}]), box("b", "large", [{"cpu": 2}], taints=["x"])],
          "b", pools=[pool_of(requirements=[(INSTANCE_TYPE, "In", "medium", "large")])], by="Single", to="medium"),
    Scene("all nodes at a fifth: some go", [box(f"n{i}", pods=[{"cpu": "700m"}]) for i in range(5)], "n0 n1 n2 n3",
          by="Multi", to=""),
    Scene("one candidate alone is no group", [box("a", "huge", 1)], "a", by="Single"),
    Scene("budget of one: no group", three(), "a", by="Single", pools=[pool_of(budgets=["1"])]),
    Scene("ten nodes with tiny pods, 30%", [box(f"n{i}", pods=[{"cpu": "100m"}]) for i in range(10)], "n0 n1 n2",
          by="Multi", to="",
          pools=[pool_of(budgets=["30%"])]),
    Scene("a budget for drift does not hold consolidation back", three(), "a b c", pools=[pool_of(budgets=["100%"])]),
    Scene("equal prices, different numbers of pods: fewer pods first", [
          box("a", pods=[{"cpu": "100m"}] * 4), box("b", pods=[{"cpu": "100m"}] * 1),
          box("c", pods=[{"cpu": "100m"}] * 3)], "b c",
          by="Multi", to="", pools=[pool_of(budgets=["2"])]),
    Scene("dearer per pod first", [box("a", "large", [{"cpu": "100m"}] * 4), box("b", "tiny", [{"cpu": "100m"}]),
          box("c", "medium", [{"cpu": "100m"}])], "c", by="Single", to="", pools=[pool_of(budgets=["1"])]),
    Scene("an expensive pod comes last", [
          box("a", pods=[{"annotations": {POD_DELETION_COST: "134217728"}}]), box("b", pods=1), box("c", pods=1)],
          "b c",
          pools=[pool_of(budgets=["2"])], to=""),
    Scene("an important pod comes last",
          [box("a", pods=[{"priority": 1_000_000_000}]), box("b", pods=1), box("c", pods=1)], "b c",
          pools=[pool_of(budgets=["2"])], to=""),
    Scene("after the same-type filter minimums break: one node is deleted", [
          box("a", "large", [{"cpu": "500m"}]), box("b", "large", [{"cpu": 1}]), box("c", "small", [{"cpu": "200m"}])],
          "a b",
          pools=[pool_of(requirements=[choosy(3)])], to=""),
    Scene("waves of a shared budget", three(), "a b c", pdbs=[pdb("one", {}, allowed=1)],
          check=lambda p: p.steps[0].command.waves["default/one"].waves == 3),
]  # fmt: skip


def tenants(*counts: int, cpu: str = "100m", **pool: Any) -> Scene:
    """Pools t0, t1, … with a taint each, so that their pods cannot share nodes, and some nodes in each."""
    pools = [pool_of(f"t{i}", taints=[f"tenant=t{i}"], **pool) for i in range(len(counts))]
    boxes = [
        box(
            f"t{i}-{n}", "large", [{"cpu": cpu, "tolerations": [f"tenant=t{i}"]}], pool=f"t{i}", taints=[f"tenant=t{i}"]
        )
        for i, count in enumerate(counts)
        for n in range(count)
    ]
    return Scene("tenants", boxes, pools=pools)


@pytest.mark.parametrize("scene", MULTI, ids=names)
def test_several_nodes_go_together(scene: Scene) -> None:
    scene.verify()


def test_bins_are_tried_from_the_one_with_most_nodes_down() -> None:
    made = tenants(2, 4, 3).plan(None)
    groups = [step.command.nodes for step in made.steps]
    assert [nodes[0][:2] for nodes in groups[:3]] == ["t1", "t2", "t0"]
    assert [len(nodes) for nodes in groups[:3]] == [4, 3, 2]


def test_without_bins_tenants_stand_in_each_others_way() -> None:
    """Three tenants of two nodes: their pods never fit on one new node, so no prefix of all nodes goes at once."""
    alone = replace(tenants(2, 2, 2, cpu="7"), settings=DisruptionSettings(partition=Partition.NONE))
    assert {step.command.method for step in alone.plan(None).steps} <= {"SingleNodeConsolidation"}


def equal_pools(partition: Partition, **second: Any) -> Scene:
    """A heavy pool and its fallback, each with a node that is too dear for its pod."""
    pools = [pool_of("first", weight=10), pool_of("second", **second)]
    boxes = [box("a", "huge", [{"cpu": 40}], pool="first"), box("b", "large", [{"cpu": 7}], pool="second")]
    return Scene("alike", boxes, pools=pools, settings=DisruptionSettings(partition=partition), catalog=BIG)


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
    scene = equal_pools(partition, **second)
    if "requirements" in second:
        scene = replace(
            scene, boxes=[scene.boxes[0], box("b", "large", [{"cpu": 7}], pool="second", labels={"team": "red"})]
        )
    nodes = scene.plan().steps[0].command.nodes
    assert (set(nodes) == {"a", "b"}) is together


def test_architectures_do_not_share_a_bin() -> None:
    arm = instance_type("arm", 8, "32Gi", price=0.3, arch="arm64", zones=[Z1])
    catalog = Catalog((*CATALOG.types, arm))
    held = {ARCH: "arm64"}
    boxes = [
        box("x", "large", [{"cpu": 1, "selector": {ARCH: "amd64"}}]),
        box("y", "arm", [{"cpu": 1, "selector": held}], catalog=catalog),
        box("z", "arm", [{"cpu": 1, "selector": held}], catalog=catalog),
    ]
    scene = Scene("arches", boxes, "y", catalog=catalog, by="Single", to="")
    assert scene.plan().steps[0].command.nodes in (("y",), ("x",), ("y", "z"))
    first = replace(scene, settings=DisruptionSettings(partition=Partition.POOL)).plan().steps[0].command
    assert len({"arm" if name in "yz" else "amd" for name in first.nodes}) == 1


def test_single_node_consolidation_gives_every_pool_its_turn() -> None:
    """A pool of many candidates that cannot go does not keep another pool waiting."""
    scene = tenants(1, 1, 1)
    made = scene.plan(None)
    assert sorted(name for step in made.steps for name in step.command.nodes) == ["t0-0", "t1-0", "t2-0"]
    assert {step.command.method for step in made.steps} == {"SingleNodeConsolidation"}


@pytest.mark.parametrize(
    ("order", "first"),
    [(Order.RATIO, "dear"), (Order.COST, "old")],
)
def test_both_orders_of_candidates(order: Order, first: str) -> None:
    """By ratio the dear node goes first; by cost the one that has little of its life before it."""
    life = {"expire_after": "100h"}
    boxes = [
        box("dear", "large", 2, claim={**life, "created": ago(hours=1)}),
        box("old", "small", 2, claim={**life, "created": ago(hours=90)}),
        box("host", "huge", 1, annotations={"karpenter.sh/do-not-disrupt": "true"}),
    ]
    made = Scene("order", boxes, pools=[pool_of(budgets=["1"])], settings=DisruptionSettings(order=order)).plan()
    assert made.steps[0].command.nodes == (first,)


@pytest.mark.parametrize(
    ("length", "works", "found"),
    [(2, 2, 2), (2, 1, None), (10, 7, 7), (10, 10, 10), (100, 64, 64), (300, 300, 100), (300, 101, 100), (1, 1, None)],
)
def test_halving_finds_the_longest_prefix_that_works(length: int, works: int, found: int | None) -> None:
    tried: list[int] = []

    def first_working(lengths: Sequence[int]) -> tuple[int, int] | None:
        for at, size in enumerate(lengths):
            tried.append(size)
            if size <= works:
                return at, size
        return None

    assert longest_prefix(length, first_working) == found
    assert len(tried) <= 7
    assert all(size >= 2 for size in tried)


@given(st.integers(0, 30), st.sets(st.integers(2, 30)))
def test_lengths_are_tried_one_by_one_as_halving_does(count: int, working: set[int]) -> None:
    """Whether a prefix works need not depend on its length in any orderly way."""
    tried: list[int] = []

    def first_working(lengths: Sequence[int]) -> tuple[int, int] | None:
        for at, size in enumerate(lengths):
            tried.append(size)
            if size in working:
                return at, size
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
    assert longest_prefix(count, first_working) == best
    assert tried == halved


def balanced(k: str | None = None, **rest: Any) -> Any:
    return pool_of(policy="Balanced", annotations={} if k is None else {BALANCED_K: k}, **rest)


def crowd(pods: int) -> list[Box]:
    """Two nodes: `a`, a quarter of the price, with so many pods of the ten; `b` has the others and room for all."""
    small = {"cpu": "100m", "memory": "10Mi"}
    return [
        box("a", "tiny", [small] * pods),
        box("b", "medium", [small] * (10 - pods), annotations={DO_NOT_DISRUPT: "true"}),
    ]


WORTH = [
    Scene("a fifth of the money for half the trouble", crowd(5), pools=[balanced()], why={"a": "BalancedScoreTooLow"}),
    Scene("a fifth of the money for a quarter of the trouble", crowd(2), "a", pools=[balanced()], to=""),
    Scene("k 5 asks for less", crowd(5), "a", pools=[balanced("5")], to=""),
    Scene("k 1 asks for more", crowd(2), pools=[balanced("1")], why={"a": "BalancedScoreTooLow"}),
    Scene("an unreadable k approves nothing", crowd(2), pools=[balanced("much")], why={"a": "BalancedKInvalid"}),
    Scene("other policies do not ask", crowd(5), "a", to=""),
    Scene("minimum saving in $/h, reached", crowd(5), "a", pools=[pool_of(annotations={MINIMUM_SAVINGS: "0.05"})],
          to=""),
    Scene("minimum saving in $/h, missed", crowd(5), pools=[pool_of(annotations={MINIMUM_SAVINGS: "0.06"})],
          why={"a": "SavingsBelowMinimum"}, said={"a": "saves 0.05 $/h"}),
    Scene("minimum saving as a share, reached", [box("a", "large", [{"cpu": 3}])], "a", to="medium",
          pools=[pool_of(annotations={MINIMUM_SAVINGS: "50%"})]),
    Scene("minimum saving as a share, missed", [box("a", "large", [{"cpu": 3}])],
          pools=[pool_of(annotations={MINIMUM_SAVINGS: "51%"})], why={"a": "SavingsBelowMinimum"}),
    Scene("minimum saving does not concern emptiness", [box("a", "tiny")], "a",
          pools=[pool_of(annotations={MINIMUM_SAVINGS: "9"})]),
    Scene("minimum saving does not concern drift", [box("a", pods=[{"cpu": 3}], claim={"drifted": True})], "a",
          by="Drift",
          pools=[pool_of(annotations={MINIMUM_SAVINGS: "9"})]),
    Scene("unreadable minimum saving", crowd(5), pools=[pool_of(annotations={MINIMUM_SAVINGS: "lots"})],
          why={"a": "MinimumSavingsInvalid"}),
    Scene("Balanced does not concern emptiness", [box("a", "tiny"), box("b", "huge", 1, pool="still")], "a", pools=(
          balanced(), pool_of("still", consolidate_after="Never"))),
]  # fmt: skip


@pytest.mark.parametrize("scene", WORTH, ids=names)
def test_a_move_must_be_worth_its_trouble(scene: Scene) -> None:
    scene.verify()


def test_one_balanced_pool_that_objects_stops_a_move_of_two_pools() -> None:
    """The pair would go into one node; the pool with the many pods gains too little of what the pair saves."""
    small = {"cpu": "100m", "memory": "10Mi"}
    pools = [balanced(requirements=[(ARCH, "Exists")]), pool_of("plain", requirements=[(ARCH, "Exists")])]
    boxes = [
        box("a", "small", [small] * 9),
        box("b", "small", [{"cpu": "1500m"}]),
        box("c", "huge", [small], pool="plain"),
    ]
    free = Scene("pair", boxes, pools=[replace_policy(pools[0]), pools[1]])
    assert "a" in {name for step in free.plan(None).steps for name in step.command.nodes}
    bound = Scene("pair", boxes, pools=pools)
    assert "a" not in bound.plan().steps[0].command.nodes


def replace_policy(pool: Any) -> Any:
    from msgspec.structs import replace as changed

    spec = pool.spec
    disruption = changed(spec.disruption, consolidation_policy="WhenEmptyOrUnderutilized")
    return changed(pool, spec=changed(spec, disruption=disruption))


def test_two_clusters_alike_but_for_the_order_of_their_objects_get_the_same_plan() -> None:
    boxes = [box(f"n{i}", "large", 1 + i % 4, zone=(Z1, Z2)[i % 2]) for i in range(8)]
    plans = [Scene("order", listed).plan(None) for listed in (boxes, boxes[::-1])]
    assert [step.command.nodes for step in plans[0].steps] == [step.command.nodes for step in plans[1].steps]
    assert plans[0].after == plans[1].after


def test_capacity_type_of_every_listed_type() -> None:
    new = Scene("types", three(), pools=[MIXED]).plan().steps[0].command.replacements[0]
    assert new.requirements[CAPACITY_TYPE].values == {SPOT}
    for name in new.instance_types:
        offerings = CATALOG.by_name[name].offerings
        assert any(offering.capacity_type == SPOT and offering.zone in new.zones for offering in offerings)
