"""The controller of static pools: keeps as many nodes as `replicas` says, pod or no pod."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from karpool.controller.session import Session
from karpool.disruption.brakes.owned_pods import OwnedPods
from karpool.disruption.brakes.stop import Stop
from karpool.execution.actions import CreateClaim, DeleteClaim, NoteDisruption, RecordEvent
from karpool.execution.fresh_facts import FreshFacts, unknown
from karpool.execution.ledgers import noted
from karpool.execution.static_pools import missing_claims, surplus_claims
from karpool.model.labels import NODEPOOL
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.provisioning.claims import claim_name

_AGAIN: Final = 30.0
"""How often pools are looked at without an occasion: a limit or a pause may have kept them from what they want."""


class StaticController:
    """Looks at static pools when one of them, or one of their claims, has changed."""

    def __init__(self, session: Session, pods: OwnedPods) -> None:
        """`pods`: all that there are."""
        self.session = session
        self._pods = pods
        self.store = session.store
        self.clock = session.clock
        self._queued = False
        self._asked: dict[str, datetime] = {}
        """By uid: claims that were asked to go, and until when that may not have been seen yet."""

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
                self._scale_up(pool)
                self._scale_down(pool.name, {})

    def _scale_up(self, pool: NodePool) -> None:
        claims = self._claims()
        daemons = self.session.cluster_state.snapshot.daemons
        missing = () if claims is None else missing_claims(pool, claims, daemons, self.clock.moment)
        self.session.execute([CreateClaim(claim) for claim in missing])

    def _scale_down(self, name: str, facts: FreshFacts) -> None:
        """Delete surplus nodes of a pool, once those that are to go have been read from the API server."""
        session, now = self.session, self.clock.moment
        pool, claims = self.store.pools.get(name), self._claims()
        if not session.alive or pool is None or claims is None or self._awaits(claims):
            return
        told = session.settings.by_deletion_cost
        surplus = surplus_claims(pool, claims, partial(self._pods_of, facts), now, by_deletion_cost=told)
        stop = self._stop(name) if surplus else None
        if stop is not None:
            self._tell(name, f"{len(surplus)} nodes are to go, and stay: {stop.reason.object} {stop.reason.message}")
            return
        nodes = {node: claim for claim in surplus if (node := self._node_of(claim))}
        unread = sorted(nodes.keys() - facts.keys())
        if unread:
            # What is read of them may let others go in their place, which are read then: there are only so many.
            session.facts.read(unread, lambda fresh: self._scale_down(name, {**facts, **fresh}))
            return
        kept = next((reason for node in sorted(facts) if (reason := unknown(node, facts[node])) is not None), None)
        if kept is not None:
            self._tell(name, f"{kept.object} stays: {kept.message}")
        self._asked |= {claim.metadata.uid: now + timedelta(seconds=_AGAIN) for claim in surplus}
        session.execute([*self._notes(pool, nodes, facts), *_deletions(surplus)], in_order=True)

    def _claims(self) -> tuple[NodeClaim, ...] | None:
        """All claims; None if one cannot be read, which may be of any pool: nobody knows how many there are."""
        claims = self.store.claims.listed()
        return None if any(claim.unreadable for claim in claims) else claims

    def _awaits(self, claims: Iterable[NodeClaim]) -> bool:
        """Whether a claim that was to go is not seen to go yet: others would go in its place."""
        now, staying = self.clock.moment, {claim.metadata.uid for claim in claims if not claim.terminating}
        self._asked = {uid: until for uid, until in self._asked.items() if uid in staying and now < until}
        return bool(self._asked)

    def _stop(self, pool: str) -> Stop | None:
        """What keeps the surplus nodes of a pool: a brake that halts commands, or a doubt about what is known."""
        doubts = self.session.doubts()
        return doubts[0] if doubts else self.session.halts(self.clock.earliest).halting(pool)

    def _notes(self, pool: NodePool, claims: Mapping[str, NodeClaim], facts: FreshFacts) -> Iterator[NoteDisruption]:
        """What goes, for the ledger of the pool; `claims`: by name of a node."""
        now = self.clock.earliest
        yield from noted(
            claim_name(pool.name, now.isoformat(), *claims),
            "static",
            claims,
            [pool],
            pods_on=lambda node: facts[node].pods,
            now=now,
            everywhere=self._pods,
            committed=True,
        )

    def _tell(self, pool: str, message: str) -> None:
        self.session.execute([RecordEvent("NodePool", pool, "DisruptionBlocked", message)])

    def _node_of(self, claim: NodeClaim) -> str:
        return claim.status.node_name or self.session.cluster_state.node_name(claim)

    def _pods_of(self, facts: FreshFacts, claim: NodeClaim) -> Sequence[Pod] | None:
        name = self._node_of(claim)
        if name not in facts:
            return self.session.pods_on(name) if name else []
        return facts[name].pods if unknown(name, facts[name]) is None else None


def _deletions(claims: Iterable[NodeClaim]) -> list[DeleteClaim]:
    return [DeleteClaim(claim.name, claim.metadata.uid) for claim in claims]
