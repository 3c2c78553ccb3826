"""All that a plan is made of, as a value that can be changed and sent to another process."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self, TypeVar

from msgspec.structs import replace as changed

from karpool.catalog.instance_types import Catalog
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.options import Options
from karpool.wire.objects import Object
from karpool.wire.problems import suggestion

Entry = TypeVar("Entry", bound=Object)


class KnobError(ValueError):
    """A knob that cannot be turned: which field, and why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)  # both, because worker processes pickle it
        self.field = field

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


@dataclass(frozen=True, slots=True)
class Question:
    """A cluster, what may be launched, and what is decided by, at a moment."""

    objects: Objects
    catalog: Catalog
    settings: DisruptionSettings
    options: Options
    now: datetime

    def context(self) -> DecisionContext:
        """What a planner needs, on a snapshot of its own."""
        return context_of(self.objects, self.catalog, now=self.now, settings=self.settings, options=self.options)

    def with_settings(self, **settings: Any) -> Self:
        """The question under other settings."""
        return replace(self, settings=replace(self.settings, **settings))

    def with_objects(self, **kinds: Iterable[Object]) -> Self:
        """The question with other objects of some kinds, by their names in `Objects`."""
        return replace(self, objects=changed(self.objects, **{kind: tuple(listed) for kind, listed in kinds.items()}))

    def with_pools(self, name: str | None, change: Callable[[NodePool], NodePool]) -> Self:
        """The question with a NodePool changed, or all of them; node groups stay as they are."""
        pools = {pool.name: pool for pool in self.objects.node_pools}
        own = [pool for pool in pools.values() if not isinstance(pool, NodeGroup)]
        if name is not None and name not in [pool.name for pool in own]:
            raise unknown_object("nodePool", "NodePool", name, [pool.name for pool in own])
        turned = {pool.name: change(pool) for pool in own if name in (None, pool.name)}
        return self.with_objects(node_pools={**pools, **turned}.values())

    def with_pods(self, chosen: Callable[[Pod], bool], change: Callable[[Pod], Pod]) -> Self:
        """The question with some pods changed."""
        return self.with_objects(pods=[change(pod) if chosen(pod) else pod for pod in self.objects.pods])


def unknown_object(field: str, kind: str, name: str, known: Iterable[str]) -> KnobError:
    """The error for a knob that names something that is not there."""
    names = sorted(known)
    return KnobError(field, f"there is no {kind} {name[:100]!r} among {len(names)}{suggestion(name, names)}")


def annotated(entry: Entry, key: str, value: str | None) -> Entry:
    """An object with an annotation, or without it."""
    kept = {name: text for name, text in entry.metadata.annotations.items() if name != key}
    annotations = kept if value is None else {**kept, key: value}
    return changed(entry, metadata=changed(entry.metadata, annotations=annotations))
