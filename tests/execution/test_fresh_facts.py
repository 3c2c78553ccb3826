"""Nothing is removed on the word of a cache: nodes and pods are read again before a command goes on."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.execution.runs import SETTINGS, Run, delete_command, small_world
from tests.execution.world import START, World
from tests.factories import pod

from karpool.disruption.brakes.doubt import doubts
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.execution.actions import Action, DeleteClaim, EvictPod, RecordEvent, SetClaimCondition
from karpool.execution.advance import advance
from karpool.execution.fresh_facts import FreshFacts, FreshNode, changed_since, to_read
from karpool.execution.state import ExecutionState
from karpool.execution.tickets import ticket_of
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.node import Node
from karpool.model.pod import Pod

PROTECTED = {DO_NOT_DISRUPT: "true"}
LATE = START + timedelta(seconds=1)
NEW = pod("new-1", node="a", created=LATE)
GUARDED = pod("guarded-1", node="a", created=LATE, annotations=PROTECTED)


class Behind:
    """A controller whose cache of pods stopped at the start, on a world that goes on."""

    def __init__(self) -> None:
        self.world = small_world()
        run = Run(self.world)
        run.start(delete_command(self.world))
        self.cached = self.pods_by_node()

    def pods_by_node(self) -> dict[str, tuple[Pod, ...]]:
        pods = self.world.pods.values()
        return {name: tuple(pod for pod in pods if pod.spec.node_name == name) for name in self.world.nodes}

    def facts(self) -> FreshFacts:
        return {name: FreshNode(self.world.nodes[name], pods) for name, pods in self.pods_by_node().items()}

    def advance(
        self, facts: FreshFacts | None = None, stops: tuple[Stop, ...] = ()
    ) -> tuple[ExecutionState, tuple[Action, ...]]:
        return advance(
            self.world.objects(),
            ExecutionState(),
            self.world.now,
            settings=SETTINGS,
            pods_on=lambda name: self.cached.get(name, ()),
            pdbs=PdbLimits(()),
            facts=facts,
            doubts=stops,
        )

    def commit(self) -> None:
        self.world.execute(self.advance(self.facts())[1])
        assert all(is_committed(self.world, name) for name in "ab")


def is_committed(world: World, name: str) -> bool:
    ticket = ticket_of(world.claims[name])
    return ticket is not None and ticket.committed


def changes(actions: tuple[Action, ...]) -> list[Action]:
    return [action for action in actions if not isinstance(action, RecordEvent)]


def told(actions: tuple[Action, ...]) -> str:
    return " ".join(f"{action.reason}: {action.message}" for action in actions if isinstance(action, RecordEvent))


def protected(node: Node) -> Node:
    return replace(node, metadata=replace(node.metadata, annotations=PROTECTED))


# -- comparison --------------------------------------------------------------------------------------------------------

OLD = pod("old-1", node="a")
NODE = small_world().nodes["a"]


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (FreshNode(NODE, (OLD,)), None),
        (FreshNode(NODE, ()), None),
        (FreshNode(NODE, (OLD, NEW)), "PodArrived"),
        (FreshNode(NODE, (OLD, replace(NEW, status=replace(NEW.status, phase="Succeeded")))), None),
        (FreshNode(NODE, (OLD, pod("agent-1", node="a", owner="DaemonSet"))), None),
        (FreshNode(NODE, (OLD, pod("agent-1", node="a", owner="DaemonSet", annotations=PROTECTED))), "PodDoNotDisrupt"),
        (FreshNode(NODE, (replace(OLD, metadata=replace(OLD.metadata, uid="another")),)), "PodArrived"),
        (FreshNode(NODE, (replace(OLD, metadata=replace(OLD.metadata, annotations=PROTECTED)),)), "PodDoNotDisrupt"),
        (FreshNode(NODE, (replace(OLD, metadata=replace(OLD.metadata, annotations={"a": "b"})),)), None),
        (FreshNode(NODE, (replace(OLD, metadata=replace(OLD.metadata, labels={"tier": "other"})),)), "PodChanged"),
        (FreshNode(NODE, (pod("old-1", node="a", cpu="7"),)), "PodChanged"),
        (FreshNode(protected(NODE), (OLD,)), "NodeDoNotDisrupt"),
        (FreshNode(None, ()), "NodeGone"),
        (FreshNode(problem="no answer in time"), "FactsUnknown"),
    ],
)
def test_what_was_read_is_compared_with_what_was_decided_on(facts: FreshNode, code: str | None) -> None:
    reason = changed_since("a", (OLD,), facts, START)
    assert (None if reason is None else reason.code) == code


def test_a_node_that_drains_whatever_its_pods_say_is_only_asked_whether_it_may_go_itself() -> None:
    assert changed_since("a", (OLD,), FreshNode(NODE, (GUARDED, NEW)), START, drains_anyway=True) is None
    reason = changed_since("a", (OLD,), FreshNode(protected(NODE)), START, drains_anyway=True)
    assert reason is not None
    assert reason.code == "NodeDoNotDisrupt"


# -- commands ----------------------------------------------------------------------------------------------------------


def test_a_command_does_not_commit_before_its_nodes_were_read() -> None:
    behind = Behind()
    state, actions = behind.advance()
    assert state.unread == {"a", "b"}
    assert changes(actions) == []
    state, actions = behind.advance(behind.facts())
    assert state.unread == set()
    behind.world.execute(actions)
    assert all(is_committed(behind.world, name) for name in "ab")


def test_a_committed_command_deletes_nothing_before_its_nodes_were_read_again() -> None:
    behind = Behind()
    behind.commit()
    state, actions = behind.advance()
    assert (state.unread, changes(actions)) == ({"a", "b"}, [])
    state, actions = behind.advance(behind.facts())
    assert changes(actions) == [DeleteClaim("a", "claim-a"), DeleteClaim("b", "claim-b")]


@pytest.mark.parametrize("late", [NEW, GUARDED])
def test_a_pod_that_the_cache_does_not_know_takes_the_command_back(late: Pod) -> None:
    behind = Behind()
    behind.world.pods[late.key] = late
    actions = behind.advance(behind.facts())[1]
    assert "DeleteClaim" not in {type(action).__name__ for action in actions}
    assert f"DisruptionRolledBack: command {_id(behind)} is rolled back: pod {late.key} came to node a" in told(actions)


@pytest.mark.parametrize("late", [NEW, GUARDED, replace(GUARDED, metadata=replace(GUARDED.metadata, name="b"))])
def test_a_pod_that_the_cache_does_not_know_saves_its_node_to_the_last(late: Pod) -> None:
    behind = Behind()
    behind.commit()
    behind.world.pods[late.key] = late
    actions = behind.advance(behind.facts())[1]
    assert [action for action in actions if isinstance(action, DeleteClaim)] == [DeleteClaim("b", "claim-b")]
    assert "DisruptionRolledBack" in told(actions)


def test_a_known_pod_that_is_protected_since_saves_its_node_to_the_last() -> None:
    behind = Behind()
    behind.commit()
    old = behind.cached["a"][0]
    behind.world.pods[old.key] = replace(old, metadata=replace(old.metadata, annotations=PROTECTED))
    actions = behind.advance(behind.facts())[1]
    assert [action for action in actions if isinstance(action, DeleteClaim)] == [DeleteClaim("b", "claim-b")]
    assert f"Pod {old.key} has {DO_NOT_DISRUPT}" in told(actions)


def test_a_node_that_is_protected_since_is_not_deleted() -> None:
    behind = Behind()
    behind.world.nodes["a"] = protected(behind.world.nodes["a"])
    actions = behind.advance(behind.facts())[1]
    assert "DisruptionRolledBack" in told(actions)
    assert not [action for action in actions if isinstance(action, DeleteClaim)]


@pytest.mark.parametrize("committed", [False, True])
def test_a_node_that_cannot_be_read_waits_and_says_so(*, committed: bool) -> None:
    behind = Behind()
    if committed:
        behind.commit()
    facts = dict.fromkeys("ab", FreshNode(problem="no answer in time"))
    state, actions = behind.advance(facts)
    assert (state.unread, changes(actions)) == (set(), [])
    assert state.requeue_at == behind.world.now + timedelta(seconds=5)
    assert "DisruptionBlocked: Node a could not be read again before it is removed: no answer in time" in told(actions)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(("time", "watches"), [("servers disagree", {}), ("", {"pods": "its watch is silent"})])
def test_a_command_waits_while_what_is_known_is_in_doubt(
    time: str, watches: dict[str, str], *, committed: bool
) -> None:
    behind = Behind()
    if committed:
        behind.commit()
    state, actions = behind.advance(behind.facts(), tuple(doubts(time, watches)))
    assert (state.unread, changes(actions)) == (set(), [])
    assert "in doubt" in told(actions)
    assert state.requeue_at == behind.world.now + timedelta(seconds=5)


# -- drains ------------------------------------------------------------------------------------------------------------


def test_a_node_is_drained_only_when_no_pod_is_left_on_it_by_the_word_of_the_api_server() -> None:
    behind = Behind()
    behind.commit()
    behind.world.execute(behind.advance(behind.facts())[1])
    for _ in range(3):
        behind.cached = {}
        behind.world.execute(behind.advance()[1])
        behind.world.pass_time(behind.world.now + timedelta(seconds=6))
    state, actions = behind.advance()
    assert {"a", "b"} <= state.unread
    assert not [action for action in actions if isinstance(action, SetClaimCondition) and action.type == "Drained"]
    unseen = [each for each in behind.pods_by_node()["a"] if not each.is_daemon]
    assert unseen
    actions = behind.advance(behind.facts())[1]
    assert {action.key for action in actions if isinstance(action, EvictPod)} & {each.key for each in unseen}


def _id(behind: Behind) -> str:
    ticket = ticket_of(behind.world.claims["a"])
    assert ticket is not None
    return ticket.id


def test_two_sets_of_nodes_are_not_wanted_in_turn_for_ever() -> None:
    def missed(known: FreshFacts) -> frozenset[str]:
        """Once "a" has been read, "b" may go beside it."""
        wanted = {"a", "b"} if known else {"a"}
        return frozenset(wanted - known.keys())

    known: FreshFacts = {}
    reads: list[frozenset[str]] = []
    while (nodes := to_read(missed(known), known)) and len(reads) < 5:
        reads.append(nodes)
        known = {name: FreshNode() for name in nodes}
    assert reads == [{"a"}, {"a", "b"}]
