"""A plan without detours: the fleet that a plan ends with as the one target of another plan.

A plan searches again when a target is reached, and may then move pods once more, or take back a node that it launched.
What it ends with is known when it is finished, so pods can go there at once, as far as the rules let them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.command import Command
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import Fleet, fleet_of
from karpool.disruption.fleet_search.global_search import GlobalSearch
from karpool.disruption.fleet_search.pursuit import Pursuit
from karpool.disruption.fleet_search.target import FleetNames, Purchase, names_of
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.optimization.search import TargetFleet, TargetMachine


def has_detours(commands: Iterable[tuple[Command, Sequence[str]]]) -> bool:
    """Whether commands, each with the names of its replacements, move a pod twice or remove what they launched."""
    moved: set[str] = set()
    launched: set[str] = set()
    for command, names in commands:
        if not (moved.isdisjoint(command.evicted) and launched.isdisjoint(command.nodes)):
            return True
        moved.update(command.evicted)
        launched.update(names)
    return False


def search_for_end(decision_pass: DecisionPass, end: Snapshot, enough: int) -> GlobalSearch:
    """A search that knows its only target: what the cluster of a pass became in another snapshot.

    `enough`: how many nodes a command has that opens new ones.
    """
    fleet = fleet_of(decision_pass, by_size=True)
    target = _target(decision_pass, names_of(decision_pass, fleet), end)
    spot_to_spot = decision_pass.context.settings.spot_to_spot
    return GlobalSearch(Pursuit(fleet, target, spot_to_spot=spot_to_spot), enough)


def _target(decision_pass: DecisionPass, names: FleetNames, end: Snapshot) -> TargetFleet:
    """The target in which nodes are gone that are not at the end, and their pods are where they are then."""
    fleet, problem = names.fleet, names.fleet.problem
    gone = [
        number
        for number, name in enumerate(fleet.names)
        if problem.nodes.searchable[number] and name not in end.nodes.rows
    ]
    guests = _guests(decision_pass, fleet, gone, end)
    numbers = {name: number for number, name in enumerate(fleet.names)}
    kinds = {names.purchase(kind): kind for kind in range(len(problem.kinds.price))}
    hosts, new = [], []
    for name, counts in guests.items():
        if name in numbers:
            hosts.append(TargetMachine(numbers[name], counts))
        elif (kind := _kind(names, kinds, end, name, counts)) is not None:
            new.append(TargetMachine(kind, counts))
    price = problem.price - float(problem.nodes.price[gone].sum())
    price += sum(float(problem.kinds.price[machine.number]) for machine in new)
    return TargetFleet(tuple(gone), tuple(hosts), tuple(new), price, price)


def _guests(decision_pass: DecisionPass, fleet: Fleet, gone: Sequence[int], end: Snapshot) -> dict[str, dict[int, int]]:
    """By name of a node at the end: how many pods of which group it has from nodes that are gone."""
    context, counts = decision_pass.context, defaultdict[str, Counter[int]](Counter)
    for number in gone:
        for row in context.candidate(int(fleet.rows[number])).pods:
            group, key = fleet.group_of.get(row), context.snapshot.pods.get(row).key
            place = int(end.pods.node_of[end.pods.rows[key]]) if key in end.pods.rows else -1
            if group is not None and place >= 0:
                counts[end.nodes.get(place).name][group] += 1
    return {name: dict(sorted(counted.items())) for name, counted in counts.items()}


def _kind(
    names: FleetNames, kinds: Mapping[Purchase, int], end: Snapshot, name: str, guests: Mapping[int, int]
) -> int | None:
    """The kind that a new node is; another of its pool if a search leaves its own kind out."""
    problem, labels = names.fleet.problem, end.nodes.get(end.nodes.rows[name]).labels
    pool, type_ = labels.get(NODEPOOL, ""), labels.get(INSTANCE_TYPE, "")
    exact = kinds.get(Purchase(pool, type_, labels.get(CAPACITY_TYPE, ""), labels.get(ZONE, "")))
    if exact is not None:
        return exact
    asked = sum(count * problem.groups.requests[group] for group, count in guests.items())
    suitable = [
        (float(problem.kinds.price[kind]), kind)
        for purchase, kind in kinds.items()
        if purchase.pool == pool
        and (problem.kinds.room[kind] >= asked).all()
        and all(problem.suits_kind[problem.groups.signature[group], kind] for group in guests)
    ]
    return min(suitable)[1] if suitable else None
