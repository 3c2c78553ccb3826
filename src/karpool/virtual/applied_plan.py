"""A plan that is carried out on a virtual cluster, where a scheduler places the pods as it likes.

The commands are carried out one by one: replacements are launched, nodes are drained, and the scheduler binds the pods
that come back, to the emptiest node (`LeastAllocated`, as Kubernetes does) or to the fullest (`MostAllocated`). Pods
that find no room get new nodes. Nothing is consolidated on the way. What comes of it is the forecast of the plan.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec

from karpool.catalog.instance_types import Catalog
from karpool.controller.session import Session
from karpool.disruption.command import Command, Move
from karpool.disruption.plan import Plan, PlanStep
from karpool.disruption.settings import DisruptionSettings, Scoring
from karpool.execution.actions import AddTaint
from karpool.execution.start import NotStartedError, start_command
from karpool.model.labels import NODEPOOL, STEERING_TAINT
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.initial_cluster import on_machines, with_cluster
from karpool.virtual.scenario import Decisions, Policy, Scenario, ScenarioError
from karpool.wire.duration import NEVER
from karpool.wire.objects import condition

SchedulerName = Literal["LeastAllocated", "MostAllocated"]
_STEERING: Final = Taint(key=STEERING_TAINT, effect="PreferNoSchedule")
_SETTLING: Final = 5.0
_PATIENCE: Final = 600.0
"""Seconds after which pods that wait from the start are taken to wait for something else than room."""
_LONGEST: Final = 3 * 3600.0
"""Seconds that a command may take."""


class NotCarriedOutError(Exception):
    """A command of a plan does not start, or does not come to its end."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a plan comes to once a scheduler chooses places; where that is not known, why."""

    scheduler: SchedulerName
    price: float | None = None
    """$/h of the nodes whose price is known, as the plan counts them."""
    evictions: int | None = None
    launches: int | None = None
    unknown: str = ""


