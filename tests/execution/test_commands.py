from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.execution.runs import SETTINGS, Run, advanced, delete_command, leftovers, replace_command, small_world, start
from tests.execution.world import START, World
from tests.factories import pod, taint

from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.command import Cause, Command, Method
from karpool.execution.actions import (
    Action,
    AddTaint,
    Annotate,
    ClearClaimCondition,
    CreateClaim,
    DeleteClaim,
    RecordEvent,
    RemoveTaint,
    SetClaimCondition,
)
from karpool.execution.leaving import leaving_nodes, moving_pods
from karpool.execution.settings import ExecutionSettings
from karpool.execution.start import NotStartedError, destinations
from karpool.execution.state import ExecutionState, nominate, nominated
from karpool.execution.tickets import COMMAND, REPLACES, nodes_in_commands, ticket_of
from karpool.model.labels import FAILED_COMMAND
from karpool.model.objects import Objects
from karpool.wire.objects import Condition

SECOND = timedelta(seconds=1)


def kinds(actions: tuple[Action, ...]) -> list[str]:
    return [type(action).__name__ for action in actions if not isinstance(action, RecordEvent)]


def started(make: Callable[[World], Command], **options: bool) -> tuple[World, Run]:
    world = small_world(**options)
    run = Run(world)
    run.start(make(world))
    return world, run


def reconcile(
    world: World, state: ExecutionState | None = None, settings: ExecutionSettings = SETTINGS
) -> tuple[Action, ...]:
    return advanced(world.objects(), state or ExecutionState(), world.now, settings)[1]


def events(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    return [(action.name, action.reason) for action in actions if isinstance(action, RecordEvent)]


def replacement_of(world: World) -> str:
    return next(name for name in world.claims if name not in "abc")


# -- beginning ---------------------------------------------------------------------------------------------------------


def test_a_command_is_written_on_all_candidates_before_anything_else() -> None:
    world = small_world()
    actions = start(world, replace_command(world))
    assert kinds(actions) == [
        "NoteDisruption",
        *["Annotate"] * 2,
        *["AddTaint"] * 2,
        *["SetClaimCondition"] * 2,
        "CreateClaim",
    ]
    created = actions[-1]
    assert isinstance(created, CreateClaim)
    world.execute(actions)
    ticket = ticket_of(world.claims["a"])
    assert ticket is not None
    assert ticket == ticket_of(world.claims["b"])
    assert (ticket.nodes, ticket.replacements, ticket.cause) == (("a", "b"), (created.claim.name,), "Underutilized")
    assert created.claim.metadata.annotations[REPLACES] == ticket.id
    assert world.nodes["a"].spec.taints == (taint("karpenter.sh/disrupted"),)
    assert nodes_in_commands(world.objects()) == {"a", "b"}


def test_beginning_twice_at_one_moment_asks_for_the_same() -> None:
    world = small_world()
    command = replace_command(world)
    first = start(world, command)
    assert start(world, command) == first
    world.now += SECOND
    assert start(world, command) != first


def test_the_taint_of_another_mode_is_used() -> None:
    world = small_world()
    settings = ExecutionSettings(taint_key="karpool.sh/disrupted")
    actions = start(world, delete_command(world), settings)
    assert [a.taint.key for a in actions if isinstance(a, AddTaint)] == ["karpool.sh/disrupted"] * 2


def without_node(world: World) -> None:
    del world.nodes["a"]


def deleted(world: World) -> None:
    world.apply(DeleteClaim("b", "claim-b"))


def marked(world: World) -> None:
    world.apply(Annotate("NodeClaim", "b", COMMAND, "{}"))


def visited(world: World) -> None:
    world.pods["default/late-1"] = pod("late-1", node="a")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (without_node, "NodeGone"),
        (deleted, "NodeDeleting"),
        (marked, "NodeInCommand"),
        (visited, "PodArrived"),
    ],
)
def test_a_command_that_no_longer_holds_does_not_start(change: Callable[[World], None], code: str) -> None:
    world = small_world()
    command = delete_command(world)
    change(world)
    with pytest.raises(NotStartedError) as refused:
        start(world, command)
    assert refused.value.reason.code == code
    assert refused.value.reason.object.split()[0] in ("Node", "Pod")


def test_a_pool_that_is_not_ready_starts_no_replacement() -> None:
    world = small_world()
    command = replace_command(world)
    pool = world.others.node_pools[0]
    unready = replace(pool, status=replace(pool.status, conditions=(Condition(type="Ready", status="False"),)))
    world.others = Objects(node_pools=(unready,))
    with pytest.raises(NotStartedError, match="NodePool default: cannot supply"):
        start(world, command)


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_candidates_are_deleted_only_after_all_of_them_say_that_there_is_no_way_back() -> None:
    world, run = started(delete_command)
    assert kinds(reconcile(world)) == ["NoteDisruption", "Annotate", "Annotate"]
    run.reconcile()
    tickets = [ticket_of(world.claims[name]) for name in "ab"]
    assert all(ticket is not None and ticket.committed for ticket in tickets)
    assert [a for a in reconcile(world) if isinstance(a, DeleteClaim)] == [
        DeleteClaim("a", "claim-a"),
        DeleteClaim("b", "claim-b"),
    ]


