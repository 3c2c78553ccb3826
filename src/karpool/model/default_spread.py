"""Topology spread constraints that the scheduler gives to pods without any of their own.

It deduces whom they select: the pods of the Services that select the pod, and of its controller. A pod of which nothing
can be deduced gets none, and so do all pods with a constraint of their own.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.scheduling import SpreadConstraint
from karpool.model.selectors import LabelSelector, SelectorExpression
from karpool.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from karpool.wire.objects import OwnerReference

Owner = ReplicaSet | StatefulSet | ReplicationController
OwnerLookup = Callable[[str, str], Owner | None]
"""A controller by its kind and its key."""

OWNERS: Final = ("ReplicaSet", "StatefulSet", "ReplicationController")


class DefaultSpread:
    """Gives pods the constraints of the scheduler; `services` are those of a namespace."""

    def __init__(
        self,
        constraints: tuple[SpreadConstraint, ...],
        services: Callable[[str], Iterable[Service]],
        owner: OwnerLookup,
    ) -> None:
        self._constraints = constraints
        self._services = services
        self._owner = owner

    def applied(self, pod: Pod) -> Pod:
        """The pod as the scheduler sees it."""
        if pod.spec.topology_spread_constraints:
            return pod
        selector = self._selector(pod)
        if selector is None:
            return pod
        given = tuple(replace(constraint, label_selector=selector) for constraint in self._constraints)
        return replace(pod, spec=replace(pod.spec, topology_spread_constraints=given))

    def _selector(self, pod: Pod) -> LabelSelector | None:
        """Whom the constraints of a pod select; None if nothing can be deduced."""
        labels: dict[str, str] = {}
        for service in self._services(pod.metadata.namespace):
            if service.selects(pod.metadata.labels):
                labels |= service.spec.selector or {}
        expressions: tuple[SelectorExpression, ...] = ()
        owner = self._controller(pod)
        if isinstance(owner, ReplicationController):
            labels |= owner.spec.selector
        elif owner is not None and owner.spec.selector is not None:
            # Both have to hold, also where a Service and the controller disagree about a label.
            own = owner.spec.selector
            equal = tuple(SelectorExpression(key, "In", (value,)) for key, value in own.match_labels.items())
            expressions = (*equal, *own.match_expressions)
        return LabelSelector(labels, expressions) if labels or expressions else None

    def _controller(self, pod: Pod) -> Owner | None:
        reference = controller_of(pod)
        return None if reference is None else self._owner(reference.kind, f"{pod.metadata.namespace}/{reference.name}")


def controller_of(pod: Pod) -> OwnerReference | None:
    """The controller of a pod, if it is of a kind that says whom it selects."""
    found = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    return found if found is not None and found.kind in OWNERS else None


def with_default_spread(objects: Objects, constraints: tuple[SpreadConstraint, ...]) -> Objects:
    """The objects, with the constraints of the scheduler on all pods that get them."""
    if not constraints:
        return objects
    every: list[Owner] = [*objects.replica_sets, *objects.stateful_sets, *objects.replication_controllers]
    owners = {(type(owner).__name__, owner.key): owner for owner in every}
    services: dict[str, list[Service]] = {}
    for service in objects.services:
        services.setdefault(service.metadata.namespace, []).append(service)
    spread = DefaultSpread(
        constraints, lambda namespace: services.get(namespace, ()), lambda kind, key: owners.get((kind, key))
    )
    return replace(objects, pods=tuple(map(spread.applied, objects.pods)))
