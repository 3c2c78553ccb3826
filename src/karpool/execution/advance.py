"""Moves every command and every termination forward; call it after each change, and when `requeue_at` is due."""

from collections.abc import Sequence
from datetime import datetime

from karpool.disruption.brakes.readiness import WorkloadReadiness
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.execution.actions import Action
from karpool.execution.commands import advance_commands
from karpool.execution.fresh_facts import FreshFacts
from karpool.execution.paced_drains import DrainPace
from karpool.execution.reboot import reconcile_reboots
from karpool.execution.reconcile_context import ClaimsOf, Everywhere, Halting, PodsOn, ReconcileContext
from karpool.execution.rollback import remove_leftovers
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import ExecutionState
from karpool.execution.termination import terminate
from karpool.execution.tickets import commands_in_progress
from karpool.model.objects import Objects


def advance(
    objects: Objects,
    state: ExecutionState,
    now: datetime,
    *,
    settings: ExecutionSettings,
    pods_on: PodsOn,
    pdbs: PdbLimits,
    everywhere: Everywhere = tuple,
    claims_of: ClaimsOf = lambda _: (),
    halting: Halting = lambda _: None,
    facts: FreshFacts | None = None,
    doubts: Sequence[Stop] = (),
    workloads: WorkloadReadiness | None = None,
) -> tuple[ExecutionState, tuple[Action, ...]]:
    """The next safe actions for every command in progress and every node that is being deleted.

    The objects must show the effect of all earlier actions. A part of the cluster is enough: claims and nodes that have
    a ticket or are being deleted, and all that their tickets name. `everywhere` gives all pods, `claims_of` all claims
    of a pool, `halting` the brake that rolls its commands back. `facts` are the nodes that an earlier run wanted to
    have read (`ExecutionState.unread`), and count for this run only. `workloads` are all pods by controller, if
    somebody keeps them.
    """
    context = ReconcileContext(
        objects,
        state,
        now,
        settings,
        pods_on=pods_on,
        pdbs=pdbs,
        everywhere=everywhere,
        claims_of=claims_of,
        halting=halting,
        facts=facts or {},
        doubts=doubts,
        workloads=workloads,
    )
    commands = commands_in_progress(objects.node_claims)
    pace = DrainPace(context)
    advance_commands(context, commands, pace)
    remove_leftovers(context, commands)
    if settings.terminates:
        reconcile_reboots(context)
        terminate(context, pace)
    return context.next_state(), context.actions