def test_candidates_wait_for_their_replacement() -> None:
    world, run = started(replace_command)
    name = replacement_of(world)
    assert kinds(reconcile(world)) == []
    assert events(reconcile(world)) == [(name, "DisruptionLaunching")]
    world.pass_time(START + 5 * SECOND)
    assert events(reconcile(world)) == [(name, "DisruptionWaitingReadiness")]
    run.until_quiet()
    assert name in world.claims
    assert not {"a", "b"} & set(world.claims)


def test_a_replacement_that_was_ready_once_counts_as_ready() -> None:
    world, run = started(replace_command)
    name = replacement_of(world)
    while not world.claims[name].is_true("Initialized"):
        world.pass_time(world.now + SECOND)
        run.execute(run_lifecycle(world))
    status = replace(world.nodes[name].status, conditions=(Condition(type="Ready", status="False"),))
    world.nodes[name] = replace(world.nodes[name], status=status)
    assert kinds(reconcile(world)) == ["NoteDisruption", "Annotate", "Annotate"]


def run_lifecycle(world: World) -> tuple[Action, ...]:
    from karpool.execution.lifecycle import lifecycle

    return lifecycle(world.objects(), world.now, SETTINGS).actions


def test_a_taint_that_somebody_took_off_is_put_on_again_before_anything_is_deleted() -> None:
    world, _ = started(delete_command)
    world.apply(RemoveTaint("a", ExecutionSettings().taint))
    assert kinds(reconcile(world)) == ["AddTaint"]


def test_a_node_that_could_not_be_drained_now_is_not_deleted() -> None:
    world, _ = started(delete_command)
    budget = world.pdbs["default/web"]
    world.pdbs["default/web"] = replace(budget, status=replace(budget.status, disruptions_allowed=0))
    actions = reconcile(world)
    assert kinds(actions) == []
    assert events(actions) == [("a", "DisruptionBlocked")]


@pytest.mark.parametrize("allowed", [0, 1])
def test_it_is_remembered_whether_a_command_waits_for_a_budget(allowed: int) -> None:
    world, _ = started(delete_command)
    budget = world.pdbs["default/web"]
    world.pdbs["default/web"] = replace(budget, status=replace(budget.status, disruptions_allowed=allowed))
    assert advanced(world.objects(), ExecutionState(), world.now)[0].blocked_by_pdb is (allowed == 0)


def test_a_pod_that_must_not_be_disturbed_holds_a_command_until_its_time_is_over() -> None:
    world, _ = started(delete_command)
    protected = pod("web-a1", node="a", started=START, annotations={"karpenter.sh/do-not-disrupt": "1m"})
    world.pods[protected.key] = replace(protected, status=replace(protected.status, start_time=START - 10 * SECOND))
    state, actions = advanced(world.objects(), ExecutionState(), world.now)
    assert kinds(actions) == []
    assert state.requeue_at == START + 50 * SECOND


# -- roll-back ---------------------------------------------------------------------------------------------------------


def test_a_missing_replacement_is_waited_for_a_moment_and_then_given_up() -> None:
    world, _ = started(replace_command)
    del world.claims[replacement_of(world)]
    state, actions = advanced(world.objects(), ExecutionState(), world.now)
    assert (kinds(actions), state.requeue_at) == ([], START + 5 * SECOND)
    world.pass_time(START + 5 * SECOND)
    _, actions = advanced(world.objects(), state, world.now)
    assert kinds(actions) == [
        *["Annotate"] * 2,
        *["RemoveTaint", "ClearClaimCondition"] * 2,
        *["Annotate"] * 2,
        "NoteDisruption",
    ]
    world.execute(actions)
    assert leftovers(world) == []


def test_a_roll_back_deletes_the_replacement_before_it_forgets_the_command() -> None:
    world, _ = started(replace_command, launches=False)
    name = replacement_of(world)
    world.pass_time(START + timedelta(minutes=11))
    *remember, delete, told, told_too = reconcile(world)
    assert [(action.name, action.key) for action in remember if isinstance(action, Annotate)] == [
        ("a", FAILED_COMMAND),
        ("b", FAILED_COMMAND),
    ]
    assert delete == DeleteClaim(name, f"claim-{name}")
    assert events((told, told_too)) == [("a", "DisruptionRolledBack"), ("b", "DisruptionRolledBack")]
    assert kinds(reconcile(world)) == ["Annotate", "Annotate", "DeleteClaim"]
    world.execute(reconcile(world))
    assert kinds(reconcile(world))[:1] == ["RemoveTaint"]


