"""Going on with a target: what was wanted comes about as far as it can, and nothing is compiled twice."""

import numpy as np
import pytest
from tests.optimization.tiny import Kind, Node, Pod, Tiny

from karpool.optimization.kernels.ruin import improve
from karpool.optimization.search import TargetFleet, Wish, resumed, search

HALF_EMPTY = Tiny(
    groups=(Pod((2,)),),
    nodes=(Node(4.0, (6,), pods=(0,)), Node(4.0, (6,), pods=(0,)), Node(1.0, (1,), movable=False)),
    kinds=(Kind(1.0, (4,)), Kind(0.6, (2,))),
)


def wish(going: list[int], kinds: list[int] | None = None, guests: list[tuple[int, int, int]] | None = None) -> Wish:
    entries = guests or []
    return Wish(
        going=np.array(going, dtype=np.int64),
        kinds=np.array(kinds or [], dtype=np.int64),
        guests=np.array(entries, dtype=np.int64).reshape(len(entries), 3),
    )


def after(tiny: Tiny, wanted: Wish, price: float = 0.0, moves: int = 0) -> TargetFleet:
    return resumed(tiny.problem(), wanted, eviction_price=price, seed=0, moves=moves)


def test_guests_come_where_they_were_wanted() -> None:
    found = after(HALF_EMPTY, wish([0], guests=[(1, 0, 1)]))
    assert found.gone == (0,)
    assert [(host.number, host.guests) for host in found.hosts] == [(1, {0: 1})]
    assert found.new == ()
    assert found.price == pytest.approx(5.0)


def test_new_machines_that_nobody_needs_do_not_come_and_others_are_as_small_as_possible() -> None:
    found = after(HALF_EMPTY, wish([0], kinds=[0, 0], guests=[(3, 0, 1)]))
    assert [(new.number, new.guests) for new in found.new] == [(1, {0: 1})]
    assert found.price == pytest.approx(5.6)


def test_what_was_not_foreseen_gets_a_machine_of_its_own() -> None:
    found = after(HALF_EMPTY, wish([0, 1]))
    assert found.gone == (0, 1)
    assert sum(sum(new.guests.values()) for new in found.new) == 2
    assert found.price == pytest.approx(2.0)


def test_evictions_count() -> None:
    plain, priced = after(HALF_EMPTY, wish([0])), after(HALF_EMPTY, wish([0]), price=0.5)
    assert priced.cost == pytest.approx(plain.cost + 0.5)


def test_a_wish_that_leads_nowhere_leaves_the_fleet_of_today() -> None:
    stuck = Tiny(groups=(Pod((9,)),), nodes=(Node(4.0, (0,), pods=(0,)),), kinds=(Kind(1.0, (4,)),))
    found = after(stuck, wish([0], kinds=[0]))
    assert found.gone == ()
    assert found.new == ()
    assert found.cost == pytest.approx(4.0)


def test_a_few_moves_mend_what_has_become_too_expensive() -> None:
    dear = Tiny(groups=(Pod((2,)),), nodes=(Node(1.0, (2,), pods=(0,)), Node(9.0, (2,))), kinds=(Kind(5.0, (2,)),))
    wanted = wish([0], kinds=[0], guests=[(2, 0, 1)])
    assert after(dear, wanted).cost == pytest.approx(14.0)
    assert after(dear, wanted, moves=50).cost < 10.0 + 1e-6


def test_mending_takes_no_other_nodes_away() -> None:
    tempting = Tiny(
        groups=(Pod((2,)),),
        nodes=(Node(4.0, (6,), pods=(0,)), Node(9.0, (6,), pods=(0,))),
        kinds=(Kind(0.5, (2,)),),
    )
    assert after(tempting, wish([0]), moves=200).gone == (0,)


def test_a_fleet_without_pods_needs_no_other_machine_code() -> None:
    empty = Tiny(groups=(Pod((2,)),), nodes=(Node(4.0, (6,)),), kinds=(Kind(1.0, (4,)),))
    after(HALF_EMPTY, wish([0]), moves=1)
    compiled = len(improve.signatures)
    after(empty, wish([0]), moves=1)
    search(empty.problem(), eviction_price=0.0, seed=0, moves=1)
    assert len(improve.signatures) == compiled


def test_a_wish_for_many_new_machines_while_no_node_may_go_leaves_the_fleet_of_today() -> None:
    fleet = Tiny((Pod((1,)),), (Node(1.0, (0,), (0,), movable=False),), (Kind(0.5, (1,)),))
    guests = [(1 + number, 0, 1) for number in range(40)]
    target = after(fleet, wish([], [0] * 40, guests))
    assert (target.gone, target.new) == ((), ())
    assert target.price == 1.0
