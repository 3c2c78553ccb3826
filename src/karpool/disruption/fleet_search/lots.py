"""Pods that a target treats alike, and the places that it has for them.

Pods of a group are alike, unless rules about spread count them by domain. Then those that leave a domain get the places
of the target in the same domain, as far as there are any: so the domains never count more or less on the way than
before it or at its end, and a rule that both keep is not broken in between.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from karpool.cluster.arrays import Array
from karpool.optimization.problem import SPREAD, FleetProblem
from karpool.optimization.search import TargetFleet

Place = int
"""A node by its number in the problem, or -1 - n for the new node n of a target."""
Domains = tuple[int, ...]
"""The domain of each key by which rules of a group spread its pods."""


@dataclass(slots=True)
class Lots:
    """Lots of pods, by number."""

    groups: list[int] = field(default_factory=list)
    """By lot: the group of its pods."""
    places: list[Counter[Place]] = field(default_factory=list)
    """By lot: how many of its pods each place takes."""
    needs: dict[int, dict[int, int]] = field(default_factory=dict)
    """By node that goes: how many pods of which lot are on it."""
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    """By group and node that goes: the lot."""


def lots_of(problem: FleetProblem, target: TargetFleet) -> Lots:
    """The lots of a target."""
    offers: defaultdict[int, list[tuple[Place, int, Array]]] = defaultdict(list)
    for machine in target.hosts:
        for group, count in machine.guests.items():
            offers[group].append((machine.number, count, problem.nodes.domain[machine.number]))
    for number, machine in enumerate(target.new):
        for group, count in machine.guests.items():
            offers[group].append((-1 - number, count, problem.kinds.domain[machine.number]))
    leaving: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for node in target.gone:
        for group, count in problem.pods_on(node).items():
            leaving[group][node] = count
    lots = Lots(needs={node: {} for node in target.gone})
    for group, counts in leaving.items():
        _add(lots, problem, group, counts, offers[group])
    return lots


def _add(
    lots: Lots, problem: FleetProblem, group: int, leaving: dict[int, int], offers: list[tuple[Place, int, Array]]
) -> None:
    """Add the lots of a group: one for each domain that its pods leave, if rules spread them."""
    rules = problem.spreads.owned.row(group).tolist()
    keys = sorted({int(problem.spreads.key[rule]) for rule in rules if problem.spreads.mode[rule] == SPREAD})
    by_domain: dict[Domains, int] = {}
    wanted: Counter[int] = Counter()
    for node, count in leaving.items():
        domains = _of(problem.nodes.domain[node], keys)
        if domains not in by_domain:
            by_domain[domains] = len(lots.groups)
            lots.groups.append(group)
            lots.places.append(Counter())
        lot = by_domain[domains]
        lots.numbers[group, node] = lot
        lots.needs[node][lot] = count
        wanted[lot] += count
    left: list[tuple[Place, int]] = []
    for place, count, at in offers:
        lot_here = by_domain.get(_of(at, keys))
        share = 0 if lot_here is None else min(count, wanted[lot_here])
        if lot_here is not None and share:
            lots.places[lot_here][place] += share
            wanted[lot_here] -= share
        left.append((place, count - share))
    _hand_out(lots, wanted, left)


def _hand_out(lots: Lots, wanted: Counter[int], left: Iterable[tuple[Place, int]]) -> None:
    """Give what places are left to lots that have too few."""
    short = [lot for lot, count in wanted.items() for _ in range(count)]
    for place, count in left:
        for lot in short[:count]:
            lots.places[lot][place] += 1
        del short[:count]


def _of(domains: Array, keys: list[int]) -> Domains:
    return tuple(int(domains[key]) for key in keys)
