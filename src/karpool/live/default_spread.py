"""Keeps the constraints that the scheduler gives to pods on the pods of a store, as Services and controllers change."""

from collections.abc import Iterable

from msgspec.structs import replace

from karpool.kube.store import Store
from karpool.live import resources as r
from karpool.live.caches import ClusterCaches
from karpool.model.default_spread import DefaultSpread, Owner, controller_of
from karpool.model.pod import Pod
from karpool.model.scheduling import SpreadConstraint
from karpool.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet


class LiveDefaultSpread:
    """Watches what selectors are deduced from; every pod that enters the store gets its constraints."""

    def __init__(self, caches: ClusterCaches, constraints: tuple[SpreadConstraint, ...]) -> None:
        self._pods = caches.store.pods
        self._services: dict[str, dict[str, Service]] = {}
        self._given: set[str] = set()
        services: Store[Service] = Store()
        replica_sets: Store[ReplicaSet] = Store()
        stateful_sets: Store[StatefulSet] = Store()
        controllers: Store[ReplicationController] = Store()
        owners: dict[str, Store[ReplicaSet] | Store[StatefulSet] | Store[ReplicationController]] = {
            "ReplicaSet": replica_sets,
            "StatefulSet": stateful_sets,
            "ReplicationController": controllers,
        }
        self._spread = DefaultSpread(
            constraints,
            lambda namespace: self._services.get(namespace, {}).values(),
            lambda kind, key: owners[kind].get(key),
        )
        self._pods.prepare = self._applied
        self._pods.watch(self._forget)
        services.watch(self._service)
        for store in (replica_sets, stateful_sets, controllers):
            store.watch(self._owner)
        caches.watch(r.SERVICES, services)
        caches.watch(r.REPLICA_SETS, replica_sets)
        caches.watch(r.STATEFUL_SETS, stateful_sets)
        caches.watch(r.REPLICATION_CONTROLLERS, controllers)

    def _applied(self, pod: Pod) -> Pod:
        spread = self._spread.applied(pod)
        if spread is pod:
            self._given.discard(pod.key)
        else:
            self._given.add(pod.key)
        return spread

    def _forget(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            self._given.discard(old.key)

    def _service(self, old: Service | None, new: Service | None) -> None:
        entry = old if new is None else new
        if entry is None or (old is not None and new is not None and old.spec == new.spec):
            return
        known = self._services.setdefault(entry.metadata.namespace, {})
        if new is None:
            known.pop(entry.key, None)
        else:
            known[entry.key] = new
        selectors = [service for service in (old, new) if service is not None]
        self._renew(
            pod
            for pod in self._pods.listed()
            if pod.metadata.namespace == entry.metadata.namespace
            and any(service.selects(pod.metadata.labels) for service in selectors)
        )

    def _owner(self, old: Owner | None, new: Owner | None) -> None:
        entry = old if new is None else new
        if entry is None or (old is not None and new is not None and old.spec.selector == new.spec.selector):
            return
        self._renew(pod for pod in self._pods.listed() if _controls(entry, pod))

    def _renew(self, pods: Iterable[Pod]) -> None:
        """Deduce the selectors of pods anew."""
        for pod in pods:
            bare = pod
            if pod.key in self._given:
                bare = replace(pod, spec=replace(pod.spec, topology_spread_constraints=()))
            if self._spread.applied(bare) != pod:
                self._pods.put(bare)


def _controls(owner: Owner, pod: Pod) -> bool:
    reference = controller_of(pod)
    return (
        reference is not None
        and (reference.kind, reference.name) == (type(owner).__name__, owner.name)
        and pod.metadata.namespace == owner.metadata.namespace
    )
