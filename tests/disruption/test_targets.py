"""Targets of a search, made by hand: which commands they lead to, and what becomes of them in another cluster."""

from collections import Counter
from typing import Any

from tests.disruption.scenarios import NOW, NodeWithPods, cluster, node, pool_of
from tests.disruption.test_several_new_nodes import SIZES

from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import Fleet, fleet_of
from karpool.disruption.fleet_search.global_search import next_step
from karpool.disruption.fleet_search.pursuit import Exchange, Pursuit
from karpool.disruption.fleet_search.target import Terms, names_of
from karpool.disruption.plan import context_of
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.model.labels import DO_NOT_DISRUPT, POD_DELETION_COST
from karpool.optimization.search import TargetFleet, TargetMachine
from karpool.packing.options import Options

STAYS = {DO_NOT_DISRUPT: "true"}
TERMS = Terms(heaviest=True, near=False)


def passed(*nodes: NodeWithPods, price: float = 0.0, budgets: tuple[str, ...] = ("100%",)) -> DecisionPass:
    objects = cluster(nodes, pools=(pool_of(budgets=list(budgets)),))
    settings = DisruptionSettings(search=GLOBAL, eviction_price=price)
    return DecisionPass(context_of(objects, SIZES, now=NOW, settings=settings, options=Options()))


def filled(name: str, size: str, count: int, **rest: Any) -> NodeWithPods:
    return node(name, size, pods=[{"cpu": "100m"}] * count, catalog=SIZES, **rest)


def merged(fleet: Fleet, going: str, host: str) -> TargetFleet:
    """The target in which nodes go, and one that stays gets all of their pods."""
    gone = tuple(fleet.names.index(name) for name in going)
    guests: Counter[int] = Counter()
    for number in gone:
        guests.update(fleet.problem.pods_on(number))
    price = fleet.problem.price - float(fleet.problem.nodes.price[list(gone)].sum())
    return TargetFleet(gone, (TargetMachine(fleet.names.index(host), dict(guests)),), (), price, price)


def followed(decision_pass: DecisionPass, target: str) -> list[tuple[str, ...]]:
    """The nodes of each command on the way to the target in which some nodes go to `host`."""
    fleet = fleet_of(decision_pass)
    pursuit = Pursuit(fleet, merged(fleet, target, "host"), spot_to_spot=False)
    commands = []
    while (step := next_step(decision_pass, pursuit)) is not None:
        assert step.outcome.command is not None
        commands.append(step.outcome.command.nodes)
        pursuit.settle(step.exchange, [], {})
    return commands


def test_a_command_that_ends_a_target_pays_for_its_own_evictions() -> None:
    """0.4 $/h for one pod, then 0.1 $/h for ten: together worth it at 0.02 $/h each, the second alone is not."""
    nodes = (filled("a", "c8", 1), filled("b", "c2", 10), filled("host", "c16", 1, annotations=STAYS))
    assert followed(passed(*nodes, budgets=("1",)), "ab") == [("a",), ("b",)]
    assert followed(passed(*nodes, budgets=("1",), price=0.02), "ab") == [("a",)]


def test_a_command_may_pay_for_evictions_that_some_of_its_nodes_alone_would_not() -> None:
    nodes = (filled("a", "c8", 1), filled("b", "c2", 10), filled("host", "c16", 1, annotations=STAYS))
    assert followed(passed(*nodes, price=0.02), "ab") == [("a", "b")]


def test_pods_that_differ_in_weight_alone_are_wished_for_once() -> None:
    light = {"cpu": "100m", "annotations": {POD_DELETION_COST: "-67108864"}}
    pods = [{"cpu": "100m"}] * 3 + [light] * 2
    decision_pass = passed(node("a", "c8", pods=pods, catalog=SIZES), filled("host", "c16", 1, annotations=STAYS))
    names = names_of(decision_pass, fleet_of(decision_pass))
    wish = names.wish(names.target(merged(names.fleet, "a", "host"), NOW, 0.4, TERMS))
    host = names.fleet.names.index("host")
    assert sorted(wish.guests[:, 2].tolist()) == [2, 3]
    assert set(wish.guests[:, 0].tolist()) == {host}
    assert len(set(wish.guests[:, 1].tolist())) == 2


def test_places_on_a_new_node_that_has_gone_again_are_given_up() -> None:
    """A scheduler may bring nobody to a new node, and then it goes as an empty one."""
    decision_pass = passed(filled("a", "c16", 1), filled("b", "c16", 1))
    fleet = fleet_of(decision_pass)
    a, b = (fleet.names.index(name) for name in "ab")
    kind = int(fleet.problem.kinds.price.argmin())
    guests = dict(Counter(fleet.problem.pods_on(a)) + Counter(fleet.problem.pods_on(b)))
    pursuit = Pursuit(fleet, TargetFleet((a, b), (), (TargetMachine(kind, guests),), 0.0, 0.0), spot_to_spot=False)
    pursuit.settle(Exchange((a,), (0,)), [0], {})
    pursuit.new[0].name = "new-1"
    assert next_step(decision_pass, pursuit) is None
