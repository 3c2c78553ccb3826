"""A whole plan: one step after the other, each on the cluster that the step before leaves."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.cluster.resources import CPU, MEMORY
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.command import Cause, Command
from karpool.disruption.methods import Pass
from karpool.disruption.predict import apply
from karpool.disruption.recall import Recall
from karpool.disruption.settings import Settings
from karpool.disruption.situation import Situation, Standing
from karpool.disruption.why import why_it_stays, why_unschedulable
from karpool.model.objects import Objects
from karpool.model.quantity import Quantity
from karpool.model.reasons import Reason
from karpool.packing.engine import Engine
from karpool.packing.question import Options

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a plan, numbered from one, with the names its replacements are given."""

    number: int
    command: Command
    replacement_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """A cluster in numbers; the price is that of the nodes whose price is known."""

    nodes: int
    pods: int
    price: float
    unpriced: int


@dataclass(frozen=True, slots=True)
class Fate:
    """What a plan does with one of today's nodes: the step that removes it, or why it stays."""

    standing: Standing
    pods: int
    requested: dict[str, Quantity]
    step: Step | None
    reasons: tuple[Reason, ...]

    @property
    def utilisation(self) -> dict[str, float]:
        """The share of the node's CPU and memory that its pods request."""
        room = self.standing.state.allocatable
        return {
            name: asked.nano / room[name].nano
            for name, asked in self.requested.items()
            if name in room and room[name].nano
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a plan says."""

    time: datetime
    before: Totals
    after: Totals
    steps: tuple[Step, ...]
    fates: tuple[Fate, ...]
    unschedulable: tuple[tuple[str, Reason], ...]


def situation_of(
    objects: Objects, catalog: Catalog, *, now: datetime, settings: Settings, options: Options
) -> Situation:
    """A situation built from objects, with an engine of its own."""
    snapshot = Snapshot(objects, preferences=options.preferences)
    return Situation(snapshot, catalog, Engine(snapshot, catalog, options), now=now, settings=settings)


class Planner:
    """Plans on a situation that it owns and changes."""

    def __init__(self, situation: Situation, progress: Progress | None = None, *, recall: Recall | None = None) -> None:
        self.situation = situation
        self.recall = recall or Recall()
        self.steps: list[Step] = []
        self._say = progress or (lambda _what, _done, _all: None)
        self._names = set(situation.snapshot.nodes.rows)
        self._named = 0

    def plan(self, most_steps: int | None = None) -> Plan:
        """Go on until nothing more is to be done, or until so many steps are planned."""
        situation = self.situation
        before = self._totals()
        today = [situation.standing(row) for row in situation.rows()]
        pods_today = self._pods_today()
        requested = {one.name: self._requested(one.row) for one in today}
        unschedulable = why_unschedulable(situation)
        while most_steps is None or len(self.steps) < most_steps:
            commands = self._pass().decide()
            if not commands:
                break
            for command in commands[: None if most_steps is None else most_steps - len(self.steps)]:
                self._take(command)
        removed = {name: step for step in self.steps for name in step.command.nodes}
        last = self._pass()
        if most_steps is None or len(self.steps) < most_steps:
            last.decide()
        fates = []
        for done, one in enumerate(today):
            self._say("Asking why nodes stay", done, len(today))
            step = removed.get(one.name)
            if step is not None:
                how = situation.drift(one) if step.command.cause is Cause.DRIFTED else None
                reasons: tuple[Reason, ...] = (_why_it_goes(step, one.name), *([how.reason] if how else []))
            else:
                reasons = why_it_stays(last, situation.standing(self._row(one.name)))
            fates.append(Fate(one, pods_today[one.name], requested[one.name], step, reasons))
        return Plan(
            time=situation.now,
            before=before,
            after=self._totals(),
            steps=tuple(self.steps),
            fates=tuple(fates),
            unschedulable=unschedulable,
        )

    def _pass(self) -> Pass:
        step = len(self.steps) + 1
        return Pass(self.situation, self.recall, lambda done, most: self._say(f"Looking for step {step}", done, most))

    def _row(self, name: str) -> int:
        return self.situation.snapshot.nodes.rows[name]

    def _take(self, command: Command) -> None:
        named = tuple(self._new_name() for _ in command.replacements)
        step = Step(len(self.steps) + 1, command, named)
        self.steps.append(step)
        change = apply(self.situation, command, named)
        self.recall.forget(self.situation, change)
        self._say("Planning steps", len(self.steps), None)

    def _new_name(self) -> str:
        """A name that neither a node of today nor another new one has."""
        while (name := f"new-{self._named + 1}") in self._names:
            self._named += 1
        self._names.add(name)
        return name

    def _pods_today(self) -> Counter[str]:
        """How many unfinished pods are bound to each node, DaemonSets' aside; those that leave it are still there."""
        pods = (pod for pod in self.situation.snapshot.pods.objects if pod is not None and not pod.is_daemon)
        return Counter(pod.spec.node_name for pod in pods)

    def _pods_on(self, row: int) -> int:
        pods = (self.situation.snapshot.pods.get(at) for at in self.situation.snapshot.pods_on(row))
        return sum(not pod.is_daemon and not self.situation.expected(pod) for pod in pods)

    def _requested(self, row: int) -> dict[str, Quantity]:
        taken = self.situation.snapshot.nodes.taken[row]
        return {"cpu": Quantity(int(taken[CPU]) * 10**6), "memory": Quantity(int(taken[MEMORY]) * 10**9)}

    def _totals(self) -> Totals:
        situation = self.situation
        standings = [situation.standing(row) for row in situation.rows()]
        leaving = sum(1 for key in situation.leaving if key in situation.snapshot.pods.rows)
        return Totals(
            nodes=len(standings),
            pods=sum(self._pods_on(one.row) for one in standings) + leaving,
            price=sum(one.price or 0.0 for one in standings),
            unpriced=sum(one.price is None for one in standings),
        )


def _why_it_goes(step: Step, name: str) -> Reason:
    command = step.command
    if command.cause == "Empty":
        said = "has no pod that needs another place"
    elif command.replacements:
        types = ", ".join(replacement.instance_types[0] for replacement in command.replacements)
        said = f"is replaced by {types}"
    else:
        said = "its pods fit on nodes that stay"
    return Reason(str(command.cause), f"{said} (step {step.number})", f"Node {name}")


def plan(
    objects: Objects,
    catalog: Catalog,
    *,
    now: datetime,
    settings: Settings | None = None,
    options: Options | None = None,
    most_steps: int | None = None,
) -> Plan:
    """Plan from objects."""
    situation = situation_of(objects, catalog, now=now, settings=settings or Settings(), options=options or Options())
    return Planner(situation).plan(most_steps)
