"""Writes deletion costs on pods once a minute, so that a scale-down takes those of nodes that are to go.

Without the feature it removes what an earlier run left behind, and does nothing more.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from karpool.controller.session import Session
from karpool.disruption.context import DecisionContext
from karpool.disruption.deletion_costs import CostWrites, cost_writes, leftovers, node_costs
from karpool.disruption.memo import Memo
from karpool.disruption.policies_in_force import Policies
from karpool.execution.actions import SetDeletionCost

_IN_DOUBT: Final = 1.0
"""How soon to look again while what is known cannot be trusted, in seconds."""
_LONGEST: Final = timedelta(minutes=5)
"""How long costs hold while nothing changes: budgets open and close with time."""


class DeletionCostController:
    """Looks again when something has changed; it hands writes over and does not wait for them."""

    def __init__(self, session: Session, policies: Callable[[datetime], Policies]) -> None:
        self.session = session
        self._policies = policies
        self._memo: Memo | None = None
        self._seen: tuple[object, int] | None = None
        self._holds_until = session.clock.moment

    def start(self) -> None:
        """Look for the first time."""
        self.session.clock.after(self.session.intervals.latency, self._look)

    def _look(self) -> None:
        session = self.session
        if not session.alive:
            return
        delay = session.intervals.deletion_costs
        if session.doubts():
            delay = _IN_DOUBT
        elif not session.settings.pod_deletion_costs:
            left = leftovers(session.cluster_state.current())
            self._hand_over(left)
            if not left.pods:
                return
        elif self._moved():
            self._write()
        session.clock.after(delay, self._look)

    def _moved(self) -> bool:
        """Whether anything has changed since the last time, or that is long ago."""
        snapshot = self.session.cluster_state.current()
        moved = self._seen is None or self._seen[0] is not snapshot or self._seen[1] != snapshot.version
        return moved or self.session.clock.moment >= self._holds_until

    def _write(self) -> None:
        session, now = self.session, self.session.clock.earliest
        policies = self._policies(now)
        context = DecisionContext(session.engine(), policies, now, self._memo)
        writes = cost_writes(context.snapshot, node_costs(context))
        self._memo = context.memo
        self._seen = None if writes.more else (context.snapshot, context.snapshot.version)
        self._holds_until = self._next_change(policies)
        self._hand_over(writes)

    def _next_change(self, policies: Policies) -> datetime:
        """When time alone may let a node go that was kept: pods that it waits for have come, a brake lets go."""
        session, now = self.session, self.session.clock.moment
        released = policies.stops.next_release(now)
        moments = [until for until in (released, *session.state.nominations.values()) if until is not None]
        return min([now + _LONGEST, *(moment for moment in moments if moment > now)])

    def _hand_over(self, writes: CostWrites) -> None:
        self.session.execute([SetDeletionCost(pod.key, pod.uid, pod.node, pod.cost) for pod in writes.pods])