def test_a_replacement_that_pods_use_survives_a_roll_back() -> None:
    world, run = started(replace_command)
    name = replacement_of(world)
    run.state = nominate(ExecutionState(), [name], START + timedelta(minutes=11), SETTINGS)
    world.pass_time(START + timedelta(minutes=11))
    run.reconcile()
    assert world.claims[name].metadata.deletion_timestamp is None
    assert REPLACES not in world.claims[name].metadata.annotations


@pytest.mark.parametrize(("minutes", "ended"), [(9, False), (11, True)])
def test_a_command_has_ten_minutes(minutes: int, *, ended: bool) -> None:
    world, _ = started(replace_command, launches=False)
    world.pass_time(START + timedelta(minutes=minutes))
    assert ("DeleteClaim" in kinds(reconcile(world))) is ended


def test_many_candidates_have_more_time() -> None:
    world, _ = started(replace_command, launches=False)
    world.pass_time(START + timedelta(minutes=11))
    slow = ExecutionSettings(timeout_per_node=timedelta(minutes=6))
    assert kinds(reconcile(world, settings=slow)) == []


def test_a_pod_that_slipped_in_takes_the_command_back() -> None:
    world, _ = started(delete_command)
    world.pods["default/late-1"] = pod("late-1", node="a", created=START + SECOND)
    world.pass_time(START + 2 * SECOND)
    assert kinds(reconcile(world)) == [
        *["Annotate"] * 2,
        *["RemoveTaint", "ClearClaimCondition"] * 2,
        *["Annotate"] * 2,
        "NoteDisruption",
    ]


def test_after_the_point_of_no_return_time_takes_no_command_back() -> None:
    world, run = started(delete_command)
    run.reconcile()
    world.pass_time(START + timedelta(hours=2))
    assert kinds(reconcile(world)) == ["DeleteClaim", "DeleteClaim", "NoteDisruption"]


def test_after_the_point_of_no_return_a_pod_saves_the_node_that_it_came_to_and_no_other() -> None:
    world, run = started(delete_command)
    run.reconcile()
    world.pods["default/late-1"] = pod("late-1", node="a", created=START + SECOND)
    actions = reconcile(world)
    assert kinds(actions) == ["Annotate", "RemoveTaint", "ClearClaimCondition", "Annotate", "DeleteClaim"]
    assert DeleteClaim("b", "claim-b") in actions
    world.execute(actions)
    run.until_quiet()
    assert leftovers(world) == []
    assert sorted(world.claims) == ["a", "c"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_candidate_that_somebody_else_deletes_does_not_stop_the_others(first: str) -> None:
    world, run = started(replace_command)
    world.apply(DeleteClaim(first, f"claim-{first}"))
    run.until_quiet()
    assert leftovers(world) == []
    assert sorted(world.claims) == ["c", replacement_of(world)]


def test_an_empty_node_stays_empty_until_it_goes() -> None:
    world = small_world()
    run = Run(world)
    run.start(Command(Method.EMPTINESS, Cause.EMPTY, ("c",)))
    run.until_quiet()
    assert sorted(world.nodes) == ["a", "b"]


# -- left-overs --------------------------------------------------------------------------------------------------------


def test_marks_without_a_command_are_removed() -> None:
    world = small_world()
    world.apply(AddTaint("a", ExecutionSettings().taint))
    world.apply(SetClaimCondition("a", "DisruptionReason", "True", "Empty"))
    world.apply(Annotate("NodeClaim", "b", COMMAND, "not json"))
    world.apply(Annotate("NodeClaim", "c", REPLACES, "long-gone"))
    assert set(reconcile(world)) == {
        RemoveTaint("a", ExecutionSettings().taint),
        ClearClaimCondition("a", "DisruptionReason"),
        Annotate("NodeClaim", "b", COMMAND, None),
        Annotate("NodeClaim", "c", REPLACES, None),
    }
    world.execute(reconcile(world))
    assert reconcile(world) == ()


# -- who is busy -------------------------------------------------------------------------------------------------------


def test_destinations_are_nominated_for_twenty_seconds() -> None:
    world = small_world()
    state = nominate(ExecutionState(), destinations(delete_command(world)), START, SETTINGS)
    assert nominated(state, world.claims.get, START + 19 * SECOND) == {"c"}
    assert nominated(state, world.claims.get, START + 20 * SECOND) == frozenset()


def test_pods_of_nodes_in_a_command_need_room_elsewhere() -> None:
    world, _ = started(delete_command)
    assert leaving_nodes(world.objects()) == {"a", "b"}
    pdbs = PdbLimits(world.objects().pod_disruption_budgets)
    assert moving_pods(world.objects(), START, pdbs) == {f"default/web-{at}" for at in ("a1", "a2", "b1", "b2")}
