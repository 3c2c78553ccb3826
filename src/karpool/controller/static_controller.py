"""The controller of static pools: keeps as many nodes as `replicas` says, pod or no pod."""

from typing import Final

from karpool.controller.session import Session
from karpool.execution.actions import Action, CreateClaim, DeleteClaim, RecordEvent
from karpool.execution.static_pools import missing_claims, surplus_claims
from karpool.model.labels import NODEPOOL
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod

_AGAIN: Final = 30.0
"""How often pools are looked at without an occasion: a limit or a pause may have kept them from what they want."""


class StaticController:
    """Looks at static pools when one of them, or one of their claims, has changed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.store = session.store
        self.clock = session.clock
        self._queued = False

    def start(self) -> None:
        """Look at all pools, now and again."""
        if self.session.alive:
            self._soon()
            self.clock.after(_AGAIN, self.start)

    def pool(self, new: NodePool | None) -> None:
        """Note a pool that changed."""
        if new is not None and new.static:
            self._soon()

    def claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        """Note a claim that came or went, or is about to."""
        claim = old if new is None else new
        pool = None if claim is None else self.store.pools.get(claim.metadata.labels.get(NODEPOOL, ""))
        if pool is not None and pool.static:
            self._soon()

    def _soon(self) -> None:
        if not self._queued and self.session.settings.static_capacity:
            self._queued = True
            self.clock.after(self.session.intervals.latency, self._reconcile)

    def _reconcile(self) -> None:
        self._queued = False
        if not self.session.alive:
            return
        for pool in self.store.pools.listed():
            if pool.static and not pool.unreadable:
                self.session.execute(self._changes(pool))

    def _changes(self, pool: NodePool) -> list[Action]:
        session, now = self.session, self.clock.moment
        claims = self.store.claims.listed()
        # One that cannot be read may be of this pool: nobody knows how many there are.
        if any(claim.unreadable for claim in claims):
            return []
        daemons = session.cluster_state.snapshot.daemons
        created: list[Action] = [CreateClaim(claim) for claim in missing_claims(pool, claims, daemons, now)]
        surplus = surplus_claims(pool, claims, self._pods_of, now)
        if not surplus:
            return created
        stop = session.stops(self.clock.earliest).halting(pool.name)
        if stop is not None:
            message = f"{len(surplus)} nodes are to go, and stay: {stop.reason.object} {stop.reason.message}"
            return [RecordEvent("NodePool", pool.name, "DisruptionBlocked", message)]
        return [DeleteClaim(claim.name, claim.metadata.uid) for claim in surplus]

    def _pods_of(self, claim: NodeClaim) -> list[Pod]:
        name = claim.status.node_name or self.session.cluster_state.node_name(claim)
        return self.session.pods_on(name) if name else []
