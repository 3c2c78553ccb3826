"""The harm controller: looks at the pods that commands moved, and writes on pools what became of them."""

from collections import defaultdict

from karpool.controller.session import Session
from karpool.disruption.brakes.harm import HarmedPod, harmed_by_moves, watched
from karpool.disruption.brakes.ledger import LedgerEntry, ledger_of
from karpool.disruption.brakes.owned_pods import OwnedPods
from karpool.execution.harm_check import judge_pools
from karpool.execution.refused_evictions import refused_evictions
from karpool.execution.tickets import ticket_of
from karpool.model.annotations import AnnotationError
from karpool.model.labels import DISRUPTIONS, HARM
from karpool.model.nodepool import NodePool


class HarmController:
    """Looks every now and then; pods are read only while there are moves to look after."""

    def __init__(self, session: Session, pods: OwnedPods) -> None:
        """`pods`: all that there are."""
        self.session = session
        self._pods = pods
        self.clock = session.clock

    def start(self) -> None:
        """Begin to look."""
        self.clock.after(self.session.intervals.refresh, self._look)

    def _look(self) -> None:
        session = self.session
        if not session.alive:
            return
        self.clock.after(session.intervals.refresh, self._look)
        pools = [pool for pool in session.store.pools if pool.metadata.annotations.keys() & {DISRUPTIONS, HARM}]
        # What is in doubt is not held against anybody, nor is anybody let off.
        if not pools or session.doubts():
            return
        claims = session.store.claims.listed()
        under_way = {ticket.id for claim in claims if (ticket := ticket_of(claim)) is not None}
        now = self.clock.earliest
        settings = session.settings.brakes
        # Ledgers are tidied whether or not the check is on.
        harmed = self._harmed(pools) if settings.harmed_pods else {}
        session.execute(tuple(judge_pools(pools, harmed, under_way, settings, now)))

    def _harmed(self, pools: list[NodePool]) -> dict[str, list[HarmedPod]]:
        session, now = self.session, self.clock.earliest
        after = session.settings.brakes.harm_after
        harmed = defaultdict[str, list[HarmedPod]](list)
        entries = [(pool.name, entry) for pool in pools for entry in _entries(pool) if watched(entry, after, now)]
        for name, pod in harmed_by_moves(entries, self._pods, after, now):
            harmed[name].append(pod)
        # Pods that wait for others to be ready are not refused by anybody.
        claims = (claim for claim in session.store.claims if claim.status.node_name not in session.state.held_back)
        for name, pod in refused_evictions(claims, session.pods_on, after, now):
            harmed[name].append(pod)
        return harmed


def _entries(pool: NodePool) -> tuple[LedgerEntry, ...]:
    try:
        return ledger_of(pool)
    except AnnotationError:
        return ()
