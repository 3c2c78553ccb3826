"""How long things took in a recorded cluster, so that they take as long in a replay: medians of what was seen."""

import statistics
from collections import defaultdict
from typing import Any, Final

from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.recording import records as r
from karpool.recording.history import CLAIM, History, key_of

_DIGITS: Final = 1


class DelayLearner:
    """Takes the records of a recording, each after `history` has it; `medians` has those delays that were seen."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._begin: float | None = None
        self._seen: defaultdict[str, list[float]] = defaultdict(list)
        self._since: dict[tuple[str, str | int], float] = {}
        """Since when something is under way: what, and of which object."""

    def medians(self) -> dict[str, float]:
        """In seconds, by the names of the timings of a scenario."""
        return {name: round(statistics.median(found), _DIGITS) for name, found in self._seen.items()}

    def took(self, name: str, seconds: float) -> None:
        """Something took so long."""
        self._seen[name].append(seconds)

    def take(self, record: r.TimedRecord) -> None:
        self._begin = record.t if self._begin is None else self._begin
        match record:
            case r.Put() | r.Changed():
                self._object(record)
            case r.Gone(kind="NodeClaim"):
                self._ends("termination", record.key, record.t)
            case r.Bound():
                if not self._history.template_of(record.pod).is_daemon:
                    self._begins("pod_start", record.pod, record.t)
            case r.Ready():
                self._ends("pod_start", record.pod, record.t)
            case r.Leaving():
                self._begins("pod_stop", record.pod, record.t)
            case r.Died():
                self._ends("pod_stop", record.pod, record.t)
                self._since.pop(("pod_start", record.pod), None)
            case _:
                pass

    def _object(self, record: r.Put | r.Changed) -> None:
        key = record.key if isinstance(record, r.Changed) else key_of(record.object)
        if record.kind == CLAIM:
            self._claim(self._history.decoded(CLAIM, key), record.t, new=isinstance(record, r.Put))
        elif record.kind == "Node":
            self._node(self._history.decoded("Node", key), record.t, new=isinstance(record, r.Put))

    def _claim(self, claim: NodeClaim, now: float, *, new: bool) -> None:
        if new:
            self._begins("launch", claim.key, now)
        if claim.is_true("Launched") and self._ends("launch", claim.key, now):
            self._begins("registration", claim.status.provider_id, now)
        if claim.is_true("InstanceTerminating"):
            self._begins("termination", claim.key, now)

    def _node(self, node: Node, now: float, *, new: bool) -> None:
        if new and self._ends("registration", node.spec.provider_id, now):
            self._begins("readiness", node.name, now)
        if node.ready:
            self._ends("readiness", node.name, now)

    def _begins(self, what: str, key: str | int, now: float) -> None:
        """Something begins; what was under way already when recording began is not measured."""
        if now != self._begin:
            self._since.setdefault((what, key), now)

    def _ends(self, what: str, key: str | int, now: float) -> bool:
        since: Any = self._since.pop((what, key), None)
        if since is not None:
            self._seen[what].append(now - since)
        return since is not None
