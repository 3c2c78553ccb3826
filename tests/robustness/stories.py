"""Random stories for small clusters: pools, workloads that grow and shrink, and people who change their minds."""

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from tests.robustness.fault_plan import SHORTAGE, Window
from tests.virtual.worlds import CATALOG, scenario

from karpool.disruption.settings import GLOBAL, PREFIX
from karpool.model.labels import DO_NOT_DISRUPT, PAUSED
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.model.workloads import ConfigMap
from karpool.virtual.changes import with_annotation
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import Curve, CurveStep
from karpool.virtual.scenario import Decisions, Policy, Protection, Scenario, Shortage, Workload
from karpool.wire.duration import Duration
from karpool.wire.objects import Metadata
from karpool.wire.quantity import parse_quantity

BUSY: Final = 900.0
"""When the last fault is over and workloads come to rest, in seconds."""
END: Final = 2100.0
GLOBAL_SHARE: Final = 0.03
_SIZES: Final = ("300m", "700m", "1500m", "3")
_PROTECTIONS: Final = (
    None,
    None,
    Protection(max_unavailable=1),
    Protection(min_available="50%"),
    Protection(max_unavailable=0),
)
_BUDGETS: Final = ("1", "2", "50%", "100%")


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario, and what people do meanwhile: at a time, to the cluster."""

    scenario: Scenario
    policy: Policy
    deeds: tuple[tuple[float, Callable[[VirtualCluster], None]], ...]


def draw_story(rng: random.Random, windows: tuple[Window, ...]) -> Story:
    pools = tuple(_pool(rng, f"pool{number}") for number in range(rng.choice((1, 1, 2))))
    workloads = [_workload(rng, number) for number in range(rng.randint(2, 3))]
    if rng.random() < 0.4:
        workloads.append(_jobs(rng))
    workloads.append(Workload(name="agent", kind="DaemonSet", cpu=parse_quantity("50m")))
    shortages = tuple(
        Shortage(start=_duration(window.start), length=_duration(window.end - window.start), zones=("test-zone-a",))
        for window in windows
        if window.kind == SHORTAGE
    )
    drawn = replace(_BASE, pools=pools, workloads=tuple(workloads), faults=shortages)
    deeds = tuple((rng.uniform(150, BUSY), _deed(rng)) for _ in range(rng.randrange(4)))
    # A global search takes longer than everything else in these stories.
    search = Decisions(search=GLOBAL, effort=0) if rng.random() < GLOBAL_SHARE else Decisions(search=PREFIX)
    return Story(drawn, Policy(decisions=search), deeds)


def open_cluster(story: Story, seed: int) -> VirtualCluster:
    cluster = VirtualCluster(story.scenario, CATALOG, policy=story.policy, seed=seed, starts=False)
    for time, deed in story.deeds:
        cluster.queue.at(time, partial(deed, cluster))
    return cluster


def draw_rates(rng: random.Random) -> dict[str, int]:
    """Limits of an hour, in some stories."""
    if rng.random() < 0.75:
        return {}
    return {"nodesPerHour": rng.randint(1, 3), "evictionsPerHour": rng.randint(2, 8)}


def limit_rates(cluster: VirtualCluster, rates: dict[str, int]) -> None:
    """Give the limits to whoever is made after the cluster's own controller, which never starts."""
    controller = cluster.controller
    brakes = dataclasses.replace(
        controller.settings.brakes,
        most_nodes_per_hour=rates.get("nodesPerHour"),
        most_evictions_per_hour=rates.get("evictionsPerHour"),
    )
    controller.settings = dataclasses.replace(controller.settings, brakes=brakes)


def _duration(seconds: float) -> Duration:
    return Duration(int(seconds) * 10**9)


# -- pools and workloads -----------------------------------------------------------------------------------------------

_POOL: Final = """
pools:
- metadata: {name: general}
  spec:
    template:
      spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "1"}]}
"""
_BASE: Final = scenario("", pools=_POOL)


def _pool(rng: random.Random, name: str) -> NodePool:
    (pool,) = _BASE.pools
    disruption = replace(
        pool.spec.disruption,
        consolidate_after=_duration(rng.choice((0, 15, 60))),
        budgets=(replace(pool.spec.disruption.budgets[0], nodes=rng.choice(_BUDGETS)),),
    )
    old = rng.choice((None, None, None, None, 600, 720 * 3600))
    template = pool.spec.template
    if old is not None:
        template = replace(template, spec=replace(template.spec, expire_after=_duration(old)))
    spec = replace(pool.spec, disruption=disruption, template=template)
    return replace(pool, metadata=replace(pool.metadata, name=name), spec=spec)


