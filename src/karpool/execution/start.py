"""The start of a command: its candidates get a ticket and a taint, then its replacements are created.

The order makes an interruption harmless. Ledgers come first, so nothing can be disrupted that rates do not count; then
tickets, so a taint or a replacement without a ticket cannot exist.
While a ticket is missing from a candidate, or a replacement is missing, the next pass rolls the command back.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from karpool.cluster.daemons import Daemon
from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.disruption.brakes.failures import pool_of
from karpool.disruption.brakes.owned_pods import OwnedPods
from karpool.disruption.command import Cause, Command
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.repair.history import with_reboot
from karpool.execution.actions import Action, AddTaint, Annotate, CreateClaim, SetClaimCondition
from karpool.execution.conditions import DISRUPTION_REASON, REBOOT_REQUESTED
from karpool.execution.ledgers import announced, noted
from karpool.execution.reboot import BOOKKEEPING
from karpool.execution.settings import ExecutionSettings
from karpool.execution.tickets import COMMAND, REPLACES, Ticket, command_id
from karpool.model.labels import LAUNCHED_FOR, REBOOT_BOUND, REBOOTS
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.model.objects import Objects
from karpool.model.reading.unreadable import unreadable_reason
from karpool.model.reasons import Reason
from karpool.provisioning.claims import NodeRequest, claim_name, new_claim
from karpool.wire.duration import go_duration


class NotStartedError(Exception):
    """A command cannot start in the current cluster; nothing was done. The reason says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"{reason.object}: {reason.message}" if reason.object else reason.message)
        self.reason = reason


def start_command(
    command: Command,
    objects: Objects,
    now: datetime,
    settings: ExecutionSettings,
    daemons: Sequence[Daemon],
    *,
    everywhere: OwnedPods | None = None,
    identity: str | None = None,
    coming: Mapping[str, str] | None = None,
) -> tuple[Action, ...]:
    """The actions that start a command; `advance` continues from what they write on the objects.

    `everywhere`: all pods of the cluster, if `objects` are only those that the command is about. `identity`: its id, if
    it has one already. `coming`: by name of a node that is no more than expected, its NodeClaim.
    """
    all_pods = OwnedPods(objects.pods) if everywhere is None else everywhere
    candidates = _candidates(command, objects)
    _refuse_unreadable(candidates, objects)
    if command.reboot:
        return tuple(_reboot(command, candidates, objects, now, all_pods))
    _refuse_new_pods(command, candidates, objects)
    identity = identity or command_id(command, now)
    created = tuple(replacement_claims(command, identity, objects, daemons))
    cause = str(command.cause)
    ticket = Ticket(
        id=identity,
        created=now,
        method=str(command.method),
        cause=cause,
        nodes=command.nodes,
        replacements=tuple(claim.name for claim in created),
        destinations=tuple(sorted(destinations(command))),
        awaits=_awaited(command, coming or {}),
        savings=None if command.unpriced else round(command.savings, 6),
        drain_seconds=None if command.drain_bound is None else command.drain_bound.total_seconds(),
    )
    claims = [state.claim for state in candidates if state.claim is not None]
    going = {state.name: state.claim for state in candidates if state.claim is not None}
    on_node = {name: [pod for pod in objects.pods if pod.spec.node_name == name] for name in going}
    return (
        *announced(ticket, going, objects.node_pools, on_node.__getitem__, now, everywhere=all_pods),
        *(ticket.on(claim.name) for claim in claims),
        *(AddTaint(state.name, settings.taint) for state in candidates),
        *(SetClaimCondition(claim.name, DISRUPTION_REASON, "True", cause, cause) for claim in claims),
        *(CreateClaim(claim) for claim in created),
    )


def _reboot(
    command: Command, candidates: Sequence[StateNode], objects: Objects, now: datetime, everywhere: OwnedPods
) -> Iterator[Action]:
    """Ask for reboots; `execution.reboot` continues from what is written on the claims.

    The time that pods have comes before the request, and the request last: without it, the rest means nothing.
    """
    claims = {state.name: state.claim for state in candidates if state.claim is not None}
    identity = command_id(command, now)
    pods = {name: [pod for pod in objects.pods if pod.spec.node_name == name] for name in claims}
    yield from noted(
        identity,
        str(command.method),
        claims,
        objects.node_pools,
        pods_on=pods.__getitem__,
        now=now,
        everywhere=everywhere,
        committed=True,
    )
    for claim in claims.values():
        bound = None if command.drain_bound is None else go_duration(command.drain_bound)
        notes = {**dict.fromkeys(BOOKKEEPING), REBOOT_BOUND: bound, REBOOTS: with_reboot(claim, now)}
        yield from (Annotate("NodeClaim", claim.name, key, value) for key, value in notes.items())
        yield SetClaimCondition(claim.name, DISRUPTION_REASON, "True", str(command.cause), str(command.cause))
        yield SetClaimCondition(claim.name, REBOOTING, "True", REBOOT_REQUESTED, command.reboot)


