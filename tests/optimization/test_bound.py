"""Lower bounds against every fleet that there is, and against a checker that shares no code with them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from tests.optimization.tiny import Kind, Node, Pod, Tiny, tiny_fleets

from karpool.optimization import classes, relaxation
from karpool.optimization.bound import lower_bound
from karpool.optimization.proof import InvalidProofError
from karpool.optimization.verify import verify


@given(tiny_fleets())
def test_no_fleet_is_cheaper_than_the_bound(fleet: Tiny) -> None:
    bound = lower_bound(fleet.problem())
    assert bound.price <= fleet.cheapest() + 1e-9


@given(tiny_fleets())
def test_the_checker_finds_the_same_price_in_the_proof(fleet: Tiny) -> None:
    problem = fleet.problem()
    bound = lower_bound(problem, branches=0)
    proven = verify(problem, bound.proof)
    assert bound.price <= proven
    assert float(proven) == pytest.approx(bound.price, abs=1e-6)


def test_a_fleet_that_is_as_cheap_as_can_be_is_proven_to_be() -> None:
    fleet = Tiny((Pod((4,)),), (Node(1.0, (0,), (0, 0)), Node(1.0, (0,), (0, 0))), (Kind(1.0, (8,)), Kind(0.6, (4,))))
    assert lower_bound(fleet.problem()).price == pytest.approx(2.0)


def test_room_on_nodes_that_stay_is_free_of_charge() -> None:
    stays = Node(3.0, (4,), movable=False)
    fleet = Tiny((Pod((4,)),), (stays, Node(1.0, (0,), (0,))), (Kind(1.0, (8,)),))
    assert lower_bound(fleet.problem()).price == pytest.approx(3.0)
    full = replace(fleet, nodes=(replace(stays, takes=0), fleet.nodes[1]))
    assert lower_bound(full.problem()).price == pytest.approx(4.0)


def test_a_node_that_nothing_on_sale_can_replace_is_kept_in_the_bound() -> None:
    nodes = (Node(1.0, (0,), (0,)), Node(1.0, (0,), (0,)), Node(0.2, (0,), (0,)))
    fleet = Tiny((Pod((4,)),), nodes, (Kind(1.0, (8,)),))
    # The cheap node stays; the pods of the others share a new one.
    assert lower_bound(fleet.problem()).price == pytest.approx(1.2)


def test_pods_that_suit_nothing_on_sale_keep_their_node() -> None:
    fleet = Tiny((Pod((4,)),), (Node(1.0, (0,), (0,)),), (Kind(0.1, (8,), 1),), ((1, 0),))
    assert lower_bound(fleet.problem()).price == pytest.approx(1.0)


def test_what_a_reservation_has_left_is_not_counted_twice() -> None:
    nodes = tuple(Node(1.0, (0,), (0,)) for _ in range(3))
    fleet = Tiny((Pod((4,)),), nodes, (Kind(0.0, (4,), most=1.0), Kind(0.5, (4,))))
    assert lower_bound(fleet.problem()).price == pytest.approx(1.0)


def test_without_pods_that_move_only_what_stays_costs() -> None:
    fleet = Tiny((Pod((1,)),), (Node(1.0, (4,)), Node(2.0, (1,), movable=False)), ())
    assert lower_bound(fleet.problem()).price == pytest.approx(2.0)


def _example() -> Tiny:
    nodes = (Node(2.0, (1, 1), (0, 1, 1)), Node(2.0, (3, 0), (0,)), Node(1.0, (5, 5), (), movable=False))
    return Tiny((Pod((3, 1)), Pod((2, 2))), nodes, (Kind(1.0, (7, 7)), Kind(1.5, (12, 9))))


def test_values_above_what_a_kind_costs_are_rejected() -> None:
    problem = _example().problem()
    proof = lower_bound(problem).proof
    with pytest.raises(InvalidProofError, match=r"worth .* more than it costs"):
        verify(problem, replace(proof, value=proof.value * 1.01 + 0.001))


def test_rates_that_are_too_low_prove_nothing() -> None:
    problem = _example().problem()
    proof = lower_bound(problem).proof
    with pytest.raises(InvalidProofError):
        verify(problem, replace(proof, kind_rates=proof.kind_rates * 0.5))


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_duals_that_are_no_prices_are_rejected(wrong: float) -> None:
    problem = _example().problem()
    proof = lower_bound(problem).proof
    with pytest.raises(InvalidProofError, match="not a number that a proof may have"):
        verify(problem, replace(proof, node_rates=np.full_like(proof.node_rates, wrong)))


def test_a_proof_for_another_problem_is_rejected() -> None:
    problem = _example().problem()
    other = Tiny((Pod((1, 1)),), (Node(1.0, (1, 1), (0,)),), ()).problem()
    with pytest.raises(InvalidProofError, match="another problem"):
        verify(problem, lower_bound(other).proof)


def test_pods_of_which_only_one_fits_count_as_whole_machines() -> None:
    nodes = tuple(Node(0.5, (2,), (0,)) for _ in range(10))
    # By CPUs alone 10 pods of 6 CPUs would need 60 of 8-CPU nodes' 80.
    fleet = Tiny((Pod((6,)),), nodes, (Kind(0.4, (8,)),))
    assert lower_bound(fleet.problem()).price == pytest.approx(4.0)


def test_pods_that_keep_apart_need_a_machine_each() -> None:
    nodes = tuple(Node(1.0, (0,), (0,)) for _ in range(4))
    fleet = Tiny((Pod((1,)),), nodes, (Kind(0.3, (8,)),), caps={0: 1})
    assert lower_bound(fleet.problem()).price == pytest.approx(1.2)
    assert lower_bound(replace(fleet, caps={0: 2}).problem()).price == pytest.approx(0.6)


def test_preferences_to_keep_apart_do_not_count() -> None:
    nodes = tuple(Node(1.0, (0,), (0,)) for _ in range(4))
    problem = Tiny((Pod((1,)),), nodes, (Kind(0.3, (8,)),), caps={0: 1}).problem()
    relaxed = replace(problem, hosts=replace(problem.hosts, required=np.zeros(1, dtype=np.bool_)))
    assert lower_bound(relaxed).price == pytest.approx(0.3)


def test_a_node_with_a_pod_that_keeps_others_away_takes_no_guest_of_them() -> None:
    stays, goes = Node(1.0, (8,), (0,), movable=False), Node(1.0, (0,), (0,))
    fleet = Tiny((Pod((1,)),), (stays, goes), (Kind(0.3, (8,)),), caps={0: 1})
    assert lower_bound(fleet.problem()).price == pytest.approx(1.3)


@pytest.mark.parametrize("most", [1, 3, 20])
def test_taking_pods_and_nodes_together_only_loosens_the_bound(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    random = np.random.default_rng(most)
    groups = tuple(Pod((int(cpu), int(memory))) for cpu, memory in random.integers(1, 9, (12, 2)))
    nodes = tuple(
        Node(
            2.0, tuple(random.integers(0, 6, 2).tolist()), tuple(random.integers(0, 12, 3).tolist()), movable=n % 3 > 0
        )
        for n in range(15)
    )
    problem = Tiny(groups, nodes, (Kind(1.0, (10, 10)), Kind(1.7, (20, 18))), caps={1: 1, 5: 1}).problem()
    exact = lower_bound(problem, branches=0)
    monkeypatch.setattr(classes, "_MOST_CLASSES", most)
    monkeypatch.setattr(relaxation, "_MOST_CLUSTERS", most)
    rough = lower_bound(problem, branches=0)
    assert 0.5 * exact.price < rough.price <= exact.price + 1e-6
    assert rough.price <= verify(problem, rough.proof)


def test_machines_and_pods_are_whole_in_small_fleets() -> None:
    fleet = Tiny((Pod((6,)),), tuple(Node(0.4, (2,), (0,)) for _ in range(24)), (Kind(0.4, (8,)), Kind(1.6, (32,))))
    divisible, whole = lower_bound(fleet.problem(), branches=0), lower_bound(fleet.problem())
    # Five fit on 32 CPUs: 4.8 nodes of these, or four and as many small ones.
    assert (divisible.method, divisible.price) == ("LP", pytest.approx(7.68))
    assert (whole.method, whole.price) == ("MIP", pytest.approx(8.0, rel=1e-5))


@given(tiny_fleets())
def test_bounds_of_whole_machines_are_never_worse(fleet: Tiny) -> None:
    problem = fleet.problem()
    assert lower_bound(problem).price >= lower_bound(problem, branches=0).price - 1e-6


def test_the_same_fleet_has_the_same_bound_again() -> None:
    problem = _example().problem()
    assert lower_bound(problem).price == lower_bound(problem).price
