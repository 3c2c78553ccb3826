"""One pass over the objects: indexes to read them by, the actions to take, and when to run again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Literal

from karpool.cluster.pairing import with_claims
from karpool.disruption.brakes.readiness import Lapse, WorkloadReadiness
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.execution.actions import Action, Kind, RecordEvent, SetClaimCondition
from karpool.execution.fresh_facts import FreshFacts, unreadable
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import Attempt, ExecutionState, RolledBack, WaitOver, after_attempt
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNKNOWN
from karpool.wire.objects import condition

EVENT_INTERVAL: Final = timedelta(minutes=2)
"""The same event is recorded once within this time."""
FACTS_RETRY: Final = timedelta(seconds=5)
"""When to try again what waits for facts: nodes that could not be read, or caches and a time to be trusted."""
_NO_PDBS: Final = PdbLimits(())
PodsOn = Callable[[str], Sequence[Pod]]
"""The pods of a node, by its name."""
Everywhere = Callable[[], Iterable[Pod]]
"""All pods of the cluster."""
ClaimsOf = Callable[[str], Sequence[NodeClaim]]
"""The claims of a pool, by its name."""
Halting = Callable[[str], Stop | None]
"""What rolls commands of a pool back, by its name."""


@dataclass
class ReconcileContext:
    objects: Objects
    state: ExecutionState
    now: datetime
    settings: ExecutionSettings
    pods_on: PodsOn = lambda _: ()
    everywhere: Everywhere = tuple
    pdbs: PdbLimits = _NO_PDBS
    claims_of: ClaimsOf = lambda _: ()
    halting: Halting = lambda _: None
    facts: FreshFacts = field(default_factory=dict)
    """Nodes and pods that were read a moment ago; they count more than `pods_on`."""
    doubts: Sequence[Stop] = ()
    """Why what is known cannot be trusted now."""
    workloads: WorkloadReadiness | None = None
    """The pods of every controller; None: they are counted from `everywhere` when they are needed."""

    def __post_init__(self) -> None:
        self.unread: set[str] = set()
        self.pods_on = _once_each(self.pods_on, self.facts)
        self._unreadable_on: dict[str, tuple[Pod, ...]] = {}
        self.waiting: dict[str, list[Pod]] = {}
        """By name of a node, as far as somebody has asked: the pods that are still to leave it."""
        self.next_to_go: dict[str, list[tuple[Pod, bool]]] = {}
        """And those of them whose turn it is, with whether they may be evicted."""
        self._changes: list[Action] = []
        self._events: list[Action] = []
        self.blocked_by_pdb = False
        self.next_run: datetime | None = None
        self.evictions: dict[str, Attempt] = {}
        self.terminations: dict[str, datetime] = {}
        self.reboots: dict[str, datetime] = {}
        self.missing: dict[str, datetime] = {}
        self.rolled_back: list[RolledBack] = []
        self.lapses: dict[str, Lapse] = {}
        self.held_back: set[str] = set()
        self.waits_over: list[WaitOver] = []
        self.recorded = {key: until for key, until in self.state.recorded.items() if self.now < until}

    def unreadable_pods_on(self, name: str) -> tuple[Pod, ...]:
        """The unfinished pods on a node that cannot be read."""
        found = self._unreadable_on.get(name)
        if found is None:
            found = tuple([pod for pod in self.pods_on(name) if pod.metadata.unreadable and not pod.terminal])
            self._unreadable_on[name] = found
        return found

    @cached_property
    def all_readable(self) -> bool:
        """Whether nothing that this pass is about holds anything up because it cannot be read, as is mostly so."""
        objects = self.objects
        if any(part.metadata.unreadable for part in (*objects.node_claims, *objects.nodes)):
            return False
        return not any(self.unreadable_pods_on(name) for name in (UNKNOWN, *(node.name for node in objects.nodes)))

    @cached_property
    def by_controller(self) -> WorkloadReadiness:
        """The pods of every controller."""
        return WorkloadReadiness(self.everywhere()) if self.workloads is None else self.workloads

    @cached_property
    def claims(self) -> dict[str, NodeClaim]:
        return {claim.name: claim for claim in self.objects.node_claims}

    @cached_property
    def claim_of(self) -> dict[str, NodeClaim]:
        """The claims by the names of their nodes."""
        paired = with_claims(self.objects.nodes, self.objects.node_claims)
        return {node.name: claim for node, claim in paired if claim is not None}

    @cached_property
    def nodes_of(self) -> dict[str, list[Node]]:
        """The nodes by the names of their claims."""
        nodes: dict[str, list[Node]] = {}
        for node in self.objects.nodes:
            claim = self.claim_of.get(node.name)
            if claim is not None:
                nodes.setdefault(claim.name, []).append(node)
        return nodes

    @cached_property
    def stray_nodes(self) -> tuple[Node, ...]:
        """Nodes that cannot be read and that no claim is known to belong to: each may be that of any claim."""
        return tuple(node for node in self.objects.nodes if node.unreadable and node.name not in self.claim_of)

    @cached_property
    def stray_claims(self) -> tuple[NodeClaim, ...]:
        """Claims that cannot be read and that no node is known to belong to: each may be that of any node."""
        return tuple(
            claim for claim in self.objects.node_claims if claim.unreadable and not self.nodes_of.get(claim.name)
        )

    def do(self, *actions: Action) -> None:
        self._changes += actions

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions: writes before Events, so that an interrupted controller still makes progress."""
        return (*self._changes, *self._events)

    def requeue_at(self, moment: datetime) -> None:
        """Run again at a moment, unless it is past or an earlier run is due."""
        if moment > self.now and (self.next_run is None or moment < self.next_run):
            self.next_run = moment

    def record_event(
        self, kind: Kind, name: str, reason: str, message: str, level: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Record an event, unless the same was recorded a moment ago."""
        key = (kind, name, reason)
        if key not in self.recorded:
            self.recorded[key] = self.now + EVENT_INTERVAL
            self._events.append(RecordEvent(kind, name, reason, message, level))

    def confirmed(self, *names: str) -> bool:
        """Whether nodes and their pods were read a moment ago; if not, they are to be, and the pass repeated."""
        self.unread.update(name for name in names if name not in self.facts)
        for name in names:
            reason = unreadable(name, self.facts[name]) if name in self.facts else None
            if reason is not None:
                self.unread.discard(name)
                self.record_event("Node", name, "DisruptionBlocked", f"{reason.object} {reason.message}", "Warning")
                self.requeue_at(self.now + FACTS_RETRY)
        return all(name in self.facts and not self.facts[name].problem for name in names)

    def set_condition(
        self, claim: NodeClaim, kind: str, status: Literal["True", "False", "Unknown"], reason: str, message: str = ""
    ) -> None:
        """Write a condition of a claim, unless status and reason are there already."""
        current = condition(claim.status.conditions, kind)
        if current is None or (current.status, current.reason) != (status, reason):
            self.do(SetClaimCondition(claim.name, kind, status, reason, message))

    def may_evict(self, pod: Pod) -> bool:
        """Whether to ask for a pod's eviction now; if so, the next attempt is put off."""
        previous = self.state.evictions.get(pod.metadata.uid)
        ready = previous is None or self.now >= previous.again
        attempt = after_attempt(previous, self.now) if ready else previous
        if attempt is not None:
            self.evictions[pod.metadata.uid] = attempt
            self.requeue_at(attempt.again)
        return ready

    def next_state(self) -> ExecutionState:
        nominations = {name: until for name, until in self.state.nominations.items() if self.now < until}
        return ExecutionState(
            evictions=self.evictions,
            terminations=self.terminations,
            reboots=self.reboots,
            missing=self.missing,
            refused={name: why for name, why in self.state.refused.items() if name in self.missing},
            rolled_back=tuple(self.rolled_back),
            nominations=nominations,
            guests={name: keys for name, keys in self.state.guests.items() if name in nominations},
            recorded=self.recorded,
            blocked_by_pdb=self.blocked_by_pdb,
            lapses=self.lapses,
            held_back=frozenset(self.held_back),
            waits_over=tuple(self.waits_over),
            requeue_at=self.next_run,
            unread=frozenset(self.unread),
        )


def _once_each(pods_on: PodsOn, facts: FreshFacts) -> PodsOn:
    """The pods of nodes, each listed once: nothing changes within a pass, in which several ask for the same node."""
    known: dict[str, Sequence[Pod]] = {}

    def listed(name: str) -> Sequence[Pod]:
        pods = known.get(name)
        if pods is None:
            pods = known[name] = facts[name].pods if name in facts and not facts[name].problem else pods_on(name)
        return pods

    return listed