def _awaited(command: Command, coming: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted({coming[name] for name in destinations(command) if name in coming}))


def destinations(command: Command) -> frozenset[str]:
    return frozenset(move.target for move in command.moves if isinstance(move.target, str))


def _candidates(command: Command, objects: Objects) -> list[StateNode]:
    by_name = {state.name: state for state in join(objects.nodes, objects.node_claims)}
    pools = {pool.name for pool in objects.node_pools}
    candidates = []
    for name in command.nodes:
        state = by_name.get(name)
        if state is None or state.node is None or state.claim is None:
            raise NotStartedError(Reason("NodeGone", "is no longer there, or has no NodeClaim", f"Node {name}"))
        if state.deleting:
            raise NotStartedError(Reason("NodeDeleting", "is being deleted already", f"Node {name}"))
        if state.rebooting:
            raise NotStartedError(Reason("NodeRebooting", "is being rebooted already", f"Node {name}"))
        if COMMAND in state.claim.metadata.annotations:
            raise NotStartedError(Reason("NodeInCommand", "is in another command already", f"Node {name}"))
        if pool_of(state.claim) not in pools:
            message = f"its NodePool {pool_of(state.claim)} does not exist, so that nothing can be noted in its ledger"
            raise NotStartedError(Reason(ReasonCode.NODE_POOL_NOT_FOUND, message, f"Node {name}"))
        candidates.append(state)
    return candidates


def _refuse_unreadable(candidates: Sequence[StateNode], objects: Objects) -> None:
    """Refuse a command about something that cannot be read any more."""
    leaving = {state.name for state in candidates}
    parts = [
        *(("Node", state.node) for state in candidates if state.node is not None),
        *(("NodeClaim", state.claim) for state in candidates if state.claim is not None),
        *(("Pod", pod) for pod in objects.pods if pod.spec.node_name in leaving and not pod.terminal),
    ]
    for kind, part in parts:
        if part.unreadable:
            raise NotStartedError(unreadable_reason(kind, part))


def _refuse_new_pods(command: Command, candidates: Sequence[StateNode], objects: Objects) -> None:
    """Refuse a command if a pod came after the decision, which found no place for it."""
    if command.cause == Cause.DRIFTED or command.terminate_first is not None:
        # Pods that must not be disrupted stay on a drifted node with a termination grace period, and do not move.
        return
    leaving = {state.name for state in candidates}
    known = {move.pod for move in command.moves}
    for pod in objects.pods:
        if pod.spec.node_name in leaving and pod.reschedulable and pod.key not in known:
            message = f"came to node {pod.spec.node_name} after the decision to remove the node"
            raise NotStartedError(Reason("PodArrived", message, f"Pod {pod.key}"))


def replacement_claims(
    command: Command, identity: str, objects: Objects, daemons: Sequence[Daemon]
) -> Iterator[NodeClaim]:
    """The claims that a command creates; `objects`: the pools, and the pods that move."""
    pools = {pool.name: pool for pool in objects.node_pools}
    pods = {pod.key: pod for pod in objects.pods}
    for number, replacement in enumerate(command.replacements):
        pool = pools.get(replacement.pool)
        if pool is None or not pool.ready:
            raise NotStartedError(
                Reason("NodePoolNotReady", "cannot supply the replacement", f"NodePool {replacement.pool}")
            )
        moved = tuple(pods[move.pod] for move in command.moves if move.target == number and move.pod in pods)
        request = NodeRequest(replacement.requirements, replacement.instance_types, moved, drivers=replacement.drivers)
        name = claim_name(pool.name, identity, str(number))
        yield new_claim(
            pool, request, name=name, daemons=daemons, annotations={REPLACES: identity, LAUNCHED_FOR: identity}
        )
