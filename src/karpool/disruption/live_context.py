"""A situation that lives on from pass to pass: what is known of a node is forgotten only when it may have changed."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from karpool.disruption.context import DecisionContext
from karpool.disruption.node_facts import NodeFactsCache
from karpool.disruption.pdbs import PdbLimits

REFRESH: Final = timedelta(minutes=5)
"""How long it may go unnoticed that a node drifts by its age alone."""


class LiveDecisionContext(DecisionContext):
    """A situation on a snapshot that somebody else keeps up to date; `renew` brings it to another moment."""

    def renew(
        self,
        now: datetime,
        pdbs: PdbLimits,
        *,
        touched: Collection[int],
        guarded: Collection[int],
        in_command: Collection[str],
        nominated: Collection[str],
    ) -> None:
        """Look at the cluster as it is now.

        `touched`: rows of nodes that changed, or whose pods did; `guarded`: those where only budgets of pods did.
        """
        if now - self._refreshed >= REFRESH:
            self._refreshed = now
            self._drifts.clear()
        rows = self.snapshot.nodes.rows
        others = self.in_command.symmetric_difference(in_command) | self.nominated.symmetric_difference(nominated)
        self.now = now
        self.in_command, self.nominated = frozenset(in_command), frozenset(nominated)
        self.pools = {pool.name: pool for pool in self.snapshot.objects.node_pools}
        if not self._node_facts.fits(self.pools, self.catalog):
            self._node_facts = NodeFactsCache(self.snapshot.nodes, self.pools, self.catalog)
        self.pdbs = pdbs
        self.pending, self.leaving, self.stranded = set(), set(), []
        self._holds.clear()
        self._open_to.clear()
        for row in touched:
            state = self.snapshot.nodes.states[row]
            if state is not None:
                self._drifts.pop(state.name, None)
        self.forget(touched)
        self.ask_again({*guarded, *(rows[name] for name in others if name in rows)})
        self._forget_fleeting()
        self._seat_waiting_pods()
        # Pods may have been given room elsewhere, or not any more; and one that is guarded for a while may be over it.
        also = self._seated_rows() | self._leaving_rows() | self._guarded
        self.forget(also)
        self.changed = also.union(touched)

    def rows(self) -> list[int]:
        """The rows of nodes that a method could choose: one whose window is shut goes for drift alone."""
        drifted = self._node_facts.drifted()
        shut = (self.closed > drifted).tolist()
        return [row for row in self.snapshot.nodes.rows.values() if not shut[row]]

    def next_opening(self) -> datetime | None:
        """When the next node whose window is shut may take part again."""
        return self._node_facts.next_opening(self.now)

    changed: set[int] = set()
    """Rows that the last renewal looked at anew."""
    _refreshed = datetime.min.replace(tzinfo=UTC)

    def _forget_fleeting(self) -> None:
        for answers, row in self._fleeting:
            answers.pop(row, None)
        self._fleeting = []

    def _seated_rows(self) -> set[int]:
        pods = self.snapshot.pods
        return {int(pods.node_of[pods.rows[key]]) for key in self.pending | self.leaving}