def forecast(
    plan: Plan,
    objects: Objects,
    catalog: Catalog,
    settings: DisruptionSettings,
    *,
    ignore_dra_requests: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Carry a plan out; `objects` and `settings` are those it was made with."""
    scheduler = scheduler_of(settings)
    priced = plan.before.nodes > plan.before.unpriced
    if not plan.steps:
        return Forecast(scheduler, plan.before.price if priced else None, 0, 0)
    group = _group_of(plan, objects)
    if group:
        return Forecast(scheduler, unknown=f"the plan changes node group {group}, which Karpool does not do by itself")
    try:
        run = AppliedPlan(
            _planned_for(plan, objects, settings),
            catalog,
            scheduler,
            steers=settings.scheduler is not Scoring.ANY,
            ignore_dra_requests=ignore_dra_requests,
        )
        before = run.price
        run.apply(plan, progress)
    except (NotCarriedOutError, NotStartedError, ScenarioError) as why:
        return Forecast(scheduler, unknown=str(why))
    # The difference: of nodes that no virtual cluster has, such as those of Fargate, the plan knows the price.
    price = plan.before.price + run.price - before if priced else None
    return Forecast(scheduler, price, run.evictions, run.launches)


def scheduler_of(settings: DisruptionSettings) -> SchedulerName:
    """The scheduler that a plan foresees, else the one that most clusters have."""
    return "MostAllocated" if settings.scheduler is Scoring.MOST_ALLOCATED else "LeastAllocated"


def _group_of(plan: Plan, objects: Objects) -> str:
    """A node group that a plan changes; empty if there is none."""
    groups = {pool.name for pool in objects.node_pools if isinstance(pool, NodeGroup)}
    for outcome in plan.fates:
        if outcome.step is not None and outcome.candidate.state.group:
            return outcome.candidate.state.pool
    launched = (new.pool for step in plan.steps for new in step.command.replacements)
    return next((pool for pool in launched if pool in groups), "")


def _planned_for(plan: Plan, objects: Objects, settings: DisruptionSettings) -> Objects:
    """The cluster as a plan has it: nothing expires, and nothing is launched for pods that wait today."""
    waiting = {key for key, _ in plan.unschedulable}
    left, _ = on_machines(objects)
    return msgspec.structs.replace(
        left,
        pods=tuple(pod for pod in left.pods if pod.key not in waiting),
        node_pools=tuple(pool for pool in left.node_pools if not isinstance(pool, NodeGroup)),
        node_claims=tuple(map(_unexpiring, left.node_claims)),
        capacity_buffers=left.capacity_buffers if settings.capacity_buffers else (),
    )


def _unexpiring(claim: NodeClaim) -> NodeClaim:
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, expire_after=NEVER))


class AppliedPlan:
    """A virtual cluster on which the commands of a plan are carried out.

    `steers`: nodes that go in later steps ask pods to stay away, as they do where a scheduler is foreseen.
    """

    def __init__(
        self,
        world: Objects,
        catalog: Catalog,
        scheduler: SchedulerName,
        *,
        steers: bool,
        ignore_dra_requests: bool = True,
    ) -> None:
        scenario = with_cluster(Scenario(scheduler=scheduler), world)
        policy = Policy(
            disruption=False, node_groups=False, decisions=Decisions(ignore_dra_requests=ignore_dra_requests)
        )
        self.cluster = VirtualCluster(scenario, catalog, policy=policy, initial=world)
        self.steers = steers
        self._names: dict[str, str] = {}
        self._stuck: frozenset[str] = frozenset()
        claims = self.cluster.store.claims
        self._leaving = frozenset(claim.status.node_name for claim in claims if claim.metadata.deletion_timestamp)
        self._begin()

    @property
    def price(self) -> float:
        """$/h of all machines that run and whose price is known, without those that were leaving before."""
        machines = self.cluster.cloud.instances.items()
        return sum(machine.price or 0.0 for name, machine in machines if name not in self._leaving)

    @property
    def evictions(self) -> int:
        """How many pods were evicted since the plan began."""
        return self.cluster.recorder.summary().evictions or 0

    @property
    def launches(self) -> int:
        """How many nodes were launched since the plan began."""
        return self.cluster.recorder.summary().nodes_launched

    @property
    def waiting(self) -> list[str]:
        """Pods that do not run, besides those that did not before the plan began."""
        pods = (pod for pod in self.cluster.store.pods if not pod.terminal)
        return [pod.key for pod in pods if not (pod.bound and _ready(pod)) and pod.key not in self._stuck]

    def apply(self, plan: Plan, progress: Callable[[int, int], None] | None = None) -> None:
        """Carry out all commands."""
        for step in plan.steps:
            if progress is not None:
                progress(step.number - 1, len(plan.steps))
            if self.steers:
                self._steer({name for later in plan.steps[step.number :] for name in later.command.nodes})
            self._start(step)

    def _begin(self) -> None:
        """Let everything start and end that does so by itself; what is counted begins then."""
        queue = self.cluster.queue
        limit = queue.time + _PATIENCE
        self.cluster.run(queue.time + _SETTLING)
        machines = self.cluster.cloud.instances
        while (self.waiting or any(name in machines for name in self._leaving)) and queue.time < limit:
            self.cluster.run(queue.time + _SETTLING)
        self._stuck = frozenset(self.waiting)
        self.cluster.recorder.begin()

    @property
    def _session(self) -> Session:
        session = self.cluster.controller.session
        if session is None:
            raise NotCarriedOutError("the controller does not run")
        return session

    def _steer(self, later: set[str]) -> None:
        """Ask pods to stay away from nodes that go in later steps."""
        leaving = {self._names.get(name, name) for name in later}
        nodes = {node.name for node in self.cluster.store.nodes if node.name in leaving}
        self._session.execute([AddTaint(name, _STEERING) for name in sorted(nodes)], in_order=True)

    def _start(self, step: PlanStep) -> None:
        session, store = self._session, self.cluster.store
        before = {claim.name for claim in store.claims}
        command = self._as_it_is(step.command)
        objects = self._around(command)
        now, daemons = self.cluster.now, session.cluster_state.snapshot.daemons
        session.execute(start_command(command, objects, now, session.execution, daemons), in_order=True)
        created = [claim.name for claim in store.claims if claim.name not in before]
        pools = {new.pool for new in command.refills}
        self._settle(step, () if command.reboot else command.nodes, lambda: len(self._came(before, pools)))
        nodes = {claim.name: claim.status.node_name for claim in store.claims}
        created = created or self._came(before, pools)
        for planned_name, claim in zip(step.replacement_names, created, strict=False):
            self._names[planned_name] = nodes.get(claim, "")

    def _as_it_is(self, command: Command) -> Command:
        """The command with today's names, and with the pods that the scheduler has put on its nodes."""
        nodes = tuple(self._names.get(name, name) for name in command.nodes)
        moves = tuple(Move(pod.key, name, "") for name in nodes for pod in self._pods_on(name) if pod.reschedulable)
        return replace(command, nodes=nodes, moves=moves)

    def _pods_on(self, node: str) -> Iterator[Pod]:
        return (pod for pod in self.cluster.store.pods if pod.spec.node_name == node)

    def _around(self, command: Command) -> Objects:
        everything = self.cluster.store.but_pods()
        pods = tuple(pod for name in command.nodes for pod in self._pods_on(name))
        return msgspec.structs.replace(everything, pods=pods)

    def _came(self, before: set[str], pools: set[str]) -> list[str]:
        """The new NodeClaims of pools that have a node."""
        new = (claim for claim in self.cluster.store.claims if claim.name not in before and claim.status.node_name)
        return [claim.name for claim in new if claim.metadata.labels.get(NODEPOOL) in pools]

    def _settle(self, step: PlanStep, leaving: tuple[str, ...], came: Callable[[], int]) -> None:
        """Run until nodes and their machines are gone, their pools have launched others, and every pod runs."""
        queue, wanted = self.cluster.queue, len(step.command.refills)
        limit = queue.time + _LONGEST
        self.cluster.run(queue.time + _SETTLING)
        while self._left(leaving) or self.waiting or came() < wanted:
            if queue.time > limit:
                raise NotCarriedOutError(f"step {step.number} does not end: {self._hindrance(leaving)}")
            self.cluster.run(queue.time + _SETTLING)

    def _left(self, leaving: tuple[str, ...]) -> list[str]:
        """Nodes that are to go and are still there, or whose machine is."""
        nodes, machines = self.cluster.store.nodes, self.cluster.cloud.instances
        return [name for name in leaving if name in nodes or name in machines]

    def _hindrance(self, leaving: tuple[str, ...]) -> str:
        """What keeps a step from its end."""
        left, waiting = self._left(leaving), self.waiting
        if left:
            return f"node {left[0]} does not go"
        return f"pod {waiting[0]} does not run" if waiting else "no node comes in the place of the one that went first"


def _ready(pod: Pod) -> bool:
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"
