"""Nodes that are replaced by several new ones: cheaper together at their worst, and each by all rules of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.scenarios import MIXED, ZONES, NodeWithPods, Scenario, node, pool_of
from tests.disruption.test_revalidate import context
from tests.disruption.test_scan import worst_price
from tests.factories import Z1, Z2, instance_type

from karpool.catalog.instance_types import Catalog, Offering
from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.evaluate import Evaluator
from karpool.disruption.revalidate import revalidate
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVATION_ID, RESERVED, SPOT, ZONE
from karpool.model.nodepool import PoolRequirement
from karpool.model.reasons import Reason
from karpool.model.requirements import NO_REQUIREMENTS, Requirements, one_of
from karpool.packing.directions import DirectedNode, Directions

ANY_NUMBER = 1000
SIZES = Catalog(
    tuple(
        instance_type(f"c{cpu}", cpu, f"{4 * cpu}Gi", price=0.05 * cpu, spot_price=0.02 * cpu, zones=ZONES)
        for cpu in (2, 4, 8, 16, 32)
    )
)


def sized(name: str, size: str = "c8", cpu: int = 6, **rest: Any) -> NodeWithPods:
    """A node with one pod."""
    return node(name, size, pods=[{"cpu": cpu}], catalog=SIZES, **rest)


def new(*types: str, pool: str = "default", capacity_type: str | None = None) -> DirectedNode:
    settled = NO_REQUIREMENTS if capacity_type is None else Requirements.of_labels({CAPACITY_TYPE: capacity_type})
    return DirectedNode(pool, settled, types or None)


def judged(
    held: DecisionContext,
    nodes: Sequence[str],
    new_nodes: Sequence[DirectedNode] = (),
    wishes: Mapping[str, str | int] | None = None,
) -> Command | Reason:
    """The command that removes nodes and sends pods, by name, to other nodes or new ones; or why there is none."""
    snapshot = held.snapshot
    candidates = [held.candidate(snapshot.nodes.rows[name]) for name in nodes]
    targets = {
        snapshot.pods.rows[f"default/{name}"]: -2 - place if isinstance(place, int) else snapshot.nodes.rows[place]
        for name, place in (wishes or {}).items()
    }
    directions = Directions(tuple(new_nodes), targets) if new_nodes else None
    outcome = Evaluator(held).consolidate(candidates, ANY_NUMBER, directions=directions)
    found = outcome.command or outcome.reason
    assert found is not None
    return found


def command(*asked: Any) -> Command:
    found = judged(*asked)
    assert isinstance(found, Command), found
    return found


def refusal(*asked: Any) -> tuple[str, str]:
    found = judged(*asked)
    assert isinstance(found, Reason), found
    return found.code, found.message


def cluster(nodes: Sequence[NodeWithPods], **rest: Any) -> DecisionContext:
    return context(Scenario("", nodes=nodes, **{"catalog": SIZES, **rest}))


def test_24_nodes_are_replaced_by_five_large_ones() -> None:
    names = [f"n{number:02}" for number in range(24)]
    held = cluster([sized(name) for name in names])
    made = command(held, names, [new("c32")] * 5, {f"{name}-0": at // 5 for at, name in enumerate(names)})
    assert [entry.instance_types for entry in made.replacements] == [("c32",)] * 5
    assert made.price == pytest.approx(9.6)
    assert made.savings == pytest.approx(1.6)


def old(price: float, pods: Sequence[Mapping[str, Any]], zone: str = Z1, **rest: Any) -> DecisionContext:
    """A cluster of one node, `a`, of a type that is no longer sold, at a price."""
    sold_out = [(kind, zone) for kind in (ON_DEMAND, SPOT)]
    catalog = Catalog(
        (*SIZES.types, instance_type("old", 64, "256Gi", price=price, zones=[zone], unavailable=sold_out))
    )
    return cluster([node("a", "old", pods=pods, catalog=catalog, **rest.pop("node", {}))], catalog=catalog, **rest)


TWO_LARGE = [{"cpu": 20}, {"cpu": 20}]
TWO = [{"cpu": 6}, {"cpu": 6}]
APART = {"a-0": 0, "a-1": 1}


def test_a_node_is_replaced_by_several_that_are_cheaper_together() -> None:
    made = command(old(3.3, TWO_LARGE), ["a"])
    assert [entry.instance_types for entry in made.replacements] == [("c32",), ("c32",)]
    assert made.savings == pytest.approx(0.1)


def test_several_that_cost_as_much_together_are_no_replacement() -> None:
    message = "its pods would need 2 new nodes, which together cost no less"
    assert refusal(old(3.2, TWO_LARGE), ["a"]) == ("NeedsSeveralNodes", message)


def test_of_several_new_nodes_each_is_priced_where_it_is_dearest() -> None:
    kinds = [(ON_DEMAND, Z1, 0.4), (ON_DEMAND, Z2, 0.5)]
    catalog = Catalog((instance_type("uneven", 8, offers=kinds), *SIZES.types))
    nodes = [node("a", "c32", pods=TWO, catalog=catalog)]
    wishes = [new("uneven")] * 2
    made = command(cluster(nodes, catalog=catalog), ["a"], wishes, APART)
    assert [entry.price for entry in made.replacements] == [0.4, 0.4]
    # At its dearest, a pair costs 1.0: less than 1.6, and not less than 0.8 or 1.0.
    for size in ("c16", "tie"):
        tied = Catalog((*catalog.types, instance_type("tie", 20, price=1.0, zones=ZONES)))
        nodes = [node("a", size, pods=TWO, catalog=tied)]
        assert refusal(cluster(nodes, catalog=tied), ["a"], wishes, APART)[0] == "NeedsSeveralNodes"


def test_the_list_of_each_new_node_is_as_long_as_the_money_allows() -> None:
    made = command(old(1.7, TWO), ["a"], [new(), new()], APART)
    assert [entry.instance_types for entry in made.replacements] == [("c8", "c16"), ("c8", "c16")]
    made = command(old(1.6, TWO), ["a"], [new(), new()], APART)
    assert [entry.instance_types for entry in made.replacements] == [("c8",), ("c8",)]


def choosy(count: int, name: str = "choosy", **rest: Any) -> Any:
    """A pool whose nodes must be launched with so many types to choose from."""
    return pool_of(name, requirements=[PoolRequirement(key=INSTANCE_TYPE, operator="Exists", min_values=count)], **rest)


def test_minimum_values_of_one_new_node_are_paid_for_before_the_rest_is_shared() -> None:
    pools = [pool_of(), choosy(2)]
    wishes = [new("c8", "c16"), new("c8", "c16", pool="choosy")]
    made = command(old(1.25, TWO, pools=pools), ["a"], wishes, APART)
    assert [(entry.pool, entry.instance_types) for entry in made.replacements] == [
        ("default", ("c8",)),
        ("choosy", ("c8", "c16")),
    ]
    assert refusal(old(1.2, TWO, pools=pools), ["a"], wishes, APART)[0] == "NeedsSeveralNodes"


def test_no_new_node_is_of_a_type_that_one_of_several_nodes_has_already() -> None:
    held = cluster([sized("a", "c16"), sized("b", "c8"), sized("c", "c8")])
    wishes = {"a-0": 0, "b-0": 0, "c-0": 1}
    code, message = refusal(held, ["a", "b", "c"], [new("c16"), new("c8")], wishes)
    assert code == "SameTypeReplacement", message


def test_a_type_that_a_cheaper_node_has_is_only_left_out_of_the_list() -> None:
    held = cluster([sized("a", "c32"), sized("b", "c16", capacity_type=SPOT)])
    made = command(held, ["a", "b"], [new("c8", "c16")] * 2, {"a-0": 0, "b-0": 1})
    assert [entry.instance_types for entry in made.replacements] == [("c8",), ("c8",)]


def test_the_spot_gate_is_closed_for_each_new_node() -> None:
    nodes = [sized(name, "c32", capacity_type=SPOT) for name in "ab"]
    wishes, apart = [new("c8", capacity_type=SPOT)] * 2, {"a-0": 0, "b-0": 1}
    shut = cluster(nodes, pools=[MIXED])
    assert refusal(shut, ["a", "b"], wishes, apart)[0] == "SpotToSpotDisabled"
    open_ = cluster(nodes, pools=[MIXED], settings=DisruptionSettings(spot_to_spot=True))
    made = command(open_, ["a", "b"], wishes, apart)
    assert [(entry.capacity_type, entry.instance_types) for entry in made.replacements] == [(SPOT, ("c8",))] * 2


def test_a_spot_node_alone_needs_many_cheaper_types_for_each_new_node() -> None:
    settings = DisruptionSettings(spot_to_spot=True, spot_floor=2)
    held = old(2.0, TWO, pools=[MIXED], settings=settings, node={"capacity_type": SPOT})
    made = command(held, ["a"], [new(capacity_type=SPOT)] * 2, APART)
    assert [entry.instance_types for entry in made.replacements] == [("c8", "c16")] * 2
    assert refusal(held, ["a"], [new("c8", capacity_type=SPOT)] * 2, APART)[0] == "SpotToSpotTooFewTypes"


def test_new_nodes_stay_within_limits_together() -> None:
    limited = [pool_of(limits={"cpu": 64})]
    made = command(old(9.0, TWO_LARGE, pools=limited), ["a"])
    assert len(made.replacements) == 2
    tight = [pool_of(limits={"cpu": 63})]
    assert refusal(old(9.0, TWO_LARGE, pools=tight), ["a"])[0] == "PodsWouldNotFit"


def paid_for(units: int) -> Catalog:
    """The usual types, and one of which some machines are paid for."""
    sold = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: "r1"})
    offering = Offering(requirements=sold, price=0.0, reservation_id="r1", reservation_capacity=units)
    plain = instance_type("paid", 8, "32Gi", price=0.4, zones=ZONES)
    kinds = plain.requirements.without(CAPACITY_TYPE).with_key(CAPACITY_TYPE, one_of(RESERVED, SPOT, ON_DEMAND))
    return Catalog((*SIZES.types, replace(plain, requirements=kinds, offerings=(*plain.offerings, offering))))


def test_new_nodes_are_reserved_only_as_far_as_reservations_go() -> None:
    wishes = [new("paid", capacity_type=RESERVED)] * 2
    for units in (1, 2):
        catalog = paid_for(units)
        nodes = [node("a", "c32", pods=TWO, catalog=catalog)]
        held = cluster(nodes, catalog=catalog, pools=[pool_of("default", RESERVED, ON_DEMAND)])
        found = judged(held, ["a"], wishes, APART)
        if units == 1:
            assert isinstance(found, Reason)
            assert found.message == "its pods need reserved capacity, and none is left"
        else:
            assert isinstance(found, Command)
            assert [entry.capacity_type for entry in found.replacements] == [RESERVED] * 2
            assert found.savings == pytest.approx(1.6)


def test_a_node_of_unknown_price_is_not_replaced_by_several() -> None:
    held = cluster([node("a", "c32", pods=TWO, catalog=SIZES, zone="elsewhere")])
    assert refusal(held, ["a"], [new("c8")] * 2, APART)[0] == "PriceUnknown"


def test_a_wish_that_cannot_be_had_is_judged_by_where_pods_go_instead() -> None:
    made = command(old(3.3, TWO), ["a"], [new("nobody-sells-this")], {"a-0": 0})
    assert [entry.instance_types[0] for entry in made.replacements] == ["c16"]


def test_worst_prices_of_all_new_nodes_stay_below_what_goes() -> None:
    held = old(1.7, TWO)
    made = command(held, ["a"], [new(), new()], APART)
    assert worst_price(held, made) < made.price


# -- the second look -----------------------------------------------------------------------------------------------

GLOBAL_SEARCH = DisruptionSettings(search=GLOBAL, effort=0)
THREE = [{"cpu": 6}, {"cpu": 6}, {"cpu": 1}]


def fleet(
    *more: NodeWithPods, pods: Sequence[Mapping[str, Any]] = THREE, z: Mapping[str, Any] | None = None, **rest: Any
) -> DecisionContext:
    """A node of which two pods are large and one is small, and two small nodes with room for that one."""
    hosts = [node("y", "c2", catalog=SIZES), node("z", "c2", catalog=SIZES, **(z or {}))]
    nodes = [node("a", "c32", pods=pods, catalog=SIZES), *hosts, *more]
    return cluster(nodes, **{"settings": GLOBAL_SEARCH, **rest})


def decided() -> Command:
    """The large pods go to new nodes of their own, the small one to `z`, although `y` comes first."""
    return command(fleet(), ["a"], [new("c8"), new("c8", "c16")], {"a-0": 0, "a-1": 1, "a-2": "z"})


def places(found: Command) -> Mapping[str, str | int]:
    return {move.pod.removeprefix("default/"): move.target for move in found.moves}


def test_a_command_with_several_new_nodes_holds_while_nothing_changes() -> None:
    assert places(decided()) == {"a-0": 0, "a-1": 1, "a-2": "z"}
    assert revalidate(decided(), fleet()) == decided()


def test_an_undirected_second_look_would_need_another_number_of_new_nodes() -> None:
    found = revalidate(decided(), fleet(settings=DisruptionSettings(search="prefix")))
    assert isinstance(found, Reason)
    assert found.code == "ReplacementChanged"


def test_room_that_appears_elsewhere_does_not_change_what_was_decided() -> None:
    found = revalidate(decided(), fleet(node("b", "c16", catalog=SIZES)))
    assert found == decided()


def test_a_pod_whose_destination_is_full_by_now_goes_to_another_node() -> None:
    found = revalidate(decided(), fleet(z={"pods": [{"cpu": "1500m"}]}))
    assert isinstance(found, Command)
    assert places(found) == {"a-0": 0, "a-1": 1, "a-2": "y"}
    assert found.replacements == decided().replacements


def test_new_nodes_keep_their_numbers_when_they_are_opened_in_another_order() -> None:
    """The second one is opened first, because its pod is the larger one now."""
    made = command(fleet(), ["a"], [new("c8"), new("c16")], {"a-0": 0, "a-1": 1, "a-2": "z"})
    found = revalidate(made, fleet(pods=[{"cpu": 6}, {"cpu": 7}, {"cpu": 1}]))
    assert isinstance(found, Command)
    assert places(found) == {"a-0": 0, "a-1": 1, "a-2": "z"}


@pytest.mark.parametrize(
    ("becomes", "message"),
    [
        ({"pods": [{"cpu": 6}]}, "its pods now need 1 new node, not 2"),
        ({"pods": [*THREE, {"cpu": 12}]}, "its pods now need 3 new nodes, not 2"),
        ({"pods": [{"cpu": 6}, {"cpu": 10}, {"cpu": 1}]}, "its pods no longer suit type c8"),
    ],
)
def test_a_command_is_given_up_when_other_new_nodes_are_needed(becomes: Mapping[str, Any], message: str) -> None:
    found = revalidate(decided(), fleet(**becomes))
    assert isinstance(found, Reason)
    assert (found.code, found.message) == ("ReplacementChanged", message)
