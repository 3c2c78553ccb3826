"""Runs a world under execution until nothing is left to do, and looks at what is left over."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace as replaced
from datetime import datetime, timedelta

from msgspec.structs import replace
from tests.execution.world import START, World
from tests.factories import claim_for, node, node_pool, pdb, pod

from karpool.cluster.daemons import daemons
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.execution.actions import Action, RecordEvent
from karpool.execution.advance import advance
from karpool.execution.conditions import DISRUPTION_REASON
from karpool.execution.fresh_facts import FreshNode
from karpool.execution.lifecycle import lifecycle
from karpool.execution.settings import ExecutionSettings
from karpool.execution.start import start_command
from karpool.execution.state import ExecutionState
from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model.labels import DISRUPTED_TAINT
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.requirements import Requirements
from karpool.model.workloads import BudgetStatus, PodDisruptionBudget
from karpool.wire.objects import condition

Crash = Callable[[int], bool]
SETTINGS = ExecutionSettings()
_NEW = Replacement("default", Requirements(), ("m6i.xlarge",), "on-demand", (), 0.1)


def never(_: int) -> bool:
    return False


def start(world: World, command: Command, settings: ExecutionSettings = SETTINGS) -> tuple[Action, ...]:
    """The actions that start a command, with the daemons that the world shows."""
    objects = world.objects()
    return start_command(command, objects, world.now, settings, daemons(objects.daemon_sets, objects.pods))


def advanced(
    objects: Objects, state: ExecutionState, now: datetime, settings: ExecutionSettings = SETTINGS
) -> tuple[ExecutionState, tuple[Action, ...]]:
    """`advance` on all objects of a cluster, which have just been read."""
    on_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for each in objects.pods:
        on_node[each.spec.node_name].append(each)
    pdbs = PdbLimits(objects.pod_disruption_budgets)
    facts = {node.name: FreshNode(node, tuple(on_node[node.name])) for node in objects.nodes}
    return advance(
        objects,
        state,
        now,
        settings=settings,
        pods_on=on_node.__getitem__,
        pdbs=pdbs,
        everywhere=lambda: objects.pods,
        facts=facts,
    )


class Run:
    """A controller at work on a world. It crashes before every action for which `crash` says so."""

    def __init__(self, world: World, *, crash: Crash = never, forgetful: bool = False, fail: Crash = never) -> None:
        self.world = world
        self.fail = fail
        self.crash = crash
        self.forgetful = forgetful
        self.state = ExecutionState()
        self.count = 0
        self.least_healthy = {key: world.healthy(budget) for key, budget in world.pdbs.items()}

    def execute(self, actions: tuple[Action, ...], *, starting: bool = False) -> bool:
        """Whether all was carried out; a crash loses the rest of the batch and all memory."""
        for action in actions:
            self.count += 1
            if self.crash(self.count):
                self.state = ExecutionState()
                return False
            if self.fail(self.count):
                if starting:
                    return False
                continue
            self.world.apply(action)
            for key, budget in self.world.pdbs.items():
                self.least_healthy[key] = min(self.least_healthy[key], self.world.healthy(budget))
        return True

    def start(self, command: Command) -> None:
        self.execute(start(self.world, command), starting=True)

    def reconcile(self) -> tuple[bool, datetime | None]:
        """One look: whether something was to be done, and when to look again."""
        state = ExecutionState() if self.forgetful else self.state
        self.state, actions = advanced(self.world.objects(), state, self.world.now)
        if not self.execute(actions):
            return True, None
        lived = lifecycle(self.world.objects(), self.world.now, SETTINGS)
        finished = self.execute(lived.actions)
        moments = [
            when for when in (self.state.requeue_at, lived.requeue_at, self.world.next_event) if when is not None
        ]
        acted = any(not isinstance(action, RecordEvent) for action in (*actions, *lived.actions))
        return acted or not finished, min(moments, default=None)

    def until_quiet(self, most: timedelta = timedelta(hours=3)) -> None:
        """Go on until nothing is to be done and nothing is to come."""
        for _ in range(20_000):
            acted, next_run = self.reconcile()
            if acted:
                # Actions may have brought what the next stage waits for; a clock that moves makes time-outs real.
                self.world.pass_time(self.world.now + timedelta(milliseconds=50))
            elif next_run is None or next_run > START + most:
                return
            else:
                self.world.pass_time(next_run)
        message = "the run does not come to rest"
        raise AssertionError(message)


def leftovers(world: World) -> list[str]:
    """Every mark of a command that is still on some object."""
    marks = [f"taint on {n.name}" for n in world.nodes.values() if any(t.key == DISRUPTED_TAINT for t in n.spec.taints)]
    for claim in world.claims.values():
        marks += [f"{key} on {claim.name}" for key in (COMMAND, REPLACES) if key in claim.metadata.annotations]
        if condition(claim.status.conditions, DISRUPTION_REASON) is not None:
            marks.append(f"condition on {claim.name}")
        if claim.metadata.deletion_timestamp is not None:
            marks.append(f"{claim.name} is still being deleted")
    return marks


def budget_of(least: int) -> PodDisruptionBudget:
    """A budget over the pods of `web` of which `least` must stay."""
    made = pdb("web", {"app": "web"}, min_available=least)
    return replace(made, status=BudgetStatus(desired_healthy=least))


def small_world(*, launches: bool = True) -> World:
    """Three nodes; two of them hold two pods each of one budget that lets one go at a time, and a daemon."""
    nodes = [node(name) for name in ("a", "b", "c")]
    web = [pod(f"web-{at}{number}", node=at, created=START - timedelta(hours=1)) for at in "ab" for number in (1, 2)]
    for each in web:
        assert each.metadata.labels == {"app": "web"}
    agents = [pod(f"agent-{at}", node=at, owner="DaemonSet", created=START - timedelta(hours=1)) for at in "abc"]
    return World(
        Objects(
            pods=(*web, *agents),
            nodes=tuple(nodes),
            node_claims=tuple(claim_for(n) for n in nodes),
            node_pools=(node_pool(),),
            pod_disruption_budgets=(budget_of(3),),
        ),
        launches=launches,
    )


def delete_command(world: World) -> Command:
    return Command(Method.MULTI_NODE, Cause.UNDERUTILIZED, ("a", "b"), moves=_moves(world, "c"))


def replace_command(world: World) -> Command:
    return Command(
        Method.MULTI_NODE, Cause.UNDERUTILIZED, ("a", "b"), replacements=(_NEW,), moves=_moves(world, target=0)
    )


def split_command(world: World) -> Command:
    """Two nodes with two pods each become three new ones."""
    moves = [move for target, name in enumerate("ab") for move in _moves(world, target, name)]
    spread_out = (*moves[:-1], replaced(moves[-1], target=2))
    return Command(Method.MULTI_NODE, Cause.UNDERUTILIZED, ("a", "b"), replacements=(_NEW,) * 3, moves=spread_out)


def _moves(world: World, target: str | int, leaving: str = "ab") -> tuple[Move, ...]:
    moving = [p for p in world.pods.values() if p.spec.node_name in leaving and not p.is_daemon]
    return tuple(Move(p.key, p.spec.node_name, target) for p in moving)
