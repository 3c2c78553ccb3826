"""Fleets that the search finds: possible, as cheap as they say, and on small fleets as cheap as can be."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optimization.tiny import Kind, Node, Pod, Tiny, ZoneRule, tiny_fleets

from karpool.optimization import search as search_module
from karpool.optimization.bound import lower_bound
from karpool.optimization.problem import APART
from karpool.optimization.search import TargetFleet, search, search_parts


def plenty(fleet: Tiny) -> Tiny:
    """The same fleet without scarce kinds: those are not offered to a search."""
    return replace(fleet, kinds=tuple(replace(kind, most=np.inf) for kind in fleet.kinds))


def found(fleet: Tiny, *, price: float = 0.0, seed: int = 0, moves: int = 300, anew: bool = False) -> TargetFleet:
    return search(fleet.problem(), eviction_price=price, seed=seed, moves=moves, anew=anew)


def check(fleet: Tiny, target: TargetFleet) -> None:
    """Every pod of a node that goes has one place, and no place breaks a rule."""
    stays = [number for number in range(len(fleet.nodes)) if number not in target.gone]
    assert all(fleet.nodes[number].movable for number in target.gone)
    leaving = Counter(group for number in target.gone for group in fleet.nodes[number].pods)
    placed: Counter[int] = Counter()
    come: Counter[tuple[int, int]] = Counter()
    for host in target.hosts:
        node = fleet.nodes[host.number]
        assert host.number in stays
        assert node.takes == 2 or (node.takes == 1 and all(fleet.groups[group].exempt for group in host.guests))
        _check_machine(fleet, host.guests, Counter(node.pods), node.free, node.shape)
        placed.update(host.guests)
        come.update({(group, node.zone): count for group, count in host.guests.items()})
    for new in target.new:
        kind = fleet.kinds[new.number]
        _check_machine(fleet, new.guests, Counter(), kind.room, kind.shape)
        placed.update(new.guests)
        come.update({(group, kind.zone): count for group, count in new.guests.items()})
    assert placed == leaving
    assert fleet.zones_allow([fleet.nodes[number] for number in stays], come)
    price = sum(fleet.nodes[number].price for number in stays) + sum(
        fleet.kinds[new.number].price for new in target.new
    )
    assert target.price == pytest.approx(price)


def _check_machine(fleet: Tiny, guests: dict[int, int], there: Counter[int], room: tuple[int, ...], shape: int) -> None:
    assert guests
    for resource, free in enumerate(room):
        assert sum(count * fleet.groups[group].requests[resource] for group, count in guests.items()) <= free
    for group, count in guests.items():
        assert fleet.suits[fleet.groups[group].signature][shape]
        others = Counter(there)
        others.update(guests)
        others[group] -= 1
        assert count <= 0 or fleet.may_join(group, list(others.elements()))


@given(tiny_fleets().map(plenty), st.booleans())
def test_a_target_breaks_no_rule_and_costs_what_it_says(fleet: Tiny, anew: bool) -> None:  # noqa: FBT001
    target = found(fleet, anew=anew)
    check(fleet, target)
    assert target.price <= sum(node.price for node in fleet.nodes) + 1e-9


@given(tiny_fleets().map(plenty))
def test_parts_that_are_searched_apart_are_put_together_again(fleet: Tiny) -> None:
    problem = fleet.problem()
    target = search_parts(
        problem,
        eviction_price=0.0,
        seed=0,
        moves=300,
        usable=problem.suits_kind,
        anew=False,
        watch=lambda _done, _price: True,
    )
    check(fleet, target)


@given(tiny_fleets().map(plenty), st.integers(0, 3))
def test_no_more_nodes_go_at_once_than_may(fleet: Tiny, most: int) -> None:
    target = search(fleet.problem(), eviction_price=0.0, seed=0, moves=100, most_gone=np.array([most]))
    check(fleet, target)
    assert len(target.gone) <= most


def test_small_fleets_end_at_the_cheapest_price_of_all() -> None:
    fleet = Tiny(
        (Pod((3, 1)), Pod((2, 2)), Pod((1, 3))),
        (
            Node(2.0, (0, 0), (0, 1)),
            Node(2.0, (1, 0), (1, 2)),
            Node(2.5, (0, 2), (0, 2)),
            Node(1.0, (3, 1), movable=False),
        ),
        (Kind(1.6, (6, 6)), Kind(2.9, (12, 12)), Kind(0.9, (3, 3))),
    )
    assert found(fleet, moves=1000).price == pytest.approx(fleet.cheapest())


_SINGLES = tuple(Node(1.0, (0,), (0,), zone=number % 2) for number in range(4))
"""One pod on each of four nodes, two in each zone."""
_ZONAL = (Kind(0.5, (8,), zone=0), Kind(0.7, (8,), zone=1), Kind(0.3, (1,), zone=1))


@pytest.mark.parametrize(
    ("rules", "price"),
    [
        pytest.param({}, 0.5, id="one node for all"),
        pytest.param({"caps": {0: 2}}, 1.0, id="two pods on a machine"),
        pytest.param({"caps": {0: 1}}, 1.2, id="a machine for each pod"),
        pytest.param({"zone_rules": (ZoneRule(frozenset({0})),)}, 1.1, id="evenly over zones"),
        pytest.param({"zone_rules": (ZoneRule(frozenset({0}), skew=2),)}, 0.8, id="nearly evenly over zones"),
        pytest.param({"zone_rules": (ZoneRule(frozenset({0}), APART),)}, 4.0, id="one pod in a zone"),
    ],
)
def test_fleets_with_rules_of_topology_end_at_the_cheapest_price_of_all(rules: dict[str, Any], price: float) -> None:
    fleet = Tiny((Pod((1,)),), _SINGLES, _ZONAL, **rules)
    assert fleet.cheapest() == pytest.approx(price)
    assert found(fleet, moves=2000).price == pytest.approx(price)
    assert lower_bound(fleet.problem()).price <= price + 1e-9


def test_pods_that_keep_off_each_others_machines_need_two() -> None:
    nodes = (Node(1.0, (0,), (0, 0)), Node(1.0, (0,), (1,)))
    fleet = Tiny((Pod((1,)), Pod((1,))), nodes, (Kind(0.4, (8,)),))
    assert (fleet.cheapest(), found(fleet).price) == (pytest.approx(0.4), pytest.approx(0.4))
    apart = replace(fleet, apart=((0, 1),))
    assert (apart.cheapest(), found(apart).price) == (pytest.approx(0.8), pytest.approx(0.8))


@pytest.mark.slow
@given(tiny_fleets().map(plenty))
def test_trying_everything_ends_between_the_bound_and_the_target(fleet: Tiny) -> None:
    assert lower_bound(fleet.problem()).price - 1e-9 <= fleet.cheapest() <= found(fleet).price + 1e-9


def test_the_same_seed_finds_the_same_fleet() -> None:
    fleet = Tiny(
        (Pod((3,)), Pod((2,))),
        tuple(Node(1.0 + number / 10, (number % 3,), (0, 1)) for number in range(12)),
        (Kind(0.7, (5,)), Kind(1.5, (16,))),
    )
    assert found(fleet, seed=7) == found(fleet, seed=7)


def test_evictions_that_cost_more_than_they_save_are_not_made() -> None:
    fleet = Tiny((Pod((1,)),), (Node(1.0, (0,), (0, 0, 0)),), (Kind(0.9, (3,)),))
    assert found(fleet, price=0.01).gone == (0,)
    assert found(fleet, price=0.03).gone == ()


@given(tiny_fleets().map(plenty), st.integers(0, 5))
def test_what_is_searched_in_many_parts_of_the_work_breaks_no_rule_either(fleet: Tiny, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "_CHUNK", 7)
        check(fleet, found(fleet, seed=seed, moves=140))


def test_a_type_that_costs_nothing_and_cannot_be_had_does_not_end_the_search() -> None:
    fleet = Tiny(
        (Pod((6,)),),
        tuple(Node(0.4, (1,), (0,)) for _ in range(10)),
        (Kind(1.5, (32,)), Kind(0.0, (8,), shape=0)),
    )
    problem = fleet.problem()
    usable = problem.suits_kind.copy()
    usable[:, 1] = 0
    target = search(problem, eviction_price=0.0, seed=0, moves=1000, usable=usable)
    assert target.price < problem.price
