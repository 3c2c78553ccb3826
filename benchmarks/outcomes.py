"""What a plan comes to, in numbers that can be added up, and how far it could have come."""

import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Final

from clusters import NOW

from karpool.catalog.instance_types import Catalog
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.bounded_problem import bounded_problem
from karpool.disruption.fleet_search.fleet import fleet_of
from karpool.disruption.plan import Plan, context_of, plan
from karpool.disruption.settings import DisruptionSettings
from karpool.model.objects import Objects
from karpool.optimization.bound import lower_bound
from karpool.optimization.problem import FleetProblem
from karpool.packing.options import Options

BRANCHES: Final = 5000
"""How far whole machines are looked at for the best bound: longer than a plan takes time for."""


@dataclass(frozen=True)
class Outcome:
    """A plan, or several together: $/h before and after, pods that move, commands, nodes left, processor time."""

    before: float = 0.0
    after: float = 0.0
    evictions: int = 0
    commands: int = 0
    nodes: int = 0
    seconds: float = 0.0

    @classmethod
    def sum(cls, outcomes: Iterable["Outcome"]) -> "Outcome":
        """Several plans as one."""
        return cls(*map(sum, zip(*map(astuple, outcomes), strict=True)))

    @property
    def saved(self) -> float:
        """$/h."""
        return self.before - self.after

    @property
    def saved_per_eviction(self) -> float:
        """$/h for each pod that moves; infinite if none does."""
        return self.saved / self.evictions if self.evictions else float("inf")


def evictions(made: Plan) -> int:
    """How many running pods a plan moves."""
    return sum(move.source is not None for step in made.steps for move in step.command.moves)


def planned(world: Objects, machines: Catalog, settings: DisruptionSettings) -> Plan:
    """Plan a generated cluster to the end."""
    return plan(world, machines, now=NOW, settings=settings)


def outcome_of(world: Objects, machines: Catalog, settings: DisruptionSettings) -> Outcome:
    """Plan a cluster to the end, and count."""
    start = time.process_time()
    made = planned(world, machines, settings)
    seconds = time.process_time() - start
    return Outcome(made.before.price, made.after.price, evictions(made), len(made.steps), made.after.nodes, seconds)


@dataclass(frozen=True)
class Bounds:
    """$/h that no plan can beat: of a linear programme, and the best that is proven."""

    linear: float
    best: float


def problem_of(world: Objects, machines: Catalog) -> FleetProblem:
    """A generated cluster as the fleet problem of a bound."""
    context = context_of(
        world, machines, now=NOW, settings=DisruptionSettings(complete_catalog=True), options=Options()
    )
    decision_pass = DecisionPass(context)
    return bounded_problem(decision_pass, fleet_of(decision_pass))


def linear_bound_of(world: Objects, machines: Catalog) -> float:
    """The bound of the linear programme."""
    return lower_bound(problem_of(world, machines), branches=0).price


def bounds_of(world: Objects, machines: Catalog) -> Bounds:
    """Both bounds of a cluster."""
    problem = problem_of(world, machines)
    linear = lower_bound(problem, branches=0).price
    return Bounds(linear, max(linear, lower_bound(problem, branches=BRANCHES).price))
