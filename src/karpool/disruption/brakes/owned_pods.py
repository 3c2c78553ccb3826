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


def owners_of(old: Pod | None, new: Pod | None) -> tuple[str | None, str | None]:
    """What stands for the controllers of two versions of a pod, which mostly have their owners in common."""
    before = None if old is None else owner_key(old)
    if old is not None and new is not None and old.metadata.owner_references is new.metadata.owner_references:
        return before, before
    return before, None if new is None else owner_key(new)


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
        before, after = owners_of(old, new)
        self.note(old, new, before, after, ill=new is not None and after is not None and unwell(new) is not None)

    def note(self, old: Pod | None, new: Pod | None, before: str | None, after: str | None, *, ill: bool) -> None:
        """Note a change of a pod whose owners were and are these; `ill`: something is wrong with the new one."""
        if old is not None and before is not None:
            self._of[before].replicas -= is_replica(old)
            if before != after:
                self._take_out(before, old.key)
        if new is not None and after is not None:
            self._put_in(after, new, ill=ill)

    def _put_in(self, owner: str, pod: Pod, *, ill: bool) -> None:
        owned, key = self._of.get(owner), pod.key
        if owned is None:
            owned = self._of[owner] = _Owned()
        owned.replicas += is_replica(pod)
        owned.pods[key] = pod
        if ill:
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
