"""One look at the objects: what is where, what is to be done now, and when to look again."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Literal

from karpool.cluster.nodes import with_claims
from karpool.disruption.pdbs import PdbLimits
from karpool.execution.actions import Action, Kind, RecordEvent, SetClaimCondition
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import Attempt, State, after_attempt
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import condition

TOLD_FOR: Final = timedelta(minutes=2)
PodsOn = Callable[[str], Sequence[Pod]]


class Turn:
    """Collects the actions of one look; memory goes on into the next state as far as it is still needed."""

    def __init__(
        self,
        objects: Objects,
        state: State,
        now: datetime,
        settings: ExecutionSettings,
        *,
        pods_on: PodsOn | None = None,
        pdbs: PdbLimits | None = None,
    ) -> None:
        self.objects = objects
        self.state = state
        self.now = now
        self.settings = settings
        self.pods_on = pods_on or self._find_pods
        self._pdbs = pdbs
        self._tasks: list[Action] = []
        self._events: list[Action] = []
        self.held_by_budget = False
        self.wake: datetime | None = None
        self.evictions: dict[str, Attempt] = {}
        self.terminations: dict[str, datetime] = {}
        self.missing: dict[str, datetime] = {}
        self.told = {key: until for key, until in state.told.items() if now < until}

    def _find_pods(self, node: str) -> Sequence[Pod]:
        return self._by_node.get(node, ())

    @cached_property
    def _by_node(self) -> dict[str, list[Pod]]:
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self.objects.pods:
            if pod.spec.node_name:
                found[pod.spec.node_name].append(pod)
        return found

    @cached_property
    def claims(self) -> dict[str, NodeClaim]:
        """The claims by name."""
        return {claim.name: claim for claim in self.objects.node_claims}

    @cached_property
    def claim_of(self) -> dict[str, NodeClaim]:
        """The claims by the names of their nodes."""
        paired = with_claims(self.objects.nodes, self.objects.node_claims)
        return {node.name: claim for node, claim in paired if claim is not None}

    @cached_property
    def nodes_of(self) -> dict[str, list[Node]]:
        """The nodes by the names of their claims."""
        found: dict[str, list[Node]] = {}
        for node in self.objects.nodes:
            claim = self.claim_of.get(node.name)
            if claim is not None:
                found.setdefault(claim.name, []).append(node)
        return found

    @cached_property
    def pdbs(self) -> PdbLimits:
        """The PodDisruptionBudgets."""
        return self._pdbs or PdbLimits(self.objects.pod_disruption_budgets)

    def do(self, *actions: Action) -> None:
        """Have something done now."""
        self._tasks += actions

    @property
    def actions(self) -> tuple[Action, ...]:
        """What is to be done, deeds before words: who is always cut short still gets somewhere."""
        return (*self._tasks, *self._events)

    def look_again(self, moment: datetime) -> None:
        """Look again at a moment, if that is still to come."""
        if moment > self.now and (self.wake is None or moment < self.wake):
            self.wake = moment

    def tell(
        self, kind: Kind, name: str, reason: str, message: str, level: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Record an event, unless the same was told a moment ago."""
        key = (kind, name, reason)
        if key not in self.told:
            self.told[key] = self.now + TOLD_FOR
            self._events.append(RecordEvent(kind, name, reason, message, level))

    def note(
        self, claim: NodeClaim, kind: str, status: Literal["True", "False", "Unknown"], reason: str, message: str = ""
    ) -> None:
        """Write a condition of a claim unless it says that already."""
        held = condition(claim.status.conditions, kind)
        if held is None or (held.status, held.reason) != (status, reason):
            self.do(SetClaimCondition(claim.name, kind, status, reason, message))

    def attempt(self, pod: Pod) -> bool:
        """Whether it is time to ask for a pod's departure; if so, the next time is put off."""
        before = self.state.evictions.get(pod.metadata.uid)
        ready = before is None or self.now >= before.again
        after = after_attempt(before, self.now) if ready else before
        if after is not None:
            self.evictions[pod.metadata.uid] = after
            self.look_again(after.again)
        return ready

    def next_state(self) -> State:
        """What to remember until the next look."""
        return State(
            evictions=self.evictions,
            terminations=self.terminations,
            missing=self.missing,
            nominations={name: until for name, until in self.state.nominations.items() if self.now < until},
            told=self.told,
            held_by_budget=self.held_by_budget,
            wake=self.wake,
        )
