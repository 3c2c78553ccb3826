"""The one function that decides: a snapshot, policies, the time and a memo in; commands, reasons and a memo out.

It reads no clock, does no I/O and leaves the snapshot as it was. `karpool plan` runs the same methods step by step on
a snapshot of its own. A global search takes long: it is only asked for here, and its answer comes with a later memo.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from karpool.disruption.brakes.stop import NO_STOPS, Stops
from karpool.disruption.command import Command, Method
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass, DisruptionMethod
from karpool.disruption.fleet_search.bounded_problem import bounded_problem
from karpool.disruption.fleet_search.fleet import fleet_of
from karpool.disruption.fleet_search.living_search import LivingSearch, TargetEnd
from karpool.disruption.fleet_search.target import SearchRequest
from karpool.disruption.memo import Memo
from karpool.disruption.methods.drift import drift, static_drift
from karpool.disruption.methods.emptiness import emptiness
from karpool.disruption.methods.multi_node import multi_node
from karpool.disruption.methods.single_node import single_node
from karpool.disruption.policies import Verdict
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.repair.method import repair
from karpool.disruption.revalidate import revalidate
from karpool.disruption.settings import GLOBAL
from karpool.disruption.stay_reasons import why_it_stays
from karpool.model.reasons import Reason
from karpool.optimization.problem import FleetProblem
from karpool.packing.engine import Engine

METHODS: Final[tuple[DisruptionMethod, ...]] = (repair, emptiness, static_drift, drift, multi_node, single_node)
"""In the order in which they get their chance."""
UNAVOIDABLE: Final[tuple[DisruptionMethod, ...]] = METHODS[: METHODS.index(multi_node)]
"""Those that come before anything is consolidated."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one pass decided."""

    commands: tuple[Command, ...]
    reasons: Mapping[str, tuple[Reason, ...]]
    """Why each node stays that no command removes; empty unless it was asked for."""
    eligible: int
    """How many nodes may be disrupted at all; counted only with the reasons."""
    next_opening: datetime | None
    """When the next node whose window is closed may take part."""
    memo: Memo
    """To be passed to the next call."""
    problem: FleetProblem | None = None
    """What a lower bound of the price can be worked out from; None unless it was asked for."""
    search: SearchRequest | None = None
    """A search that is wanted, if it has not been asked for before; its answer goes to `Memo.living_search`."""
    ended: tuple[TargetEnd, ...] = ()
    """Targets of earlier searches that are not followed any more."""
    stops: Stops = NO_STOPS
    """What brakes held in this pass."""
    verdicts: tuple[Verdict, ...] = ()
    """What pools said of moves of consolidation: of the commands, and of moves that Balanced pools rejected."""


def _never(_commands: Sequence[Command]) -> bool:
    return False


def decide(
    engine: Engine,
    policies: Policies,
    now: datetime,
    memo: Memo | None = None,
    *,
    explain: Callable[[Sequence[Command]], bool] = _never,
    bound: Callable[[Sequence[Command]], bool] = _never,
) -> Decision:
    """What to do now.

    `explain` tells, once the commands are known, whether reasons are wanted, which take longer; `bound`, whether the
    problem of a lower bound is.
    """
    with DecisionContext(engine, policies, now, memo) as context:
        context.memo.forget_refusals(context.closed)
        decision_pass = DecisionPass(context, context.memo.refusals)
        living = _living_search(context)
        asked = None if living is None else living.request
        commands = first_commands(decision_pass)
        reasons, eligible = {}, 0
        if explain(commands):
            reasons, eligible = _reasons(decision_pass, commands), len(context.eligible_rows())
        problem = bounded_problem(decision_pass, fleet_of(decision_pass)) if bound(commands) else None
        return Decision(
            commands,
            reasons,
            eligible,
            context.next_opening(),
            context.memo,
            problem,
            search=None if living is None or living.request is asked else living.request,
            ended=() if living is None else living.take_ended(),
            stops=policies.stops,
            verdicts=(*decision_pass.verdicts, *_approvals(decision_pass, commands)),
        )


def _living_search(context: DecisionContext) -> LivingSearch | None:
    """What a global search keeps from pass to pass, if there is to be one."""
    if context.settings.search == GLOBAL and context.memo.living_search is None:
        context.memo.living_search = LivingSearch()
    return context.memo.living_search


def _approvals(decision_pass: DecisionPass, commands: Sequence[Command]) -> Iterator[Verdict]:
    """What pools say of commands of consolidation."""
    context = decision_pass.context
    for command in commands:
        if command.method in (Method.MULTI_NODE, Method.SINGLE_NODE):
            rows = context.snapshot.nodes.rows
            yield from decision_pass.judged(command, context.candidates([rows[name] for name in command.nodes]))


def decide_again(
    commands: Sequence[Command], engine: Engine, policies: Policies, now: datetime, memo: Memo | None = None
) -> list[Command | Reason]:
    """Commands that were decided a moment ago, as they can be carried out now; or why they cannot."""
    with DecisionContext(engine, policies, now, memo) as context:
        return [revalidate(command, context) for command in commands]


def first_commands(decision_pass: DecisionPass, methods: Sequence[DisruptionMethod] = METHODS) -> tuple[Command, ...]:
    """The commands of the first method that has any."""
    for method in methods:
        commands = method(decision_pass)
        if commands:
            return commands
    return ()


def _reasons(decision_pass: DecisionPass, commands: Sequence[Command]) -> dict[str, tuple[Reason, ...]]:
    context, removed = decision_pass.context, {name for command in commands for name in command.nodes}
    staying = [context.candidate(row) for name, row in context.snapshot.nodes.rows.items() if name not in removed]
    return {candidate.name: why_it_stays(decision_pass, candidate) for candidate in staying}
