"""Whether the nodes of a pool register: two failures among the last four outcomes, and something is wrong with it."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from karpool.execution.conditions import REGISTERED
from karpool.execution.settings import LAUNCH_TIMEOUT
from karpool.model.labels import NODEPOOL
from karpool.model.nodepool import NodeClaim, NodePool

REMEMBERED: Final = 4
TOO_MANY: Final = 2


class RegistrationHealth:
    """The last outcomes of each pool; they begin anew when the pool changes, and with this process."""

    def __init__(self) -> None:
        self._pools: dict[str, tuple[str, int]] = {}
        self._outcomes: dict[str, deque[bool]] = {}
        self._open: dict[str, NodeClaim] = {}
        self._closed: set[str] = set()
        self._began = False

    def look(self, pools: Iterable[NodePool], claims: Iterable[NodeClaim], now: datetime) -> None:
        """Take note of claims that have registered, or went without; what was before the first look is history."""
        self._begin_anew(pools)
        there = {claim.metadata.uid: claim for claim in claims}
        for uid, claim in there.items():
            if uid not in self._closed:
                self._judge(claim)
        for uid, claim in self._open.items():
            if uid not in there and _given_up(claim, now):
                self._note(claim, registered=False)
        self._closed &= there.keys()
        self._open = {uid: claim for uid, claim in there.items() if uid not in self._closed}
        self._began = True

    def healthy(self, pool: str) -> bool | None:
        """Whether nodes of the pool register; None as long as nobody can tell."""
        outcomes = self._outcomes.get(pool, ())
        if sum(not registered for registered in outcomes) >= TOO_MANY:
            return False
        return True if any(outcomes) else None

    def _begin_anew(self, pools: Iterable[NodePool]) -> None:
        current = {pool.name: (pool.metadata.uid, pool.metadata.generation) for pool in pools}
        self._outcomes = {name: held for name, held in self._outcomes.items() if self._pools[name] == current.get(name)}
        self._pools = current

    def _judge(self, claim: NodeClaim) -> None:
        """Whether it has registered, or never will; one that was deleted early says nothing about its pool."""
        deleted = claim.metadata.deletion_timestamp
        registered = claim.is_true(REGISTERED)
        if registered or deleted is not None:
            self._closed.add(claim.metadata.uid)
        if registered or (deleted is not None and _given_up(claim, deleted)):
            self._note(claim, registered=registered)

    def _note(self, claim: NodeClaim, *, registered: bool) -> None:
        pool = claim.metadata.labels.get(NODEPOOL, "")
        if self._began and pool in self._pools:
            self._outcomes.setdefault(pool, deque(maxlen=REMEMBERED)).append(registered)


def _given_up(claim: NodeClaim, ended: datetime) -> bool:
    """Whether a claim that never registered had the time to."""
    created = claim.metadata.creation_timestamp
    return created is not None and ended - created >= LAUNCH_TIMEOUT
