"""A gang takes room as a whole or not at all, and none that would fit is left out."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.factories import node, pod
from tests.factories.gangs import members, pod_group

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.packing.engine import Engine
from karpool.packing.gangs import held_back

FREE = (3, 2, 1)


def homeless(engine: Engine, rows: Sequence[int]) -> list[int]:
    with engine.what_if() as trial:
        return trial.place(rows, existing_only=True).unplaced


def held(objects: Objects) -> dict[str, str]:
    """The names of pods that are held back, and why."""
    snapshot = Snapshot(objects)
    engine, rows = Engine(snapshot, Catalog(())), list(snapshot.pods.rows.values())
    waiting = [row for row in rows if snapshot.pods.node_of[row] < 0]
    found = held_back(snapshot, waiting, lambda some: homeless(engine, some))
    return {snapshot.pods.get(row).name: why for row, why in found.items()}


def nodes(*free: int) -> tuple[Node, ...]:
    return tuple(node(f"n{at}", pool=None, cpu=str(cpu)) for at, cpu in enumerate(free))


@pytest.mark.parametrize(
    ("count", "least", "held_pods", "why"),
    [
        (6, 6, 0, ""),
        (7, 6, 0, ""),
        (7, 7, 7, "its gang default/train runs only together: 7 pods need room at once, and there is room for 6"),
        (3, 4, 3, "its gang default/train runs only together: 4 pods are needed, but only 3 wait"),
        (7, None, 7, "7 pods need room at once (all that wait, for nobody says how many it needs)"),
        (6, None, 0, ""),
    ],
)
def test_a_gang_fits_or_is_held_back(count: int, least: int | None, held_pods: int, why: str) -> None:
    groups = () if least is None else (pod_group("train", least),)
    found = held(Objects(nodes=nodes(*FREE), pods=members("train", count), pod_groups=groups))
    assert len(found) == held_pods
    assert all(why in text for text in found.values())


def test_larger_pods_come_first_and_gangs_in_their_order() -> None:
    pods = (pod("single-1", cpu="2", memory=None, pending=True), *members("a", 3), *members("b", 2), *members("c", 1))
    found = held(Objects(nodes=nodes(*FREE), pods=pods))
    assert {name[0] for name in found} == {"b"}


def test_what_a_held_gang_leaves_goes_to_a_later_one() -> None:
    pods = (*members("a", 7), *members("b", 4), *members("c", 3), *members("d", 2))
    assert {name[0] for name in held(Objects(nodes=nodes(*FREE), pods=pods))} == {"a", "c"}


@examples(60)
@given(
    free=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    sizes=st.lists(st.integers(2, 5), min_size=1, max_size=5),
)
def test_of_all_choices_the_one_that_serves_gangs_in_their_order_is_taken(free: list[int], sizes: list[int]) -> None:
    """Pods are alike, so that counting them says which choices fit; all are tried."""
    pods = [made for at, size in enumerate(sizes) for made in members(f"g{at}", size)]
    found = held(Objects(nodes=nodes(*free), pods=tuple(pods)))
    every = product((True, False), repeat=len(sizes))
    fitting = [
        choice for choice in every if sum(n for n, taken in zip(sizes, choice, strict=True) if taken) <= sum(free)
    ]
    assert tuple(f"g{at}-0" not in found for at in range(len(sizes))) == max(fitting)


Needs = tuple[int, int, int]
"""How many pods a gang has, how many it needs, and how much CPU each."""


@examples(60)
@given(
    free=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    gangs=st.lists(st.tuples(st.integers(2, 4), st.integers(2, 5), st.integers(1, 3)), min_size=1, max_size=4),
    singles=st.lists(st.integers(1, 3), max_size=3),
)
def test_no_gang_is_placed_in_part(free: list[int], gangs: list[Needs], singles: list[int]) -> None:
    pods = [made for at, (count, _, cpu) in enumerate(gangs) for made in members(f"g{at}", count, cpu=str(cpu))]
    pods += [pod(f"s-{at}", cpu=str(cpu), memory=None, pending=True) for at, cpu in enumerate(singles)]
    groups = tuple(pod_group(f"g{at}", least) for at, (_, least, _) in enumerate(gangs))
    found = held(Objects(nodes=nodes(*free), pods=tuple(pods), pod_groups=groups))
    snapshot = Snapshot(Objects(nodes=nodes(*free), pods=tuple(pods)))
    engine, rows = Engine(snapshot, Catalog(())), snapshot.pods.rows
    kept = [row for key, row in rows.items() if key.partition("/")[2] not in found]
    left = {snapshot.pods.get(row).name for row in homeless(engine, kept)}
    for at, (count, least, _) in enumerate(gangs):
        names = {f"g{at}-{number}" for number in range(count)}
        assert names <= found.keys() or names.isdisjoint(found)
        assert names <= found.keys() or len(names - left) >= least


def test_many_gangs_that_are_alike_are_not_tried_one_by_one() -> None:
    pods = tuple(made for at in range(200) for made in members(f"g{at}", 4))
    snapshot = Snapshot(Objects(nodes=nodes(100, 100, 100), pods=pods))
    engine, attempts = Engine(snapshot, Catalog(())), []

    def counted(rows: Sequence[int]) -> list[int]:
        attempts.append(len(rows))
        return homeless(engine, rows)

    found = held_back(snapshot, range(len(pods)), counted)
    assert len(found) == 125 * 4
    assert len(attempts) < 20
