"""A node goes only if its pods have a place, on nodes that stay."""

from typing import Any

import pytest
from tests.compaction.clusters import (
    IN_PROGRESS,
    NOW,
    ROOMY,
    codes,
    config,
    decided,
    draining,
    names,
    pool_config,
    pool_node,
)
from tests.factories import pod, taint
from tests.factories.gangs import members


def test_a_node_goes_only_if_all_its_pods_find_a_place() -> None:
    decision = decided(pool_node("a", pods=["1", "1"]), pool_node("b", pods=["2900m"], mark=None))
    assert names(decision) == []
    (reason,) = decision.nodes[0].reasons
    assert reason.code == "PodsWouldNotFit"
    assert "not enough cpu (1 wanted" in reason.message
    assert codes(decision)["b"] == ["MarkedTooShort"]


def test_if_the_first_does_not_fit_the_next_is_tried() -> None:
    picky = pod("picky-1", cpu="100m", node="a", selector={"disk": "ssd"})
    decision = decided(pool_node("a", pods=[picky]), pool_node("b", pods=["200m"]), pool_node("c", pods=["300m"]))
    assert names(decision) == ["b"]
    assert codes(decision) == {"a": ["PodsWouldNotFit"], "b": [], "c": ["AnotherNodeFirst"]}


def test_fit_need_not_be_checked() -> None:
    given = config(main=pool_config(check_fit=False))
    (chosen,) = decided(pool_node("a", pods=["2"]), pool_node("b", pods=["2500m"]), given=given).chosen
    assert chosen.node == "a"
    assert [place.target for place in chosen.placements] == [None]


@pytest.mark.parametrize(
    "rest",
    [
        {"ready": False},
        {"cordoned": True},
        {"mark": IN_PROGRESS, "cordoned": True},
        {"deleted": NOW},
        {"taints": [taint("dedicated=x")]},
    ],
)
def test_only_nodes_that_stay_and_take_pods_are_places(rest: dict[str, Any]) -> None:
    decision = decided(pool_node("a", pods=["2"]), pool_node("b", pods=["3"], pool="other", **{"mark": None, **rest}))
    assert names(decision) == []
    assert codes(decision)["a"] == ["PodsWouldNotFit"]


def test_an_empty_node_goes_even_if_it_is_the_last() -> None:
    assert names(decided(pool_node("a", pods=[pod("agent-1", cpu="100m", node="a", owner="DaemonSet")]))) == ["a"]


def test_when_every_node_is_at_a_fifth_one_is_picked() -> None:
    decision = decided(
        *(pool_node(f"n{i}", pods=["400m", "400m"]) for i in range(6)), given=config(main=pool_config(required=5))
    )
    assert names(decision) == ["n0"]
    assert [place.target for place in decision.chosen[0].placements] == ["n1", "n1"]
    assert codes(decision)["n5"] == ["AnotherNodeFirst"]


def test_two_nodes_never_go_that_need_each_others_room() -> None:
    given = config(main=pool_config(), second=pool_config())
    full = pool_node("full", pods=["3900m"], mark=None)
    decision = decided(pool_node("a", pods=["800m"]), pool_node("b", pods=["800m"], pool="second"), full, given=given)
    assert names(decision) == ["a"]
    assert decision.chosen[0].placements[0].target == "b"
    assert codes(decision)["b"] == ["TakesPods"]


def test_what_an_earlier_choice_takes_is_gone_for_a_later_one() -> None:
    given = config(main=pool_config(), second=pool_config())
    room = pool_node("c", pods=["2500m"], mark=None)
    nodes = (
        pool_node("a", pods=["1200m"]),
        pool_node("b", pods=["1300m"], pool="second", taints=[taint("only=b")]),
        room,
    )
    decision = decided(*nodes, given=given)
    assert names(decision) == ["a"]
    assert codes(decision)["b"] == ["PodsWouldNotFit"]


def test_two_pools_choose_at_once_when_there_is_room_for_both_elsewhere() -> None:
    given = config(main=pool_config(), second=pool_config())
    nodes = (
        pool_node("a", pods=["800m"]),
        pool_node("b", pods=["800m"], pool="second", taints=[taint("only=b")]),
        pool_node("c", pods=["800m"], mark=None),
    )
    decision = decided(*nodes, given=given)
    assert names(decision) == ["a", "b"]
    assert [place.target for chosen in decision.chosen for place in chosen.placements] == ["c", "c"]


def test_the_pods_still_on_a_draining_node_have_their_room_first() -> None:
    tight = (pool_node("a", pods=["1"]), pool_node("b", pods=["2"], mark=None))
    assert names(decided(*tight)) == ["a"]
    decision = decided(*tight, draining("x", pods=["1500m"]), given=config(main=pool_config(required=0)))
    assert names(decision) == []
    assert codes(decision)["a"] == ["PodsWouldNotFit"]


def test_a_pod_that_waits_keeps_the_room_it_would_find_and_one_that_fits_nowhere_is_ignored() -> None:
    nodes = (pool_node("a", pods=["1"]), pool_node("b", pods=["2"], mark=None))
    waiting = pod("waiting-1", cpu="1500m", pending=True)
    huge = pod("huge-1", cpu="64", pending=True)
    assert names(decided(*nodes, pods=[huge])) == ["a"]
    assert names(decided(*nodes, pods=[waiting])) == []


def test_every_node_that_is_not_chosen_has_a_reason() -> None:
    decision = decided(
        pool_node("a", pods=["1"]),
        pool_node("b", pods=["1"]),
        pool_node("c", pods=["3500m"]),
        draining("d"),
        ROOMY,
        pool_node("e", pool=""),
    )
    assert [name for name, reasons in codes(decision).items() if not reasons] == names(decision) == ["a"]


@pytest.mark.parametrize(("waiting", "goes"), [(2, []), (3, ["a"])])
def test_a_gang_that_waits_keeps_room_only_if_it_fits_as_a_whole(waiting: int, goes: list[str]) -> None:
    nodes = (pool_node("a", pods=["500m"]), pool_node("b", pods=["200m"], mark=None))
    assert names(decided(*nodes, pods=members("train", waiting, cpu="3"))) == goes
