"""Pods that are sent somewhere: they go there where the rules allow it, and the ordinary way where they do not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.factories import Z1, Z2, Z3, affinity_to, node, node_pool, pod, sized_type, spread
from tests.packing.scenarios import Scenario, pods
from tests.packing.test_what_ifs import columns

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, ZONE
from karpool.model.nodepool import PoolRequirement
from karpool.model.requirements import Requirements
from karpool.packing.directions import DirectedNode, Directions, UnknownDestinationError
from karpool.packing.engine import Engine
from karpool.packing.result import PlacementResult

WEB = {"app": "web"}
CATALOG = Catalog(tuple(sized_type(f"c{size}", size, 4 * size, 110) for size in (1, 2, 4, 8, 16)))
THREE = [node("n1"), node("n2"), node("n3")]
LABELS = {"zone": ZONE, "capacity_type": CAPACITY_TYPE}


def new(*types: str, pool: str = "default", **labels: str) -> DirectedNode:
    """A new node of some types, or of any, with `zone=` and the like settled."""
    return DirectedNode(
        pool, Requirements.of_labels({LABELS[key]: value for key, value in labels.items()}), types or None
    )


def sent(
    wishes: Mapping[str, str | int],
    new_nodes: Sequence[DirectedNode] = (),
    *,
    asked: Mapping[str, Any] | None = None,
    **rest: Any,
) -> PlacementResult:
    """Where the pods of a scenario go if each is sent to the node, or the new node, that is wished for."""
    scenario = Scenario(**{"name": "", "catalog": CATALOG, **rest})
    engine = Engine(Snapshot(scenario.objects), scenario.catalog)
    rows, nodes = engine.snapshot.pods.rows, engine.snapshot.nodes.rows
    targets = {
        rows[f"default/{name}"]: nodes[place] if isinstance(place, str) else -2 - place
        for name, place in wishes.items()
    }
    untouched = columns(engine)
    with engine.what_if() as trial:
        queue = [rows[wanted.key] for wanted in scenario.pods]
        answer = trial.place(queue, directions=Directions(tuple(new_nodes), targets), **(asked or {})).result()
    assert columns(engine) == untouched
    return answer


def by_place(answer: PlacementResult) -> Mapping[str | int, int]:
    """How many pods each place got."""
    return Counter(answer.placed.values())


def test_pods_go_where_they_are_sent_and_not_to_the_first_node_that_has_room() -> None:
    assert by_place(sent({"web-1": "n3", "web-2": "n2"}, pods=pods(2), nodes=THREE)) == {"n2": 1, "n3": 1}


def test_a_pod_that_its_destination_refuses_goes_the_ordinary_way() -> None:
    crowd = pods(2, cpu="3")
    assert by_place(sent({"web-1": "n2", "web-2": "n2"}, pods=crowd, nodes=THREE)) == {"n1": 1, "n2": 1}


def test_pods_without_a_destination_come_after_those_that_have_one() -> None:
    # The large pod would be first, and would take the room.
    wanted = [pod("large-1", cpu="3"), pod("small-1", cpu="2")]
    answer = sent({"small-1": "n1"}, pods=wanted, nodes=[node("n1"), node("n2")])
    assert answer.placed == {"default/small-1": "n1", "default/large-1": "n2"}


def test_a_node_that_is_gone_or_closed_is_no_destination() -> None:
    assert by_place(sent({"web-1": "n2"}, pods=pods(1), nodes=[node("n1"), node("n2", cordoned=True)])) == {"n1": 1}


def test_a_new_node_has_the_pool_the_types_and_the_zone_that_are_asked_for() -> None:
    pools = [node_pool("first", weight=10), node_pool("second")]
    wish = new("c8", "c16", pool="second", zone=Z2, capacity_type=ON_DEMAND)
    (made,) = sent({"web-1": 0, "web-2": 0}, [wish], pods=pods(2), nodes=THREE, pools=pools).new_nodes
    assert (made.pool, made.instance_types, len(made.pods)) == ("second", ("c8", "c16"), 2)
    assert made.requirements[ZONE].values == {Z2}
    assert made.requirements[CAPACITY_TYPE].values == {ON_DEMAND}


def test_a_new_node_with_nobody_to_go_there_is_not_opened() -> None:
    answer = sent({"web-1": 1}, [new("c4"), new("c2"), new("c1")], pods=pods(1))
    assert [made.instance_types for made in answer.new_nodes] == [("c2",)]


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param(new("nobody-sells-this"), id="of a type that nobody sells"),
        pytest.param(new("c4", pool="nobody"), id="of a pool that does not exist"),
        pytest.param(new("c1"), id="that is too small"),
        pytest.param(new("c4", zone="nowhere"), id="where nothing is sold"),
    ],
)
def test_a_new_node_that_cannot_be_had_is_not_opened(wish: DirectedNode) -> None:
    (made,) = sent({"web-1": 0}, [wish], pods=pods(1, cpu="1500m")).new_nodes
    assert made.instance_types == ("c2", "c4", "c8", "c16")


def test_a_tainted_pool_takes_no_pod_that_does_not_tolerate_it() -> None:
    pools = [node_pool(), node_pool("tainted", taints=["team=a:NoSchedule"])]
    (made,) = sent({"web-1": 0}, [new("c4", pool="tainted")], pods=pods(1), pools=pools).new_nodes
    assert made.pool == "default"


def test_new_nodes_stay_within_the_limits_of_their_pool() -> None:
    wishes = {f"web-{number}": number - 1 for number in (1, 2, 3)}
    answer = sent(wishes, [new("c4")] * 3, pods=pods(3, cpu="3"), pools=[node_pool(limits={"cpu": 8})])
    assert [made.instance_types for made in answer.new_nodes] == [("c4",), ("c4",)]
    assert len(answer.unplaced) == 1


def test_a_new_node_has_to_offer_as_many_types_as_its_pool_wants() -> None:
    choosy = [node_pool(requirements=[PoolRequirement(key=INSTANCE_TYPE, operator="Exists", min_values=2)])]
    (made,) = sent({"web-1": 0}, [new("c4", "c8")], pods=pods(1), pools=choosy).new_nodes
    assert made.instance_types == ("c4", "c8")
    (made,) = sent({"web-1": 0}, [new("c4")], pods=pods(1), pools=choosy).new_nodes
    assert made.instance_types == ("c1", "c2", "c4", "c8", "c16")


def test_no_new_node_is_opened_where_only_existing_ones_may_be_used() -> None:
    asked = {"existing_only": True}
    assert by_place(sent({"web-1": 0}, [new("c4")], pods=pods(1), nodes=THREE, asked=asked)) == {"n1": 1}


def test_alike_pods_share_destinations_so_that_spread_allows_all_of_them() -> None:
    # In the order of the wishes, zone 1 would get two pods before the other zones have any.
    alike = pods(6, labels=WEB, spread=[spread(WEB)])
    wishes = {f"web-{number}": (number - 1) // 2 for number in range(1, 7)}
    answer = sent(wishes, [new("c4", zone=zone) for zone in (Z1, Z2, Z3)], pods=alike)
    assert sorted(len(made.pods) for made in answer.new_nodes) == [2, 2, 2]
    assert {next(iter(made.requirements[ZONE].values)) for made in answer.new_nodes} == {Z1, Z2, Z3}


def test_a_pod_waits_until_the_pod_that_it_follows_has_come() -> None:
    leader, follower = (
        pod("db-1", cpu="1", labels={"app": "db"}),
        pod("web-1", cpu="2", near=[affinity_to({"app": "db"})]),
    )
    answer = sent({"web-1": "n2", "db-1": "n2"}, pods=[leader, follower], nodes=THREE)
    assert by_place(answer) == {"n2": 2}


def test_pods_that_keep_apart_do_not_share_a_destination() -> None:
    apart = pods(2, labels=WEB, anti=[affinity_to(WEB)])
    assert by_place(sent({"web-1": "n2", "web-2": "n2"}, pods=apart, nodes=THREE)) == {"n1": 1, "n2": 1}


def test_pods_without_a_destination_may_join_new_nodes_that_are_opened_for_others() -> None:
    answer = sent({"web-1": 0}, [new("c4")], pods=pods(2))
    assert by_place(answer) == {0: 2}


def test_the_placement_tells_which_new_nodes_were_opened() -> None:
    scenario = Scenario(name="", pods=pods(2), catalog=CATALOG)
    engine = Engine(Snapshot(scenario.objects), scenario.catalog)
    first, second = engine.snapshot.pods.rows.values()
    with engine.what_if() as trial:
        directions = Directions((new("c1"), new("c2"), new("c4")), {first: -4, second: -2})
        assert trial.place([first, second], directions=directions).directed_claims == [1, -1, 0]


def test_a_new_node_that_the_directions_do_not_have_is_an_error() -> None:
    with pytest.raises(UnknownDestinationError, match="of 1 new nodes"):
        sent({"web-1": 1}, [new("c4")], pods=pods(1))


def test_directions_without_any_wish_change_nothing() -> None:
    crowd = pods(9, cpu="1500m")
    plain = Scenario(name="", catalog=CATALOG, pods=crowd, nodes=THREE)
    engine = Engine(Snapshot(plain.objects), CATALOG)
    with engine.what_if() as trial:
        expected = trial.place([engine.snapshot.pods.rows[entry.key] for entry in crowd]).result()
    assert sent({}, pods=crowd, nodes=THREE) == expected
