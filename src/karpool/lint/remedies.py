"""Clusters as they would be if one thing were otherwise."""

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from karpool.model.labels import BUDGETS, DO_NOT_DISRUPT
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod


def with_weight(objects: Objects, *, name: str, weight: int | None) -> Objects:
    return _with_pool(objects, name, lambda pool: replace(pool, spec=replace(pool.spec, weight=weight)))


def without_budgets(objects: Objects, *, name: str) -> Objects:
    """A pool that lets any number of its nodes go, by its spec and by its annotation."""

    def opened(pool: NodePool) -> NodePool:
        annotations = pool.metadata.annotations
        if BUDGETS in annotations:
            annotations = {**annotations, BUDGETS: "[]"}
        spec = replace(pool.spec, disruption=replace(pool.spec.disruption, budgets=()))
        return replace(pool, spec=spec, metadata=replace(pool.metadata, annotations=annotations))

    return _with_pool(objects, name, opened)


def without_pdbs(objects: Objects, *, keys: Collection[str]) -> Objects:
    left = tuple(pdb for pdb in objects.pod_disruption_budgets if pdb.key not in keys)
    return replace(objects, pod_disruption_budgets=left)


def without_protection(objects: Objects, *, pods: Collection[str]) -> Objects:
    """Pods without do-not-disrupt."""

    def freed(pod: Pod) -> Pod:
        annotations = {key: value for key, value in pod.metadata.annotations.items() if key != DO_NOT_DISRUPT}
        return replace(pod, metadata=replace(pod.metadata, annotations=annotations))

    return with_pods(objects, pods, freed)


def with_pods(objects: Objects, keys: Collection[str], change: Callable[[Pod], Pod]) -> Objects:
    return replace(objects, pods=tuple(change(pod) if pod.key in keys else pod for pod in objects.pods))


def _with_pool(objects: Objects, name: str, change: Callable[[NodePool], NodePool]) -> Objects:
    pools: Iterable[NodePool] = (change(pool) if pool.name == name else pool for pool in objects.node_pools)
    return replace(objects, node_pools=tuple(pools))