def _workload(rng: random.Random, number: int) -> Workload:
    times = sorted(rng.uniform(60, BUSY - 60) for _ in range(rng.randint(1, 3)))
    values = [rng.randint(2, 8), *(rng.randint(0, 8) for _ in times)]
    steps = [CurveStep(after=_duration(at), value=value) for at, value in zip((0, *times), values, strict=True)]
    steps.append(CurveStep(after=_duration(BUSY), value=rng.randint(1, 3)))
    protects = rng.choice(({}, {}, {DO_NOT_DISRUPT: "true"}, {DO_NOT_DISRUPT: "5m"}))
    return Workload(
        name=f"app{number}",
        kind=rng.choice(("Deployment", "Deployment", "StatefulSet")),
        replicas=Curve(steps=tuple(steps)),
        cpu=parse_quantity(rng.choice(_SIZES)),
        memory=parse_quantity(rng.choice(("256Mi", "2Gi"))),
        annotations=protects if rng.random() < 0.5 else {},
        protection=rng.choice(_PROTECTIONS),
        deploys=tuple(_duration(rng.uniform(100, BUSY)) for _ in range(rng.choice((0, 0, 1)))),
    )


def _jobs(rng: random.Random) -> Workload:
    rate = Curve(steps=(CurveStep(after=_duration(0), value=40), CurveStep(after=_duration(BUSY), value=0)))
    return Workload(
        name="job",
        kind="Job",
        replicas=rate,
        runs=_duration(rng.choice((60, 240))),
        cpu=parse_quantity("500m"),
        memory=parse_quantity("256Mi"),
        annotations=rng.choice(({}, {DO_NOT_DISRUPT: "true"})),
    )


# -- deeds -------------------------------------------------------------------------------------------------------------


def _deed(rng: random.Random) -> Callable[[VirtualCluster], None]:
    choice = random.Random(rng.random())
    return partial(
        rng.choice((_protect_a_pod, _protect_a_node, _change_a_template, _pause_a_pool, _pause_everything)), choice
    )


def _protect_a_pod(rng: random.Random, cluster: VirtualCluster) -> None:
    """Somebody marks a running pod, and takes that back later."""
    pods: list[Pod] = [pod for pod in cluster.store.pods if pod.bound and pod.active and not pod.is_daemon]
    if pods:
        chosen = rng.choice(pods)
        _annotate(cluster, "pods", chosen.key, DO_NOT_DISRUPT, "true")
        cluster.queue.at(BUSY, partial(_annotate, cluster, "pods", chosen.key, DO_NOT_DISRUPT, None))


def _protect_a_node(rng: random.Random, cluster: VirtualCluster) -> None:
    nodes = cluster.store.nodes.listed()
    if nodes:
        chosen = rng.choice(nodes)
        _annotate(cluster, "nodes", chosen.key, DO_NOT_DISRUPT, "true")
        cluster.queue.at(BUSY, partial(_annotate, cluster, "nodes", chosen.key, DO_NOT_DISRUPT, None))


def _pause_a_pool(rng: random.Random, cluster: VirtualCluster) -> None:
    """Somebody wants no disruption in a pool for a while."""
    name = rng.choice(cluster.store.pools.listed()).name
    _annotate(cluster, "pools", name, PAUSED, "somebody looks into something")
    cluster.queue.after(rng.uniform(30, 400), partial(_annotate, cluster, "pools", name, PAUSED, None))


def _pause_everything(rng: random.Random, cluster: VirtualCluster) -> None:
    pause = ConfigMap(metadata=Metadata(name="karpool-pause", namespace="karpool"))
    cluster.store.pauses.put(pause)
    cluster.queue.after(rng.uniform(30, 400), partial(cluster.store.pauses.remove, pause.key))


def _annotate(cluster: VirtualCluster, kind: str, key: str, name: str, value: str | None) -> None:
    store: Any = getattr(cluster.store, kind)
    obj = store.get(key)
    if obj is not None:
        store.put(with_annotation(obj, name, value))


def _change_a_template(rng: random.Random, cluster: VirtualCluster) -> None:
    """Nodes of a pool are to look different from now on: those that there are have drifted."""
    pool = rng.choice(cluster.store.pools.listed())
    metadata = replace(pool.spec.template.metadata, labels={"generation": str(rng.randrange(1000))})
    template = replace(pool.spec.template, metadata=metadata)
    cluster.store.pools.put(replace(pool, spec=replace(pool.spec, template=template)))
