"""The lifecycle controller: registration and expiry of NodeClaims, commands in progress, drains and terminations.

Only objects that changed, or whose time has come, are reconciled, so the cost follows the changes, not the cluster.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Final

import msgspec

from karpool.cluster.changes import pool_changed
from karpool.controller.session import Session
from karpool.disruption.brakes.failures import Failure, FailureCause, after_failure, pool_of
from karpool.disruption.brakes.launch_failures import LaunchTimes, claims_to_tell, launch_failure, remembered_launch
from karpool.disruption.brakes.readiness import WorkloadReadiness
from karpool.execution.actions import Action, Annotate, ClearClaimCondition, CreateClaim, SetClaimCondition
from karpool.execution.advance import advance
from karpool.execution.conditions import DISRUPTION_REASON
from karpool.execution.fresh_facts import FreshFacts, to_read
from karpool.execution.lifecycle import lifecycle
from karpool.execution.pod_events import missed_pod_events, note_pod_event, pod_event
from karpool.execution.state import RefusedAction, RolledBack
from karpool.execution.tickets import COMMAND, REPLACES, commands_in_progress, read_ticket, ticket_of
from karpool.model.devices import ResourceSlice
from karpool.model.labels import FAILED_LAUNCH, LAUNCHED_FOR, NODEPOOL
from karpool.model.node import Node
from karpool.model.nodepool import CONSOLIDATABLE, NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.provisioning.pool_hash import hash_annotations
from karpool.wire.objects import condition

_LONGEST_WAIT: Final = timedelta(hours=1)
"""Nothing is queued for later than this: what waits for the end of a month would outlive most nodes."""


class LifecycleController:
    """Runs `lifecycle` for claims that changed, and `advance` for those that are marked."""

    def __init__(self, session: Session, *, manages_lifecycle: bool = True) -> None:
        self.session = session
        self.store = session.store
        self.clock = session.clock
        self._manages = manages_lifecycle
        self.marked: set[str] = set()
        """Names of claims that a command is about, or that are being deleted, and of nodes without a claim that are."""
        self._changed: dict[str, bool] = {}
        """By name of a claim that changed: whether more may be to do than what was just done and changed it."""
        self._pod_events: dict[str, datetime] = {}
        self._reconcile_queued = False
        self._advance_queued = False
        self._requeue_at: dict[str, datetime] = {}
        self._next_advance: datetime | None = None
        self._reading = False
        """Whether nodes are being read."""
        self.workloads = WorkloadReadiness(session.store.pods)
        """All pods by the controllers that made them."""

    def start(self) -> None:
        """Reconcile everything once."""
        if self._manages:
            for pool in self.store.pools.listed():
                self.pool(None, pool)
            self.session.execute(missed_pod_events(self.store.objects(), self.clock.moment))
        for claim in self.store.claims.listed():
            self.claim(None, claim)
        for node in self.store.nodes.listed():
            self.node(None, node)

    # -- changes -----------------------------------------------------------------------------------------

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        """Note pod events, changes on nodes that are being deleted, and pods that such a node waits for."""
        if self.workloads.change(old, new) and self.session.state.held_back:
            self.advance_soon()
        name = pod_event(old, new) if self._manages else None
        if name is not None:
            self._pod_events[name] = self.clock.moment
            self._reconcile_soon()
        pod = new if new is not None else old
        if (
            self.marked
            and pod is not None
            and pod.spec.node_name
            and self._claim_name(pod.spec.node_name) in self.marked
        ):
            self.advance_soon()

    def claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        """Note a claim that changed."""
        claim = new if new is not None else old
        if claim is None:
            return
        self._changed[claim.name] = True
        self._reconcile_soon()
        if new is None:
            self._completed(claim)
        execution = self.session.execution
        times = LaunchTimes(execution.launch_timeout, execution.registration_timeout)
        failure = launch_failure(old, new, times, self.clock.moment)
        # The failure of a replacement is that of its command.
        if failure is not None and LAUNCHED_FOR not in claim.metadata.annotations:
            self._launch_failed(claim, failure)
        node = self.store.nodes.get(claim.status.node_name)
        self._mark(claim.name, marked=new is not None and (_is_marked(new) or self._leaves(node)))

    def _completed(self, gone: NodeClaim) -> None:
        """Tell the end of a command when the last of its nodes is gone; one that was not committed did not end well."""
        ticket = ticket_of(gone)
        if ticket is None or not ticket.committed:
            return
        if any(command.ticket.id == ticket.id for command in commands_in_progress(self.store.claims)):
            return
        kept = {claim.status.node_name for claim in self.store.claims}.intersection(ticket.nodes)
        if kept:
            # Candidates that were let go at the last moment: what the others save alone nobody has worked out.
            gone_nodes = tuple(name for name in ticket.nodes if name not in kept)
            ticket = msgspec.structs.replace(ticket, nodes=gone_nodes, savings=None)
        for observer in self.session.observers:
            observer.command_completed(ticket)

    def node(self, old: Node | None, new: Node | None) -> None:
        """Note a node that changed."""
        node = new if new is not None else old
        if node is None:
            return
        claim = self.session.cluster_state.claim_of(node)
        if claim is not None:
            self._changed[claim.name] = True
            self._reconcile_soon()
        name = node.name if claim is None else claim.name
        self._mark(name, marked=self._leaves(new) or (claim is not None and _is_marked(claim)))

    def resource_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Note devices of a node that may wait for them."""
        for entry in (old, new):
            node = None if entry is None else self.store.nodes.get(entry.spec.node_name)
            if node is not None:
                self.node(None, node)

    def pool(self, old: NodePool | None, new: NodePool | None) -> None:
        """Note a pool that changed: it gets the hash of its template, and its claims are reconciled."""
        if new is None or not self._manages:
            return
        hashes = {} if new.unreadable else hash_annotations(new)
        stamps = [Annotate("NodePool", new.name, key, value) for key, value in hashes.items()]
        if stamps:
            self.clock.after(0.0, partial(self._stamp, stamps))
        if old is not None and pool_changed(old, new):
            for claim in self.store.claims:
                if claim.metadata.labels.get(NODEPOOL) == new.name:
                    self._changed[claim.name] = True
            self._reconcile_soon()

    def _stamp(self, stamps: list[Annotate]) -> None:
        if self.session.alive:
            self.session.execute(stamps)

    def brakes_changed(self) -> None:
        """Note that a brake may have taken hold: commands under way are rolled back then."""
        if self.marked:
            self.advance_soon()

    def budget(self) -> None:
        """Note that a PodDisruptionBudget changed: a command may wait for it; drains retry by themselves."""
        if self.session.state.blocked_by_pdb:
            self.advance_soon()

    def _claim_name(self, node: str) -> str:
        row = self.session.cluster_state.snapshot.nodes.rows.get(node)
        state = None if row is None else self.session.cluster_state.snapshot.nodes.get(row)
        return state.claim.name if state is not None and state.claim is not None else node

    def _mark(self, name: str, *, marked: bool) -> None:
        if marked:
            self.marked.add(name)
            self.advance_soon()
        elif name in self.marked:
            self.marked.discard(name)
            self.advance_soon()

    def _leaves(self, node: Node | None) -> bool:
        key = self.session.execution.taint_key
        return node is not None and (
            node.metadata.deletion_timestamp is not None or any(taint.key == key for taint in node.spec.taints)
        )

    # -- claims -----------------------------------------------------------------------------------------

    def _reconcile_soon(self) -> None:
        if self._manages and not self._reconcile_queued:
            self._reconcile_queued = True
            self.clock.after(self.session.intervals.latency, self._reconcile)

    def _reconcile(self) -> None:
        self._reconcile_queued = False
        if not self.session.alive:
            return
        events, self._pod_events = self._pod_events, {}
        for name, moment in events.items():
            claim = self.store.claims.get(self._claim_name(name))
            action = None if claim is None else note_pod_event(claim, moment)
            if action is not None:
                self.session.execute((action,))
        changed, self._changed = self._changed, {}
        for name, more_to_do in changed.items():
            if more_to_do:
                self._reconcile_claim(name)

    def _reconcile_claim(self, name: str) -> None:
        claim = self.store.claims.get(name)
        if claim is None or not self.session.alive:
            self._requeue_at.pop(name, None)
            return
        result = lifecycle(self._around(claim), self.clock.earliest, self.session.execution)
        changed = self._changed.get(name, False)
        self.session.execute(result.actions)
        if not changed and name in self._changed and all(map(_is_consolidatable, result.actions)):
            self._changed[name] = False
        if result.requeue_at is not None:
            self._requeue(name, min(result.requeue_at, self.clock.earliest + _LONGEST_WAIT))

    def _requeue(self, name: str, moment: datetime) -> None:
        """Reconcile a claim at a moment, unless that happens earlier anyway: then it is asked again."""
        waiting = self._requeue_at.get(name)
        if waiting is None or moment < waiting:
            self._requeue_at[name] = moment
            self.clock.when(moment, partial(self._requeued, name, moment))

    def _requeued(self, name: str, requeue_at: datetime) -> None:
        if self.session.alive and self._requeue_at.get(name) == requeue_at:
            del self._requeue_at[name]
            self._reconcile_claim(name)

    def _around(self, claim: NodeClaim) -> Objects:
        """A claim with its node and its pool."""
        node = self._node_of(claim)
        pool = self.store.pools.get(claim.metadata.labels.get(NODEPOOL, ""))
        return Objects(
            node_claims=(claim,),
            nodes=self._strays() if node is None else (node,),
            node_pools=() if pool is None else (pool,),
            resource_slices=self.store.resource_slices.listed(),
        )

    def _strays(self) -> tuple[Node, ...]:
        """Nodes that cannot be read and have no claim: one of them may be that of a claim without a node."""
        state = self.session.cluster_state
        listed = [entry for entry in state.snapshot.unreadable if isinstance(entry, Node)]
        return tuple(node for node in listed if state.claim_of(node) is None)

    def _stray_claims(self) -> list[NodeClaim]:
        """Claims that cannot be read and have no node: one of them may be that of a node without a claim."""
        state = self.session.cluster_state
        listed = [entry for entry in state.snapshot.unreadable if isinstance(entry, NodeClaim)]
        return [claim for claim in listed if not state.node_name(claim)]

    def _node_of(self, claim: NodeClaim) -> Node | None:
        return self.store.nodes.get(claim.status.node_name or self.session.cluster_state.node_name(claim))

    # -- commands and departures ---------------------------------------------------------------------------------

    def advance_soon(self) -> None:
        """Advance commands and terminations in a moment."""
        if not self._advance_queued:
            self._advance_queued = True
            self.clock.after(self.session.intervals.latency, self._advance)

    def _advance(self, facts: FreshFacts | None = None) -> None:
        if facts is None:
            self._advance_queued = False
        session = self.session
        if not session.alive:
            return
        now = self.clock.earliest
        stops = cache(lambda: session.halts(now))
        session.state, actions = advance(
            self.under_way(),
            session.state,
            now,
            settings=session.execution,
            pods_on=session.pods_on,
            pdbs=session.pdb_source.pdbs(),
            everywhere=session.store.pods.listed,
            claims_of=self._claims_of,
            halting=lambda pool: stops().halting(pool),
            facts=facts,
            doubts=session.doubts(),
            workloads=self.workloads,
        )
        for observer in session.observers:
            for command in session.state.rolled_back:
                observer.command_failed(command)
            for wait in session.state.waits_over:
                observer.wait_over(wait)
        requeue_at = session.state.requeue_at
        # A run that was due before now comes late or never: the time it was planned by may have been wrong.
        planned = self._next_advance if self._next_advance is not None and self._next_advance > now else None
        if requeue_at is not None and (planned is None or requeue_at < planned):
            self._next_advance = requeue_at
            self.clock.when(requeue_at, partial(self._due, requeue_at))
        for observer in session.observers:
            observer.actions_requested(actions)
        session.execute(actions)
        self._read(to_read(session.state.unread, facts or {}))

    def _read(self, nodes: frozenset[str]) -> None:
        """Read nodes that something is to be done with, which is not done before."""
        if nodes and not self._reading:
            self._reading = True
            self.session.facts.read(sorted(nodes), self._facts_read)

    def _facts_read(self, facts: FreshFacts) -> None:
        self._reading = False
        if self.session.alive:
            self._advance(facts)

    def _claims_of(self, pool: str) -> list[NodeClaim]:
        return [claim for claim in self.store.claims if claim.metadata.labels.get(NODEPOOL) == pool]

    # -- refusals ------------------------------------------------------------------------------------------------

    def refused(self, action: Action, message: str, *, final: bool) -> None:
        """Note what the API server refused; `final`: it certainly did not do it.

        A command whose replacement is refused fails at once. One whose ticket is refused is on no object, so that only
        this session can remember that it failed.
        """
        match action:
            case CreateClaim(claim=claim) if REPLACES in claim.metadata.annotations:
                state, refusal = self.session.state, RefusedAction(message, final)
                self.session.state = replace(state, refused={**state.refused, claim.name: refusal})
                self.advance_soon()
            case CreateClaim(claim=claim) if final:
                self._launch_failed(claim, message)
            case Annotate(name=name, key=key, value=str(text)) if key == COMMAND and final:
                self._not_started(name, text, message)

    def _launch_failed(self, failed: NodeClaim, message: str) -> None:
        """Have the pool remember a failed launch."""
        pool = self._claims_of(pool_of(failed))
        known = remembered_launch(failed.name, message, pool, self.session.settings.brakes, self.clock.moment)
        notes = [Annotate("NodeClaim", name, FAILED_LAUNCH, known.written()) for name in claims_to_tell(pool, known)]
        if notes:
            self.clock.after(0.0, partial(self._stamp, notes))

    def _not_started(self, name: str, text: str, message: str) -> None:
        claim, ticket, session = self.store.claims.get(name), read_ticket(text), self.session
        if claim is None or ticket is None or ticket.committed:
            return
        known = session.unwritten.get(name)
        if known is not None and known.command == ticket.id:
            return
        failure = Failure(FailureCause.NOT_MARKED, f"node {claim.status.node_name} could not be marked: {message}")
        failed = after_failure(
            claim,
            failure,
            command=ticket.id,
            pool=(),
            now=self.clock.moment,
            forgotten_after=session.execution.failures_forgotten_after,
        )
        if known is not None:
            failed = msgspec.structs.replace(failed, tries=known.tries + 1)
        session.unwritten[name] = failed
        for observer in session.observers:
            observer.command_failed(RolledBack(ticket, failed))

    def _due(self, requeue_at: datetime) -> None:
        if self.session.alive and self._next_advance == requeue_at:
            self._next_advance = None
            self._advance()

    def under_way(self) -> Objects:
        """Everything that is marked, and everything that a ticket names."""
        names = set(self.marked)
        for name in self.marked:
            claim = self.store.claims.get(name)
            ticket = None if claim is None else ticket_of(claim)
            if ticket is not None:
                names.update(ticket.expected)
                names.update(map(self._claim_name, ticket.nodes))
        claims, nodes, bare = [], [], []
        for name in sorted(names):
            claim = self.store.claims.get(name)
            if claim is None:
                bare.append(self.store.nodes.get(name))
            else:
                claims.append(claim)
                nodes.append(self._node_of(claim))
        lost = [claim for claim in self._stray_claims() if claim.name not in names]
        found = {node.name: node for node in (*nodes, *bare, *self._strays()) if node is not None}
        return Objects(
            node_claims=(*claims, *lost),
            nodes=tuple(found.values()),
            node_pools=self.store.pools.listed(),
            persistent_volume_claims=self.store.volume_claims.listed(),
            persistent_volumes=self.store.volumes.listed(),
            volume_attachments=self.store.volume_attachments.listed(),
        )


def _is_consolidatable(action: Action) -> bool:
    """Whether an action is about the condition Consolidatable, which nothing else of the lifecycle depends on."""
    return isinstance(action, SetClaimCondition | ClearClaimCondition) and action.type == CONSOLIDATABLE


def _is_marked(claim: NodeClaim) -> bool:
    meta = claim.metadata
    return (
        meta.deletion_timestamp is not None
        or COMMAND in meta.annotations
        or REPLACES in meta.annotations
        or condition(claim.status.conditions, DISRUPTION_REASON) is not None
    )
