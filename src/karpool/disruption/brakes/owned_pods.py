"""All pods by the controllers that made them, kept in step by changes of pods.

Of every controller it is known at once how many pods it has and which are not well, without reading them all.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from karpool.disruption.brakes.wellness import unwell
from karpool.model.pod import Pod

_DIGITS: Final = 12


def owner_key(pod: Pod) -> str | None:
    """A few characters that stand for a pod's controller; None for a pod that nobody makes again."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return _key(pod.metadata.namespace, owner.kind, owner.name, owner.uid)
    return None


@lru_cache(maxsize=1 << 16)
def _key(namespace: str, kind: str, name: str, uid: str) -> str:
    return hashlib.sha256(f"{namespace}/{kind}/{name}/{uid}".encode()).hexdigest()[:_DIGITS]


@dataclass(slots=True)
class _Owned:
    pods: dict[str, Pod] = field(default_factory=dict)
    unwell: dict[str, Pod] = field(default_factory=dict)
    replicas: int = 0


class OwnedPods:
    """The pods of every controller by key, whatever became of them."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._of: dict[str, _Owned] = {}
        for pod in pods:
            self.change(None, pod)

    def change(self, old: Pod | None, new: Pod | None) -> None:
        """Note that a pod came, changed or went."""
        before, after = None if old is None else owner_key(old), None if new is None else owner_key(new)
        if old is not None and before is not None:
            self._of[before].replicas -= is_replica(old)
            if before != after:
                self._take_out(before, old.key)
        if new is not None and after is not None:
            self._put_in(after, new)

    def _put_in(self, owner: str, pod: Pod) -> None:
        owned, key = self._of.get(owner), pod.key
        if owned is None:
            owned = self._of[owner] = _Owned()
        owned.replicas += is_replica(pod)
        owned.pods[key] = pod
        if unwell(pod) is not None:
            owned.unwell[key] = pod
        else:
            owned.unwell.pop(key, None)

    def _take_out(self, owner: str, key: str) -> None:
        owned = self._of[owner]
        owned.unwell.pop(key, None)
        del owned.pods[key]
        if not owned.pods:
            del self._of[owner]

    def of(self, owner: str) -> Mapping[str, Pod]:
        """The pods of a controller."""
        return self._of.get(owner, _NONE).pods

    def unwell(self, owner: str) -> Mapping[str, Pod]:
        """Those of them with which something is wrong."""
        return self._of.get(owner, _NONE).unwell

    def replicas(self, owner: str, but: Collection[str] = ()) -> int:
        """How many of them there should be again when they go, those of some keys aside."""
        owned = self._of.get(owner, _NONE)
        return owned.replicas - sum(is_replica(owned.pods[key]) for key in owned.pods.keys() & but)


_NONE: Final = _Owned()


def is_replica(pod: Pod) -> bool:
    """Whether a pod counts as one of those that its controller keeps; pods of Jobs end by themselves."""
    return pod.active and not pod.owned_by("Job")
