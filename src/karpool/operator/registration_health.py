"""Whether the nodes of a pool register: two failures among the last four outcomes make it unhealthy."""

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
    def __init__(self) -> None:
        self._pools: dict[str, tuple[str, int]] = {}
        self._outcomes: dict[str, deque[bool]] = {}
        self._open: dict[str, NodeClaim] = {}
        self._closed: set[str] = set()
        self._started = False

    def observe(self, pools: Iterable[NodePool], claims: Iterable[NodeClaim], now: datetime) -> None:
        """Note claims that registered or failed to; claims of before the first call do not count."""
        self._reset_changed(pools)
        current = {claim.metadata.uid: claim for claim in claims}
        for uid, claim in current.items():
            if uid not in self._closed:
                self._evaluate(claim)
        for uid, claim in self._open.items():
            if uid not in current and _timed_out(claim, now):
                self._note(claim, registered=False)
        self._closed &= current.keys()
        self._open = {uid: claim for uid, claim in current.items() if uid not in self._closed}
        self._started = True

    def healthy(self, pool: str) -> bool | None:
        """Whether nodes of the pool register; None: unknown."""
        outcomes = self._outcomes.get(pool, ())
        if sum(not registered for registered in outcomes) >= TOO_MANY:
            return False
        return True if any(outcomes) else None

    def _reset_changed(self, pools: Iterable[NodePool]) -> None:
        current = {pool.name: (pool.metadata.uid, pool.metadata.generation) for pool in pools}
        self._outcomes = {
            name: outcomes for name, outcomes in self._outcomes.items() if self._pools[name] == current.get(name)
        }
        self._pools = current

    def _evaluate(self, claim: NodeClaim) -> None:
        """Note whether a claim registered or failed to; one that was deleted early does not count."""
        deleted = claim.metadata.deletion_timestamp
        registered = claim.is_true(REGISTERED)
        if registered or deleted is not None:
            self._closed.add(claim.metadata.uid)
        if registered or (deleted is not None and _timed_out(claim, deleted)):
            self._note(claim, registered=registered)

    def _note(self, claim: NodeClaim, *, registered: bool) -> None:
        pool = claim.metadata.labels.get(NODEPOOL, "")
        if self._started and pool in self._pools:
            self._outcomes.setdefault(pool, deque(maxlen=REMEMBERED)).append(registered)


def _timed_out(claim: NodeClaim, ended: datetime) -> bool:
    created = claim.metadata.creation_timestamp
    return created is not None and ended - created >= LAUNCH_TIMEOUT
