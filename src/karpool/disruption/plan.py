"""A whole plan: one step after the other, each on the cluster that the step before leaves."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Final

from karpool.catalog.instance_types import Catalog
from karpool.cluster.resources import CPU, MEMORY
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.brakes.pace import Pace
from karpool.disruption.brakes.rates import rates_left
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.brakes.stops_of import stops_of
from karpool.disruption.buffer_shares import BufferShare, buffer_shares
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.command import Cause, Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.decide import METHODS, first_commands
from karpool.disruption.decision_pass import DecisionPass, DisruptionMethod
from karpool.disruption.fleet_search.global_search import search_eviction_price
from karpool.disruption.fleet_search.plan_summary import CurvePoint, LowerBound, curve_of
from karpool.disruption.fleet_search.straight_way import has_detours, search_for_end
from karpool.disruption.policies import HAIR
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.predict import apply
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.disruption.stay_reasons import why_it_stays, why_unschedulable
from karpool.model.headroom import with_headroom
from karpool.model.objects import Objects
from karpool.model.reasons import Reason
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.wire.quantity import Quantity

Progress = Callable[[str, int, int | None], None]
_WAYS: Final = (3, 6, 12)
"""How many nodes commands have that open new ones, in each try of a plan without detours."""
_MANY: Final = 400
"""In larger clusters a try takes long, and hardly ever ends as cheap."""
_DEARER: Final = 0.001
"""How much more a plan without detours may end at."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A command of a plan, numbered from one, with the names its replacements are given."""

    number: int
    command: Command
    replacement_names: tuple[str, ...]
    begins: datetime | None = None
    """When rates let it begin at the earliest, after the steps before it; None without rates."""


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """A cluster in numbers; the price is that of the nodes whose price is known."""

    nodes: int
    pods: int
    price: float
    unpriced: int


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """What a plan does with one of today's nodes: the step that removes it, or why it stays."""

    candidate: Candidate
    pods: int
    requested: dict[str, Quantity]
    step: PlanStep | None
    reasons: tuple[Reason, ...]

    @property
    def utilisation(self) -> dict[str, float]:
        """The share of the node's CPU and memory that its pods request."""
        room = self.candidate.state.allocatable
        return {
            name: asked.nano / room[name].nano
            for name, asked in self.requested.items()
            if name in room and room[name].nano
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a plan says."""

    time: datetime
    before: ClusterTotals
    after: ClusterTotals
    steps: tuple[PlanStep, ...]
    fates: tuple[NodeOutcome, ...]
    unschedulable: tuple[tuple[str, Reason], ...]
    curve: tuple[CurvePoint, ...] = ()
    """The price before the first step and after each of them, against the evictions so far."""
    stops: tuple[Stop, ...] = ()
    """What brakes hold: everything, or whole pools."""
    buffers: tuple[BufferShare, ...] = ()
    """The room that CapacityBuffers have after the last step."""
    displaced: tuple[str, ...] = ()
    """Pods that wait for a node at the end, because what came in the place of theirs does not hold them."""
    lower_bound: LowerBound | None = None
    """For the cluster before the first step; None if nobody asked."""


def context_of(
    objects: Objects, catalog: Catalog, *, now: datetime, settings: DisruptionSettings, options: Options
) -> DecisionContext:
    """A context built from objects, on a snapshot of its own in which waiting pods have their room."""
    snapshot = Snapshot(
        with_headroom(objects) if settings.capacity_buffers else objects,
        preferences=options.preferences,
        ignore_dra_requests=options.ignore_dra_requests,
    )
    pools = {pool.name: pool for pool in objects.node_pools}
    stops = stops_of(objects, settings.brakes, now)
    rates = rates_left(objects, settings.brakes, now)
    policies = Policies(pools, PdbLimits(objects.pod_disruption_budgets), settings, stops=stops, rates=rates)
    return DecisionContext(Engine(snapshot, catalog, options), policies, now).open()


class Planner:
    """Plans in a context whose snapshot it owns and changes."""

    def __init__(
        self,
        context: DecisionContext,
        progress: Progress | None = None,
        *,
        refusals: RefusalCache | None = None,
        afresh: Callable[[], DecisionContext] | None = None,
    ) -> None:
        """`afresh` makes the same context again: with it, a plan that takes detours is tried without them."""
        self._afresh = afresh
        self.context = context
        self.refusals = refusals or RefusalCache()
        self.steps: list[PlanStep] = []
        self._say = progress or (lambda _what, _done, _all: None)
        self._bound: LowerBound | None = None
        self._pace = Pace(context.policies.rates)
        self._names = set(context.snapshot.nodes.rows)
        self._named = 0

    def plan(self, most_steps: int | None = None, *, bound: bool = False) -> Plan:
        """Go on until nothing more is to be done, or until so many steps are planned; `bound`: find the lower bound."""
        context = self.context
        before = self.totals()
        self._bound = self._lower_bound() if bound else None
        today = [context.candidate(row) for row in context.rows()]
        drifts = {node.name: context.drift(node) for node in today}
        faults = {node.candidate.name: node.diagnosis for node in self.decision_pass().repairs() if node.diagnosis}
        pods_today = self._pods_today()
        requested = {node.name: self._requested(node.row) for node in today}
        unschedulable = why_unschedulable(context)
        self.walk(most_steps)
        if most_steps is None or len(self.steps) < most_steps:
            self._straighten()
        removed = {name: step for step in self.steps for name in step.command.nodes}
        last = self.decision_pass()
        if most_steps is None or len(self.steps) < most_steps:
            first_commands(last)
        fates = []
        for done, node in enumerate(today):
            self._say("Asking why nodes stay", done, len(today))
            step = removed.get(node.name)
            if step is not None:
                reasons: tuple[Reason, ...] = (_why_it_goes(step, node.name),)
                how, fault = drifts[node.name], faults.get(node.name)
                if how is not None and step.command.cause is Cause.DRIFTED:
                    reasons = (*reasons, how.reason)
                if fault is not None and step.command.cause is Cause.UNHEALTHY:
                    reasons = (*reasons, fault.reason(node.name, context.now))
            else:
                reasons = why_it_stays(last, self.context.candidate(self._row(node.name)))
            fates.append(NodeOutcome(node, pods_today[node.name], requested[node.name], step, reasons))
        return Plan(
            time=context.now,
            before=before,
            after=self.totals(),
            steps=tuple(self.steps),
            fates=tuple(fates),
            unschedulable=unschedulable,
            buffers=buffer_shares(self.context),
            curve=curve_of(before.price, (step.command for step in self.steps)),
            stops=tuple(stop for stop in context.policies.stops if stop.node is None),
            displaced=self._displaced(),
            lower_bound=self._bound,
        )

    def walk(
        self,
        most_steps: int | None = None,
        *,
        methods: Sequence[DisruptionMethod] = METHODS,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Take step after step, and ask nothing else; whether that went on to the end, or `stop` ended it."""
        while most_steps is None or len(self.steps) < most_steps:
            if stop():
                return False
            commands = first_commands(self.decision_pass(), methods)
            if not commands:
                break
            for command in commands[: None if most_steps is None else most_steps - len(self.steps)]:
                self.take(command)
        return True

    def _straighten(self) -> None:
        """If pods move twice, or new nodes go again: try to get to the same fleet without that, and nearly as cheap."""
        settings, nodes = self.context.settings, len(self._names)
        if self._afresh is None or settings.search != GLOBAL or not settings.effort or nodes > _MANY:
            return
        # Empty and drifted nodes come first; a search begins with the first step that consolidates.
        begin = sum(1 for _ in takewhile(lambda step: step.command.cause is not Cause.UNDERUTILIZED, self.steps))
        if not has_detours((step.command, step.replacement_names) for step in self.steps[begin:]):
            return
        most, best = self.totals().price * (1 + _DEARER), self
        for done, enough in enumerate(_WAYS):
            self._say("Looking for a way without detours", done, len(_WAYS))
            other = Planner(self._afresh())
            for step in self.steps[:begin]:
                other.take(step.command)
            other.context.memo.global_search = search_for_end(other.decision_pass(), self.context.snapshot, enough)
            other.walk()
            if other.totals().price <= most and other._cost() < best._cost() - HAIR:
                best = other
        self.context, self.refusals, self.steps = best.context, best.refusals, best.steps

    def _cost(self) -> float:
        """$/h after the last step, and what evictions and launches count for on the way there."""
        rate = search_eviction_price(self.context.settings, near=False)
        trouble = sum(len(step.command.evicted) + len(step.replacement_names) for step in self.steps)
        return self.totals().price + rate * trouble

    def _lower_bound(self) -> LowerBound | None:
        self._say("Proving the least possible price", 0, None)
        # Only here: the solver takes a while to load.
        from karpool.disruption.fleet_search.lower_bound import SolverError, bound_of

        try:
            return bound_of(self.decision_pass())
        except SolverError:  # a plan is of use without a bound, too
            return None

    def decision_pass(self) -> DecisionPass:
        """A pass over the cluster as the steps so far leave it."""
        return DecisionPass(self.context, self.refusals, self.report)

    def report(self, what: str, done: int, most: int) -> None:
        """Tell those who watch what a pass is at."""
        if not what:
            what = f"Looking for step {len(self.steps) + 1}"
        elif self._bound is not None:
            what = f"{what}, bound {self._bound.price:,.2f} $/h"
        self._say(what, done, most)

    def _row(self, name: str) -> int:
        return self.context.snapshot.nodes.rows[name]

    def take(self, command: Command) -> PlanStep:
        """Carry out a command, as the next step."""
        named = tuple(self._new_name() for _ in command.new_nodes)
        evicted = self.context.evictions([self._row(name) for name in command.nodes])
        begins = self._pace.begin(len(command.nodes), evicted)
        step = PlanStep(len(self.steps) + 1, command, named, begins)
        self.steps.append(step)
        change = apply(self.context, command, named)
        if self.context.memo.global_search is not None:
            self.context.memo.global_search.carried_out(named)
        self.refusals.forget(self.context.snapshot, change)
        self._say("Planning steps", len(self.steps), None)
        return step

    def _new_name(self) -> str:
        """A name that neither a node of today nor another new one has."""
        while (name := f"new-{self._named + 1}") in self._names:
            self._named += 1
        self._names.add(name)
        return name

    def _pods_today(self) -> Counter[str]:
        """How many unfinished pods are bound to each node, DaemonSets' aside; those that leave it are still there."""
        pods = (pod for pod in self.context.snapshot.pods.objects if pod is not None and not pod.is_daemon)
        return Counter(pod.spec.node_name for pod in pods)

    def _pods_on(self, row: int) -> int:
        pods = (self.context.snapshot.pods.get(at) for at in self.context.snapshot.pods_on(row))
        return sum(not pod.is_daemon and not self.context.expected(pod) for pod in pods)

    def _displaced(self) -> tuple[str, ...]:
        """The pods that steps displaced, and for which no room was left."""
        displaced = {key for step in self.steps for key in step.command.displaced}
        rows, lost = self.context.snapshot.pods.rows, set(self.context.unplaced)
        return tuple(sorted(key for key in displaced if rows.get(key) in lost))

    def _requested(self, row: int) -> dict[str, Quantity]:
        taken = self.context.snapshot.nodes.taken[row]
        return {"cpu": Quantity(int(taken[CPU]) * 10**6), "memory": Quantity(int(taken[MEMORY]) * 10**9)}

    def totals(self) -> ClusterTotals:
        """The cluster in numbers, as the steps so far leave it."""
        context = self.context
        candidates = [context.candidate(row) for row in context.rows()]
        leaving = sum(1 for key in context.leaving if key in context.snapshot.pods.rows)
        return ClusterTotals(
            nodes=len(candidates),
            pods=sum(self._pods_on(node.row) for node in candidates) + leaving,
            price=sum(node.price or 0.0 for node in candidates),
            unpriced=sum(node.price is None for node in candidates),
        )


def _why_it_goes(step: PlanStep, name: str) -> Reason:
    command = step.command
    if command.reboot:
        message = "is rebooted"
    elif command.terminate_first is not None:
        message = _goes_first(command)
    elif command.cause == "Empty":
        message = "has no pod that needs another place"
    elif command.replacements:
        message = f"is replaced by {command.launched}"
    else:
        message = "its pods fit on nodes that stay"
    return Reason(str(command.cause), f"{message} (step {step.number})", f"Node {name}")


def _goes_first(command: Command) -> str:
    """What is said of a node that goes before anything can replace it."""
    then = f"; then its pool launches {command.launched}" if command.refills else ""
    return f"goes before anything can replace it{then}"


def plan(
    objects: Objects,
    catalog: Catalog,
    *,
    now: datetime,
    settings: DisruptionSettings | None = None,
    options: Options | None = None,
    most_steps: int | None = None,
) -> Plan:
    """Plan from objects."""
    chosen, placing = settings or DisruptionSettings(), options or Options()

    def context() -> DecisionContext:
        return context_of(objects, catalog, now=now, settings=chosen, options=placing)

    return Planner(context(), afresh=context).plan(most_steps)
