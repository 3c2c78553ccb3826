"""A global search in a cluster that lives: asked for, never made in a pass; its target is followed or given up."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.disruption.scenarios import NOW, NodeWithPods, cluster, node, pool_of
from tests.disruption.test_several_new_nodes import SIZES

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.command import Cause
from karpool.disruption.decide import Decision, decide
from karpool.disruption.fleet_search.living_search import Ending, LivingSearch
from karpool.disruption.fleet_search.target import SearchRequest, fingerprint
from karpool.disruption.memo import Memo
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.packing.engine import Engine
from karpool.packing.options import Options

SETTINGS = DisruptionSettings(search=GLOBAL, effort=1, eviction_price=0.0)
REST = timedelta(minutes=1)
POOL = pool_of()


class Living:
    """A cluster, and passes over it that share a memo."""

    def __init__(self, nodes: Sequence[NodeWithPods], settings: DisruptionSettings = SETTINGS) -> None:
        self.settings = settings
        self.now = NOW
        self.memo: Memo | None = None
        self.under_way: frozenset[str] = frozenset()
        self.pool = POOL
        self.become(nodes)

    def become(self, nodes: Sequence[NodeWithPods]) -> None:
        """The cluster has changed."""
        objects = cluster(nodes, pools=(POOL,))
        self.engine = Engine(Snapshot(objects), SIZES, Options())

    def decide(self) -> Decision:
        """One pass."""
        policies = Policies({POOL.name: self.pool}, PdbLimits(()), self.settings, in_command=self.under_way)
        decision = decide(self.engine, policies, self.now, self.memo)
        self.memo = decision.memo
        return decision

    @property
    def search(self) -> LivingSearch:
        assert self.memo is not None
        assert self.memo.living_search is not None
        return self.memo.living_search

    def asked(self) -> SearchRequest:
        """The search that the next pass asks for."""
        wanted = self.decide().search
        assert wanted is not None
        return wanted

    def answer(self) -> None:
        """Have a search made, and hand its answer in."""
        request = self.asked()
        self.search.answered(request.run(), self.now + REST)


def filled(name: str, size: str = "c8", *cpus: int, **rest: Any) -> NodeWithPods:
    return node(name, size, pods=[{"cpu": cpu} for cpu in cpus], catalog=SIZES, **rest)


def wasteful() -> list[NodeWithPods]:
    """Three nodes whose pods would fit on one."""
    return [filled("a", "c8", 2), filled("b", "c8", 2), filled("c", "c8", 1)]


def test_a_pass_asks_for_a_search_once_and_consolidates_nothing_until_the_answer() -> None:
    living = Living(wasteful())
    first, second = living.decide(), living.decide()
    assert first.commands == second.commands == ()
    assert first.search is not None
    assert second.search is None
    assert living.search.holds


def test_the_answer_is_followed_by_a_command_that_removes_nodes() -> None:
    living = Living(wasteful())
    living.answer()
    (command,) = living.decide().commands
    assert command.cause is Cause.UNDERUTILIZED
    assert command.savings > 0
    assert set(command.nodes) <= {"a", "b", "c"}


def test_empty_nodes_go_while_a_search_is_under_way() -> None:
    living = Living(wasteful())
    living.asked()
    living.become([*wasteful(), filled("empty")])
    (command,) = living.decide().commands
    assert command.cause is Cause.EMPTY
    assert command.nodes == ("empty",)
    assert living.search.request is not None


def test_the_same_request_has_the_same_answer() -> None:
    one, two = Living(wasteful()).asked(), Living(wasteful()).asked()
    assert one.fingerprint == two.fingerprint == fingerprint(one.names.fleet.problem)
    targets = [request.run().target for request in (one, one, two)]
    assert targets[0] is not None
    assert len({(tuple(sorted(target.going)), target.price) for target in targets if target is not None}) == 1
    assert all(target is not None for target in targets)


def test_a_target_is_dropped_when_the_cluster_has_moved_on() -> None:
    living = Living(wasteful())
    living.answer()
    living.become([filled("a", "c8", 7), filled("b", "c8", 7), filled("c", "c8", 7)])
    decision = living.decide()
    assert decision.commands == ()
    assert [end.ending for end in decision.ended] == [Ending.NOT_WORTH_IT]
    assert not living.search.holds


def test_a_target_whose_nodes_are_gone_is_reached() -> None:
    living = Living(wasteful())
    living.answer()
    living.become([filled("d", "c8", 5)])
    decision = living.decide()
    assert [end.ending for end in decision.ended] == [Ending.REACHED]


def test_a_command_that_has_begun_is_not_decided_again_and_the_rest_waits_for_it() -> None:
    living = Living(wasteful())
    living.answer()
    (command,) = living.decide().commands
    living.under_way = frozenset(command.nodes)
    decision = living.decide()
    assert decision.commands == ()
    assert living.search.target is not None
    assert living.search.target.going.isdisjoint(command.nodes)


def test_a_command_that_never_starts_is_given_up_after_some_time() -> None:
    living = Living(wasteful())
    living.answer()
    endings: list[Ending] = []
    for _ in range(20):
        endings += [end.ending for end in living.decide().ended]
        if endings:
            break
    assert endings == [Ending.NOT_STARTED]


def test_a_search_that_found_nothing_is_not_repeated_until_something_changes() -> None:
    full = [filled("a", "c4", 3)]
    living = Living(full)
    living.answer()
    assert living.search.target is None
    living.now += timedelta(hours=1)
    assert living.decide().search is None
    living.become([filled("a", "c4", 3), filled("b", "c8", 1)])
    assert living.decide().search is not None


def test_searches_rest_and_meanwhile_other_methods_consolidate() -> None:
    living = Living([filled("a", "c4", 3)])
    living.answer()
    living.become([filled("a", "c32", 3)])
    decision = living.decide()
    assert decision.search is None
    assert [command.nodes for command in decision.commands] == [("a",)]


def test_a_failed_search_leaves_consolidation_to_the_other_methods() -> None:
    living = Living(wasteful())
    living.asked()
    living.search.answered(None, living.now + REST)
    assert living.decide().commands


def test_what_is_kept_outlasts_another_engine() -> None:
    living = Living(wasteful())
    living.answer()
    kept = living.search
    living.become(wasteful())
    assert living.decide().commands
    assert living.search is kept


def test_a_target_waits_for_its_own_command_only_for_a_while() -> None:
    living = Living([*wasteful(), filled("d", "c8", 7)])
    living.answer()
    (command,) = living.decide().commands
    living.under_way = frozenset(command.nodes)
    for minutes in (0, 9):
        living.now += timedelta(minutes=minutes)
        waiting = living.decide()
        assert waiting.commands == waiting.ended == ()
        assert living.search.holds
    living.now += timedelta(minutes=2)
    decision = living.decide()
    went_on = [command.nodes for command in decision.commands] == [("d",)]
    assert went_on or decision.ended


def test_a_target_for_one_command_keeps_to_a_budget_that_has_become_smaller() -> None:
    living = Living([node(name, "c2", pods=[{"cpu": "250m"}], catalog=SIZES) for name in "abcdef"])
    answer = replace(living.asked(), near=True).run()
    assert answer.target is not None
    assert len(answer.target.going) > 1
    living.search.answered(answer, living.now + REST)
    living.pool = pool_of(budgets=["1"])
    (command,) = living.decide().commands
    assert len(command.nodes) == 1
