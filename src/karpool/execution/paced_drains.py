"""Drains of commands are paced: pods leave while few enough of those that went before are not ready elsewhere yet.

Waiting costs time and nothing else: it ends when pods are ready, when their replacements do not come in time, halfway
to the deadline of a drain, and when no pod has left a node for long.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from karpool.disruption.brakes.ledger import LedgerEntry, entry_of, ledger_of
from karpool.disruption.brakes.readiness import Away, Held, LetGo, awaited, moving_key, ready
from karpool.disruption.command import Cause
from karpool.execution.deadlines import deadline_of
from karpool.execution.drain import next_on
from karpool.execution.reconcile_context import FACTS_RETRY, ReconcileContext
from karpool.execution.state import WaitOver
from karpool.execution.tickets import CommandInProgress, Ticket, commands_in_progress, ticket_of
from karpool.model.annotations import AnnotationError
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests

SEEN_WITHIN: Final = timedelta(seconds=5)
"""How long an eviction that worked may not be seen on the pod."""
HELD_BACK: Final = "DrainWaiting"
WAIT_OVER: Final = "DrainWaitOver"


class DrainPace:
    """Who may leave in one pass over all nodes; nothing is looked at before somebody asks."""

    def __init__(self, context: ReconcileContext) -> None:
        self._context = context

    def lets_go(self, pod: Pod) -> bool:
        """Whether a pod of a node that drains may be evicted now."""
        return self._context.settings.pacing.off or pod.metadata.uid not in self._held

    def nodes_let_go(self, command: CommandInProgress) -> list[NodeClaim]:
        """The candidates of a command that may be deleted now, if another controller evicts their pods at once."""
        context, pacing = self._context, self._context.settings.pacing
        paced = not context.settings.terminates and not pacing.off and command.ticket.cause != Cause.UNHEALTHY
        if not paced or context.now >= _committed_at(context, command) + pacing.node_waits:
            return list(command.waiting)
        return [claim for claim in command.waiting if all(map(self._lets_node_go, _nodes_of(context, claim)))]

    @cached_property
    def _away(self) -> Away:
        context = self._context
        entries = list(_entries(context))
        here, leaving = _on_nodes(context, {entry.command for entry in entries})
        away = Away(
            context.by_controller,
            entries,
            context.settings.pacing,
            context.now,
            here=here,
            leaving=leaving,
            lapses=context.state.lapses,
        )
        context.lapses = away.lapses
        return away

    @cached_property
    def _held(self) -> frozenset[str]:
        """The uids of the pods that stay for now."""
        context, turns = self._context, list[tuple[_Turn, Pod, Node]]()
        for node in context.objects.nodes:
            claim = context.claim_of.get(node.name)
            ticket = None if claim is None else ticket_of(claim)
            if node.terminating and claim is not None and ticket is not None and _waits(context, claim, ticket):
                asking = [pod for pod, may_go in next_on(context, node.name) if may_go and self._asks(pod)]
                turns += [(_turn(ticket, node, pod), pod, node) for pod in asking]
        turns.sort(key=lambda entry: entry[0])
        return frozenset(
            pod.metadata.uid for _, pod, node in turns if not self._judged(self._away.ask(pod), node, f"Pod {pod.key}")
        )

    def _asks(self, pod: Pod) -> bool:
        """Whether a pod has to ask: not if it may be on its way, and not if a budget keeps it, as long as it does."""
        context = self._context
        return not asked_lately(context, pod) and context.pdbs.eviction_blocked(pod, context.now) is None

    def _lets_node_go(self, node: Node) -> bool:
        pods = [pod for pod in self._context.pods_on(node.name) if pod.active]
        return self._judged(self._away.ask_all(pods), node, f"Node {node.name}")

    def _judged(self, answer: Held | LetGo, node: Node, who: str) -> bool:
        context = self._context
        if isinstance(answer, Held):
            context.record_event("Node", node.name, HELD_BACK, f"{who} waits: {answer.message}")
            context.held_back.add(node.name)
            context.requeue_at(context.now + FACTS_RETRY)
            return False
        if answer.overdue and ("Node", node.name, WAIT_OVER) not in context.recorded:
            context.record_event("Node", node.name, WAIT_OVER, f"{who} goes: {answer.overdue}", "Warning")
            claim = context.claim_of.get(node.name)
            ticket = None if claim is None else ticket_of(claim)
            context.waits_over.append(WaitOver("" if ticket is None else ticket.id, node.name, who, answer.overdue))
        return True


_Turn = tuple[datetime, str, str, int, int, str]


def _turn(ticket: Ticket, node: Node, pod: Pod) -> _Turn:
    """Node by node, so that the first ones are gone soon; large pods first: small ones find room beside them."""
    requests = effective_requests(pod)
    cpu, memory = (requests[name].nano if name in requests else 0 for name in ("cpu", "memory"))
    return ticket.created, ticket.id, node.name, -cpu, -memory, pod.key


def _waits(context: ReconcileContext, claim: NodeClaim, ticket: Ticket) -> bool:
    """Whether the drain of a deleted claim's node waits for pods at all.

    Only commands do. Those that repair do not: their pods are on a node that does not work.
    """
    since, deadline = claim.metadata.deletion_timestamp, deadline_of(claim)
    if since is None or ticket.cause == Cause.UNHEALTHY:
        return False
    ends = _last_left(claim, since) + context.settings.pacing.node_waits
    if deadline is not None:
        ends = min(ends, since + (deadline - since) / 2)
    context.requeue_at(ends)
    return context.now < ends


def _committed_at(context: ReconcileContext, command: CommandInProgress) -> datetime:
    entries = (entry_of(pool, command.ticket.id) for pool in context.objects.node_pools)
    return max((entry.since for entry in entries if entry is not None), default=command.ticket.created)


def _nodes_of(context: ReconcileContext, claim: NodeClaim) -> Sequence[Node]:
    return context.nodes_of.get(claim.name, ())


def asked_lately(context: ReconcileContext, pod: Pod) -> bool:
    """Whether a pod may be on its way already, though nothing is seen of it."""
    attempt = context.state.evictions.get(pod.metadata.uid)
    return attempt is not None and context.now < attempt.at + SEEN_WITHIN


def _last_left(claim: NodeClaim, since: datetime) -> datetime:
    event = claim.status.last_pod_event_time
    return since if event is None else max(since, event)


def _on_nodes(context: ReconcileContext, counted: Collection[str]) -> tuple[Counter[str], Counter[str]]:
    """By controller: the pods on nodes of commands that count, and the pods of all that are as good as gone."""
    here, leaving = Counter[str](), Counter[str]()
    tickets = (command.ticket for command in commands_in_progress(context.objects.node_claims))
    names = {name for ticket in tickets if ticket.id in counted for name in ticket.nodes}
    going = {node.name for node in context.objects.nodes if node.terminating}
    for name in sorted(names | going):
        claim = context.claim_of.get(name)
        drained = claim is not None and _drained_by_others(context, claim)
        for pod in context.pods_on(name):
            key = moving_key(pod)
            if key is not None and pod.active:
                here[key] += name in names
                leaving[key] += ready(pod) and (drained or _evicted_unseen(context, pod))
    return here, leaving


def _evicted_unseen(context: ReconcileContext, pod: Pod) -> bool:
    return asked_lately(context, pod) and context.pdbs.eviction_blocked(pod, context.now) is None


def _drained_by_others(context: ReconcileContext, claim: NodeClaim) -> bool:
    """Whether another controller evicts the pods of a claim's node; one that no pod leaves is not waited for."""
    deleted = claim.metadata.deletion_timestamp
    if context.settings.terminates or deleted is None:
        return False
    return context.now - _last_left(claim, deleted) < context.settings.pacing.ready_within


def _entries(context: ReconcileContext) -> Iterator[LedgerEntry]:
    """What commands have moved of which something may be away."""
    under_way = {ticket.id for claim in _going(context) if (ticket := ticket_of(claim)) is not None}
    for pool in context.objects.node_pools:
        try:
            entries = ledger_of(pool)
        except AnnotationError:
            continue  # brakes say so; what is not known to be away is not waited for
        for entry in entries:
            if entry.command in under_way or awaited(entry, context.settings.pacing, context.now):
                yield entry


def _going(context: ReconcileContext) -> Iterable[NodeClaim]:
    return (claim for claim in context.objects.node_claims if claim.terminating)
