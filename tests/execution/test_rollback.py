"""A rollback deletes no replacement that a pod may be on: its node is read again, and nothing may be in doubt."""

from datetime import timedelta

import pytest
from tests.execution.runs import SETTINGS, leftovers, replace_command
from tests.execution.test_commands import replacement_of, started
from tests.execution.test_failures import PAUSE
from tests.execution.world import World
from tests.factories import pod

from karpool.disruption.brakes.doubt import doubts
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.execution.actions import Action, DeleteClaim, RecordEvent
from karpool.execution.advance import advance
from karpool.execution.fresh_facts import FreshFacts, FreshNode
from karpool.execution.state import ExecutionState
from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod

SILENT = tuple(doubts("", {"pods": "its watch is silent"}))
DISAGREE = tuple(doubts("servers disagree", {}))


class Behind:
    """A controller that knows no pod of the replacement, whose node is ready."""

    def __init__(self, *, launches: bool = True) -> None:
        self.world, run = started(replace_command, launches=launches)
        self.name = replacement_of(self.world)
        while launches and not self.world.claims[self.name].is_true("Initialized"):
            run.reconcile()
            self.world.pass_time(self.world.now + timedelta(seconds=1))
        self.cached = {name: self.pods_on(name) for name in "abc"}

    def pods_on(self, name: str) -> tuple[Pod, ...]:
        return tuple(each for each in self.world.pods.values() if each.spec.node_name == name)

    @property
    def node(self) -> str:
        return self.world.claims[self.name].status.node_name

    def facts(self) -> FreshFacts:
        return {self.node: FreshNode(self.world.nodes[self.node], self.pods_on(self.node))}

    def advance(
        self, facts: FreshFacts | None = None, *, paused: bool = True, in_doubt: tuple[Stop, ...] = ()
    ) -> tuple[ExecutionState, tuple[Action, ...]]:
        """A pass whose actions are carried out."""
        state, actions = advance(
            self.world.objects(),
            ExecutionState(),
            self.world.now,
            settings=SETTINGS,
            pods_on=lambda name: self.cached.get(name, ()),
            pdbs=PdbLimits(()),
            halting=lambda _: PAUSE if paused else None,
            facts=facts,
            doubts=in_doubt,
        )
        self.world.execute(actions)
        return state, actions


def deleted(actions: tuple[Action, ...]) -> list[str]:
    return [action.name for action in actions if isinstance(action, DeleteClaim)]


def marked(world: World) -> set[str]:
    return {name for name, claim in world.claims.items() if COMMAND in claim.metadata.annotations}


def test_an_unused_replacement_goes_after_its_node_was_read_again_and_the_failure_is_told_once() -> None:
    behind = Behind()
    first, actions = behind.advance()
    assert (first.unread, deleted(actions), len(first.rolled_back)) == (set(), [], 1)
    assert first.requeue_at == behind.world.now + timedelta(seconds=5)
    second, actions = behind.advance()
    assert (second.unread, deleted(actions), second.rolled_back) == ({behind.node}, [], ())
    assert marked(behind.world) == {"a", "b"}
    third, actions = behind.advance(behind.facts())
    assert (third.unread, deleted(actions), third.rolled_back) == (set(), [behind.name], ())
    behind.advance()
    assert marked(behind.world) == set()


@pytest.mark.parametrize("annotations", [{}, {DO_NOT_DISRUPT: "true"}])
def test_a_pod_that_the_cache_does_not_know_saves_the_replacement(annotations: dict[str, str]) -> None:
    behind = Behind()
    late = pod("late-1", node=behind.node, created=behind.world.now, annotations=annotations)
    behind.world.pods[late.key] = late
    done = [action for facts in (None, None, behind.facts(), None) for action in behind.advance(facts)[1]]
    assert deleted(tuple(done)) == []
    assert REPLACES not in behind.world.claims[behind.name].metadata.annotations
    assert leftovers(behind.world) == []


@pytest.mark.parametrize("in_doubt", [SILENT, DISAGREE])
def test_a_replacement_waits_while_what_is_known_is_in_doubt(in_doubt: tuple[Stop, ...]) -> None:
    behind = Behind()
    for facts in (None, behind.facts(), behind.facts()):
        state, actions = behind.advance(facts, in_doubt=in_doubt)
        assert (state.unread, deleted(actions)) == (set(), [])
        assert state.requeue_at == behind.world.now + timedelta(seconds=5)
        told = {action.message for action in actions if isinstance(action, RecordEvent) and action.name == behind.name}
        assert told == {in_doubt[0].message}
    assert marked(behind.world) == {"a", "b"}
    assert deleted(behind.advance(behind.facts())[1]) == [behind.name]


def test_a_replacement_whose_node_cannot_be_read_waits_and_says_so() -> None:
    behind = Behind()
    behind.advance()
    state, actions = behind.advance({behind.node: FreshNode(problem="no answer in time")})
    assert (state.unread, deleted(actions)) == (set(), [])
    assert state.requeue_at == behind.world.now + timedelta(seconds=5)
    assert "no answer in time" in " ".join(action.message for action in actions if isinstance(action, RecordEvent))


@pytest.mark.parametrize("in_doubt", [(), SILENT])
def test_a_replacement_without_a_node_goes_at_once(in_doubt: tuple[Stop, ...]) -> None:
    behind = Behind(launches=False)
    assert behind.node == ""
    assert deleted(behind.advance(in_doubt=in_doubt)[1]) == [behind.name]


def test_a_rollback_that_has_begun_goes_on_though_the_brake_lets_go() -> None:
    behind = Behind()
    behind.advance()
    state, actions = behind.advance(paused=False)
    assert (state.unread, deleted(actions)) == ({behind.node}, [])
    assert deleted(behind.advance(behind.facts(), paused=False)[1]) == [behind.name]
    behind.advance(paused=False)
    assert marked(behind.world) == set()
