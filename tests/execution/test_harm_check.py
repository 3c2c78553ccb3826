"""What the harm check writes on pools, when it lets go, and how a person has the last word."""

from datetime import datetime, timedelta

from msgspec.structs import replace
from tests.execution.runs import delete_command, small_world
from tests.execution.test_commands import started
from tests.execution.world import START, World
from tests.factories import node_pool, pod

from karpool.disruption.brakes.harm import Harm, HarmedPod, harm_of
from karpool.disruption.brakes.ledger import COUNTED, Blame, LedgerEntry, ledger_of
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.short_ledgers import with_entry
from karpool.execution.actions import Action, Annotate, NoteDisruption
from karpool.execution.harm_check import judge_pools
from karpool.execution.refused_evictions import refused_evictions
from karpool.model.labels import DISRUPTIONS, HARM
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod

SETTINGS = BrakeSettings()
THREE = tuple(HarmedPod("c1", f"default/web-{number}", "is Pending") for number in range(3))
AFTER = timedelta(minutes=10)


class Pool:
    """A pool on which the harm check writes."""

    def __init__(self, **rest: object) -> None:
        entry = LedgerEntry(command="c1", since=START, at=START, committed=True, nodes=1, names="a", **rest)  # type: ignore[arg-type]
        self.pool = node_pool("default")
        self._set(DISRUPTIONS, with_entry(None, "c1", entry, START))

    def _set(self, key: str, value: str | None) -> None:
        annotations = {**self.pool.metadata.annotations, key: value}
        kept = {name: text for name, text in annotations.items() if text is not None}
        self.pool = replace(self.pool, metadata=replace(self.pool.metadata, annotations=kept))

    def forgive(self) -> None:
        """What a person does: kubectl annotate nodepool default karpool.sh/harm-."""
        self._set(HARM, None)

    def check(
        self,
        harmed: tuple[HarmedPod, ...],
        now: datetime = START,
        under_way: tuple[str, ...] = (),
        settings: BrakeSettings = SETTINGS,
    ) -> int:
        """One look; how much was written."""
        actions = list(judge_pools((self.pool,), {"default": harmed}, under_way, settings, now))
        for action in actions:
            self._apply(action, now)
        return len(actions)

    def _apply(self, action: Action, now: datetime) -> None:
        match action:
            case Annotate(key=key, value=value):
                self._set(key, value)
            case NoteDisruption(command=command, entry=entry):
                text = self.pool.metadata.annotations.get(DISRUPTIONS)
                self._set(DISRUPTIONS, with_entry(text, command, entry, now))

    @property
    def harm(self) -> Harm | None:
        return harm_of(self.pool)

    @property
    def blame(self) -> list[str]:
        return [str(entry.blame) for entry in ledger_of(self.pool)]


def test_fewer_pods_than_the_threshold_stop_nothing() -> None:
    pool = Pool()
    assert pool.check(THREE[:2]) == 0
    assert pool.harm is None


def test_enough_pods_stop_the_pool_and_what_was_written_is_not_written_again() -> None:
    pool = Pool()
    pool.check(THREE)
    assert pool.harm is not None
    assert (pool.harm.pods, pool.harm.command, pool.harm.nodes) == (3, "c1", "a")
    assert pool.blame == ["blamed"]
    assert pool.check(THREE, START + AFTER) == 0
    assert pool.check(THREE[:1], START + AFTER) == 1
    assert pool.harm.pods == 1


def test_it_lets_go_when_all_pods_have_run_for_the_cool_down() -> None:
    pool = Pool()
    pool.check(THREE)
    pool.check((), START + AFTER)
    assert pool.harm is not None
    assert pool.harm.well_since == START + AFTER
    pool.check((), START + AFTER + timedelta(minutes=14))
    assert pool.harm is not None
    pool.check(THREE[:1], START + AFTER + timedelta(minutes=14))
    assert pool.harm.well_since is None
    pool.check((), START + 2 * AFTER)
    pool.check((), START + 2 * AFTER + SETTINGS.harm_cool_down)
    assert pool.harm is None
    assert pool.blame == ["forgiven"]
    assert pool.check(THREE, START + 4 * AFTER) == 0


