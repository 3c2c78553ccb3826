"""What people do to a cluster meanwhile; most of it they take back when the storm is over."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from karpool.model.labels import DO_NOT_DISRUPT, HARM, PAUSED
from karpool.model.pod import Pod
from karpool.model.workloads import ConfigMap
from karpool.virtual.changes import with_annotation
from karpool.virtual.cluster import VirtualCluster
from karpool.wire.objects import Metadata

Deed = Callable[[VirtualCluster], None]


def draw_deed(rng: random.Random, until: float, *, pools: bool) -> Deed:
    """Something that somebody does, and takes back at a time."""
    choice = random.Random(rng.random())
    anywhere = (_protect_a_pod, _protect_a_node, _pause_everything)
    with_pools = (_change_a_template, _pause_a_pool)
    return partial(rng.choice((*anywhere, *with_pools) if pools else anywhere), choice, until)


def _protect_a_pod(rng: random.Random, until: float, cluster: VirtualCluster) -> None:
    """Somebody marks a running pod, and takes that back later."""
    pods: list[Pod] = [pod for pod in cluster.store.pods if pod.bound and pod.active and not pod.is_daemon]
    if pods:
        chosen = rng.choice(pods)
        annotate(cluster, "pods", chosen.key, DO_NOT_DISRUPT, "true")
        cluster.queue.at(until, partial(annotate, cluster, "pods", chosen.key, DO_NOT_DISRUPT, None))


def _protect_a_node(rng: random.Random, until: float, cluster: VirtualCluster) -> None:
    nodes = cluster.store.nodes.listed()
    if nodes:
        chosen = rng.choice(nodes)
        annotate(cluster, "nodes", chosen.key, DO_NOT_DISRUPT, "true")
        cluster.queue.at(until, partial(annotate, cluster, "nodes", chosen.key, DO_NOT_DISRUPT, None))


def _pause_a_pool(rng: random.Random, _until: float, cluster: VirtualCluster) -> None:
    """Somebody wants no disruption in a pool for a while."""
    name = rng.choice(cluster.store.pools.listed()).name
    annotate(cluster, "pools", name, PAUSED, "somebody looks into something")
    cluster.queue.after(rng.uniform(30, 400), partial(annotate, cluster, "pools", name, PAUSED, None))


def _pause_everything(rng: random.Random, _until: float, cluster: VirtualCluster) -> None:
    pause = ConfigMap(metadata=Metadata(name="karpool-pause", namespace="karpool"))
    cluster.store.pauses.put(pause)
    cluster.queue.after(rng.uniform(30, 400), partial(cluster.store.pauses.remove, pause.key))


def _change_a_template(rng: random.Random, _until: float, cluster: VirtualCluster) -> None:
    """Nodes of a pool are to look different from now on: those that there are have drifted."""
    pool = rng.choice(cluster.store.pools.listed())
    metadata = replace(pool.spec.template.metadata, labels={"generation": str(rng.randrange(1000))})
    template = replace(pool.spec.template, metadata=metadata)
    cluster.store.pools.put(replace(pool, spec=replace(pool.spec, template=template)))


def forgive_harm(cluster: VirtualCluster) -> None:
    """Somebody has looked at a pool that stopped itself, and lets it go on."""
    for pool in cluster.store.pools.listed():
        annotate(cluster, "pools", pool.name, HARM, None)


def annotate(cluster: VirtualCluster, kind: str, key: str, name: str, value: str | None) -> None:
    store: Any = getattr(cluster.store, kind)
    obj = store.get(key)
    if obj is not None:
        store.put(with_annotation(obj, name, value))
