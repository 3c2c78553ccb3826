"""The steps of a plan taken again where something is otherwise: each is judged anew, and left out if it fails."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from karpool.disruption.command import Command, Method
from karpool.disruption.decide import UNAVOIDABLE
from karpool.disruption.methods.evaluate import directions_of
from karpool.disruption.plan import Planner, PlanStep
from karpool.disruption.policies import HAIR
from karpool.disruption.revalidate import still_there

_CONSOLIDATION = (Method.MULTI_NODE, Method.SINGLE_NODE)


@dataclass(frozen=True, slots=True)
class Checked:
    """What has become of the steps that consolidate: how many hold, how many do not, how many nobody had time for."""

    held: int = 0
    dropped: int = 0
    unchecked: int = 0


def take_again(
    planner: Planner,
    steps: Sequence[PlanStep],
    *,
    directed: bool,
    together: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Checked:
    """Take the steps of another plan that hold here; what has to be done before any consolidation comes first.

    `directed`: pods are sent where the steps moved them, as a global search wants it; else they look for places.
    `together`: a step need not be worth its evictions alone, as on the way of a global search; see `worth_it`.
    """
    planner.walk(methods=UNAVOIDABLE, stop=stop)
    ours = [step for step in steps if step.command.method in _CONSOLIDATION]
    made = {name for step in steps for name in step.replacement_names}
    names: dict[str, str] = {}
    held = 0
    for done, step in enumerate(ours):
        planner.report("Checking the steps of today's plan", done, len(ours))
        if stop():
            return Checked(held, done - held, len(ours) - done)
        if any(name in made and name not in names for name in step.command.nodes):
            continue
        command = _again(planner, _renamed(step.command, names, made), directed=directed, together=together)
        if command is None:
            continue
        taken = planner.take(command).replacement_names
        if len(taken) == len(step.replacement_names):
            names.update(zip(step.replacement_names, taken, strict=True))
        held += 1
    return Checked(held, len(ours) - held)


def worth_it(planner: Planner) -> bool:
    """Whether what was consolidated is worth all its evictions together."""
    commands = [step.command for step in planner.steps if step.command.method in _CONSOLIDATION]
    evicted = sum(len(command.evicted) for command in commands)
    price = planner.context.settings.effective_eviction_price
    return not commands or sum(command.savings for command in commands) > price * evicted - HAIR


def _again(planner: Planner, command: Command, *, directed: bool, together: bool) -> Command | None:
    """A consolidation as it would be decided now, if it would."""
    candidates, refused = still_there(command, planner.context)
    if refused:
        return None
    judge = planner.decision_pass()
    directions = directions_of(command, planner.context) if directed else None
    most = max(1, len(command.replacements))
    found = judge.evaluator.consolidate(candidates, most, directions=directions).command
    refuses = judge.unwanted if together else judge.not_worth_it
    return None if found is None or refuses(found, candidates) is not None else found


def _renamed(command: Command, names: Mapping[str, str], made: set[str]) -> Command:
    """A command with the names that new nodes have here; moves to new nodes that are not here are left out."""
    moves = tuple(
        move if isinstance(move.target, int) else replace(move, target=names.get(move.target, move.target))
        for move in command.moves
        if isinstance(move.target, int) or move.target not in made or move.target in names
    )
    return replace(command, nodes=tuple(names.get(name, name) for name in command.nodes), moves=moves)