def test_a_person_who_removes_the_annotation_is_not_contradicted() -> None:
    pool = Pool()
    pool.check(THREE)
    pool.forgive()
    pool.check(THREE)
    assert (pool.harm, pool.blame) == (None, ["forgiven"])
    assert pool.check(THREE, START + AFTER) == 0
    others = tuple(pod._replace(command="c2") for pod in THREE)
    pool.check((*THREE, *others), START + AFTER)
    assert pool.harm is not None
    assert pool.harm.commands == ("c2",)


def test_a_pool_whose_pods_never_run_goes_on_after_a_day_and_is_not_stopped_for_them_again() -> None:
    pool = Pool()
    pool.check(THREE)
    almost = START + SETTINGS.longest_harm - timedelta(minutes=1)
    pool.check(THREE, almost)
    assert pool.harm is not None
    assert pool.blame == ["blamed"]
    others = tuple(pod._replace(command="c2") for pod in THREE)
    day = START + SETTINGS.longest_harm
    pool.check((*THREE, *others), day)
    assert pool.harm is None
    assert pool.blame == ["forgiven", "forgiven"]
    pool.check((*THREE, *others), day + timedelta(minutes=1))
    assert pool.harm is None


def test_entries_go_when_neither_rates_nor_the_harm_check_need_them() -> None:
    slow = BrakeSettings(harm_after=timedelta(hours=2))
    for settings, lasts in ((SETTINGS, COUNTED), (slow, timedelta(hours=4)), (BrakeSettings(harmed_pods=0), COUNTED)):
        pool = Pool()
        assert pool.check((), START + lasts - timedelta(seconds=1), settings=settings) == 0
        assert pool.check((), START + lasts, under_way=("c1",), settings=settings) == 0
        pool.check((), START + lasts, settings=settings)
        assert ledger_of(pool.pool) == ()


def test_an_entry_that_is_blamed_stays_as_long_as_its_pool_is_stopped() -> None:
    pool = Pool()
    pool.check(THREE)
    pool.check(THREE, START + timedelta(hours=5))
    assert pool.blame == ["blamed"]
    pool.check((), START + timedelta(hours=6))
    pool.check((), START + timedelta(hours=7))
    assert (pool.harm, pool.blame) == (None, ["forgiven"])
    pool.check((), START + timedelta(hours=7, minutes=1))
    assert pool.blame == []


def test_when_the_check_is_switched_off_nothing_of_it_is_left() -> None:
    off = BrakeSettings(harmed_pods=0)
    pool = Pool()
    pool.check(THREE)
    pool.check((), START + timedelta(minutes=1), settings=off)
    assert (pool.harm, pool.blame) == (None, ["blamed"])
    pool.check((), START + COUNTED, settings=off)
    assert pool.blame == []


def test_a_harm_that_cannot_be_read_does_not_keep_old_entries() -> None:
    pool = Pool()
    pool._set(HARM, "?")
    pool.check((), START + COUNTED)
    assert pool.pool.metadata.annotations == {HARM: "?"}


def test_an_entry_of_a_command_that_never_began_is_taken_out() -> None:
    pool = Pool(blame=Blame.NONE)
    pool._apply(NoteDisruption("default", "c1", replace(ledger_of(pool.pool)[0], committed=False)), START)
    later = START + timedelta(minutes=2)
    assert pool.check((), START) == 0
    assert pool.check((), later, under_way=("c1",)) == 0
    pool.check((), later)
    assert ledger_of(pool.pool) == ()


def _unreadable() -> NodePool:
    return node_pool("default", annotations={HARM: "?", DISRUPTIONS: "?"})


def test_what_cannot_be_read_is_left_to_a_person() -> None:
    assert list(judge_pools((_unreadable(),), {"default": THREE}, (), SETTINGS, START)) == []


# -- evictions that are refused ----------------------------------------------------------------------------------------


