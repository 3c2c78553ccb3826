"""What commands write into the ledgers of pools: before they begin, when their nodes go, and until these are gone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from karpool.disruption.brakes.failures import Failure, FailureCause, pool_of
from karpool.disruption.brakes.ledger import RENEWED, LedgerEntry, disruption, entry_of
from karpool.disruption.brakes.owned_pods import OwnedPods
from karpool.execution.actions import NoteDisruption
from karpool.execution.reconcile_context import ReconcileContext
from karpool.execution.tickets import CommandInProgress, Ticket
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod


def announced(
    ticket: Ticket,
    claims: Mapping[str, NodeClaim],
    pools: Iterable[NodePool],
    pods_on: Callable[[str], Sequence[Pod]],
    now: datetime,
    *,
    everywhere: OwnedPods,
) -> Iterator[NoteDisruption]:
    """Entries for nodes that are about to go, by pool; `claims`: by name of a node; `everywhere`: see `disruption`."""
    yield from noted(ticket.id, ticket.method, claims, pools, pods_on=pods_on, now=now, everywhere=everywhere)


def noted(
    command: str,
    method: str,
    claims: Mapping[str, NodeClaim],
    pools: Iterable[NodePool],
    *,
    pods_on: Callable[[str], Sequence[Pod]],
    now: datetime,
    everywhere: OwnedPods,
    committed: bool = False,
) -> Iterator[NoteDisruption]:
    """Entries for nodes of a command, by pool; as of `announced`."""
    for pool in pools:
        nodes = [name for name, claim in claims.items() if pool_of(claim) == pool.name]
        if nodes:
            pods = [pod for name in nodes for pod in pods_on(name)]
            entry = disruption(command, method, nodes, pods, now, everywhere=everywhere)
            yield NoteDisruption(pool.name, command, replace(entry, committed=committed))


def note_deletion(context: ReconcileContext, command: CommandInProgress) -> bool:
    """Write what goes now; whether the ledgers have known of the command before, so that nothing goes unnoted."""
    claims = {node.name: claim for claim in command.waiting for node in context.nodes_of.get(claim.name, ())}
    pools = {pool_of(claim) for claim in command.waiting}
    listed = [pool for pool in context.objects.node_pools if pool.name in pools]
    everywhere = context.by_controller.owned
    for note in announced(command.ticket, claims, listed, context.pods_on, context.now, everywhere=everywhere):
        context.do(replace(note, entry=None if note.entry is None else replace(note.entry, committed=True)))
    return pool_gone(context, command) is None and all(entry_of(pool, command.ticket.id) for pool in listed)


def pool_gone(context: ReconcileContext, command: CommandInProgress) -> Failure | None:
    """A NodePool that is gone, and its ledger with it: what is written down nowhere is not disrupted.

    Nodes without a pool are no candidates either; those of a pool that was deleted go with it, by other hands.
    """
    listed = {pool.name for pool in context.objects.node_pools}
    gone = next((name for claim in command.waiting if (name := pool_of(claim)) not in listed), None)
    return None if gone is None else Failure(FailureCause.STOPPED, f"NodePool {gone} is gone")


def renew(context: ReconcileContext, command: CommandInProgress) -> None:
    """Let entries count as long as nodes of their command drain; a commitment whose note was lost is noted again."""
    for pool, entry in _entries(context, command):
        if not entry.committed or context.now - entry.at >= RENEWED:
            at = context.now.replace(microsecond=0)
            context.do(NoteDisruption(pool.name, entry.command, replace(entry, committed=True, at=at)))
        context.requeue_at(max(entry.at, context.now) + RENEWED)


def forget(context: ReconcileContext, command: CommandInProgress) -> None:
    """Take a command that is rolled back out of the ledgers, also those that are not known to have it by now.

    It has disrupted nothing, and an entry that stays would count against rates for an hour.
    """
    pools = {pool_of(claim) for claim in command.waiting} | {pool.name for pool, _ in _entries(context, command)}
    listed = [pool.name for pool in context.objects.node_pools if pool.name in pools]
    context.do(*(NoteDisruption(name, command.ticket.id, None) for name in listed))


def _entries(context: ReconcileContext, command: CommandInProgress) -> Iterator[tuple[NodePool, LedgerEntry]]:
    for pool in context.objects.node_pools:
        entry = entry_of(pool, command.ticket.id)
        if entry is not None:
            yield pool, entry
