"""One function that moves everything forward: call it after every change of objects, and when `State.wake` is due."""

from datetime import datetime

from karpool.disruption.pdbs import PdbLimits
from karpool.execution.actions import Action
from karpool.execution.commands import carry_on
from karpool.execution.rollback import remove_leftovers
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import State
from karpool.execution.termination import terminate
from karpool.execution.tickets import underway
from karpool.execution.turn import PodsOn, Turn
from karpool.model.objects import Objects


def advance(
    objects: Objects,
    state: State,
    now: datetime,
    *,
    settings: ExecutionSettings | None = None,
    pods_on: PodsOn | None = None,
    pdbs: PdbLimits | None = None,
) -> tuple[State, tuple[Action, ...]]:
    """The next safe actions for every command under way and every node on its way out.

    The objects must show the effect of all actions asked for before. A part of them is enough: claims and nodes that
    carry a mark or are being deleted, with all that their tickets name, and the PodDisruptionBudgets. `pods_on` gives
    the pods of a node, and `pdbs` the budgets, where the caller keeps them so anyway.
    """
    turn = Turn(objects, state, now, settings or ExecutionSettings(), pods_on=pods_on, pdbs=pdbs)
    commands = underway(objects.node_claims)
    carry_on(turn, commands)
    remove_leftovers(turn, commands)
    if turn.settings.terminates:
        terminate(turn)
    return turn.next_state(), turn.actions