def _draining() -> World:
    """Nodes whose deletion has begun, on a cluster that lets no pod go."""
    world, run = started(delete_command)
    for _ in range(3):
        run.reconcile()
    assert all(claim.metadata.deletion_timestamp for name, claim in world.claims.items() if name in "ab")
    return world


def refused(world: World, now: datetime) -> list[tuple[str, str, str]]:
    def on(name: str) -> list[Pod]:
        return [each for each in world.pods.values() if each.spec.node_name == name]

    found = refused_evictions(world.claims.values(), on, AFTER, now)
    return [(name, one.pod, one.why) for name, one in found]


def test_a_pod_that_nobody_may_evict_from_a_node_that_drains_is_harmed() -> None:
    world = _draining()
    world.pods = {"default/db-1": pod("db-1", node="a")}
    assert refused(world, START + timedelta(minutes=9)) == []
    assert refused(world, START + AFTER) == [
        ("default", "default/db-1", "is not let go from node a, which drains since 12:00 UTC")
    ]


def _last_event(world: World, name: str, moment: datetime) -> None:
    claim = world.claims[name]
    world.claims[name] = replace(claim, status=replace(claim.status, last_pod_event_time=moment))


def test_a_drain_that_a_budget_makes_slow_is_orderly_as_long_as_pods_leave() -> None:
    """One pod leaves every eight minutes; the others are refused meanwhile."""
    world = _draining()
    world.pods = {f"default/db-{number}": pod(f"db-{number}", node="a", grace_seconds=30) for number in range(4)}
    for minutes in (8, 16, 24):
        world.pods.popitem()
        _last_event(world, "a", START + timedelta(minutes=minutes))
        assert refused(world, START + timedelta(minutes=minutes + 8)) == []
    assert refused(world, START + timedelta(minutes=34)) == []
    assert refused(world, START + timedelta(minutes=34, seconds=30)) == [
        ("default", "default/db-0", "is not let go from node a, which no pod left since 12:24 UTC")
    ]


def test_one_node_that_is_stuck_is_found_while_others_of_its_command_drain() -> None:
    world = _draining()
    world.pods = {f"default/db-{at}": pod(f"db-{at}", node=at) for at in "ab"}
    _last_event(world, "b", START + timedelta(minutes=8))
    assert [name for _, name, _ in refused(world, START + AFTER)] == ["default/db-a"]


def test_pods_wait_for_one_that_takes_long_to_leave() -> None:
    world = _draining()
    hour = timedelta(hours=1)
    leaves = pod("db-1", node="a", deleted=START + hour)
    waits = pod("db-2", node="a", grace_seconds=3600)
    world.pods = {each.key: each for each in (leaves, waits)}
    _last_event(world, "a", START + timedelta(seconds=1))
    assert refused(world, START + timedelta(minutes=59)) == []
    del world.pods[leaves.key]
    assert refused(world, START + hour + timedelta(minutes=9)) == []
    assert len(refused(world, START + hour + timedelta(minutes=11))) == 1


def test_pods_that_leave_or_may_stay_or_whose_turn_has_not_come_are_not() -> None:
    world = _draining()
    protected = {"karpenter.sh/do-not-disrupt": "true"}
    world.pods = {
        each.key: each
        for each in (
            pod("web-1", node="a", deleted=START + AFTER),
            pod("db-1", node="b", annotations=protected),
            pod("agent-1", node="b", owner="DaemonSet", tolerations=["karpenter.sh/disrupted:NoSchedule"]),
            pod("late-1", node="b", annotations={"karpenter.sh/do-not-disrupt": "8m"}, started=START),
            pod("agent-2", node="a", owner="DaemonSet"),
        )
    }
    assert refused(world, START + AFTER) == []


def test_nodes_that_a_person_deletes_are_not_looked_at() -> None:
    world = small_world()
    world.claims["a"] = replace(
        world.claims["a"], metadata=replace(world.claims["a"].metadata, deletion_timestamp=START)
    )
    assert refused(world, START + 2 * AFTER) == []
