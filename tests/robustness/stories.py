"""Random stories for small clusters: pools, workloads that grow and shrink, and people who change their minds."""

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace
from tests.robustness.deeds import Deed, draw_deed, forgive_harm
from tests.robustness.fault_plan import SHORTAGE, Window
from tests.robustness.fault_plan import ZONE as ZONE_LOST
from tests.robustness.timelines import STORMS, Kind
from tests.virtual.worlds import CATALOG, scenario

from karpool.compaction.config import Config, PoolConfig
from karpool.disruption.settings import GLOBAL, PREFIX
from karpool.model.labels import DO_NOT_DISRUPT, INSTANCE_TYPE, MAX_EVICTIONS, ZONE
from karpool.model.nodepool import NodePool, PoolRequirement
from karpool.model.workloads import Namespace
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import Curve, CurveStep
from karpool.virtual.scenario import (
    AutoscalerSettings,
    Decisions,
    Policy,
    Protection,
    Scenario,
    ScenarioNodeGroup,
    ScenarioWorkload,
    Shortage,
)
from karpool.wire.duration import Duration
from karpool.wire.objects import Metadata
from karpool.wire.quantity import parse_quantity

KINDS: Final = (*8 * (Kind.PLAIN,), *2 * (Kind.LONG,), *2 * (Kind.HARMFUL,), *2 * (Kind.ZONED,), *2 * (Kind.COMPACTED,))
GLOBAL_SHARE: Final = 0.65
"""As in `karpool run`, most stories search for the cheapest fleet; that takes longer than everything else in them."""
NAMESPACES: Final = ("default", "shop", "team")
HARM_REFRESH: Final = 60.0
"""How often pods are looked at in stories where they crash; as in `karpool run`."""
GROUP: Final = "workers"
_SIZES: Final = ("300m", "700m", "1500m", "3")
_PROTECTIONS: Final = (
    None,
    None,
    Protection(max_unavailable=1),
    Protection(min_available="50%"),
    Protection(max_unavailable=0),
)
_BUDGETS: Final = ("1", "2", "50%", "100%")
_MEANWHILE: Final = 20.0
"""How long after a zone is lost workloads shrink: what looks unused then may only be unreachable."""
_ZONES: Final = ("test-zone-a", "test-zone-b")


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario, and what people do meanwhile: at a time, to the cluster."""

    kind: Kind
    scenario: Scenario
    policy: Policy
    deeds: tuple[tuple[float, Deed], ...]
    rates: dict[str, int]
    namespaces: tuple[Namespace, ...] = ()
    compactor: Config | None = None

    @property
    def end(self) -> float:
        return STORMS[self.kind][-1].rests_until


def draw_story(rng: random.Random, kind: Kind, windows: tuple[Window, ...]) -> Story:
    zones = _ZONES if kind is Kind.ZONED else rng.choice((("",), ("",), ("", "")))
    compacted = kind is Kind.COMPACTED
    pools = () if compacted else tuple(_pool(rng, f"pool{number}", zone) for number, zone in enumerate(zones))
    lost = [window.start for window in windows if window.kind == ZONE_LOST] if kind is Kind.ZONED else []
    count = 3 if kind is Kind.ZONED else rng.randint(2, 3)
    workloads = [_workload(rng, kind, number, lost) for number in range(count)]
    if rng.random() < 0.4 and not compacted:
        workloads.append(_jobs(rng, kind))
    workloads.append(ScenarioWorkload(name="agent", kind="DaemonSet", cpu=parse_quantity("50m")))
    shortages = tuple(
        Shortage(start=_duration(window.start), length=_duration(window.end - window.start), zones=("test-zone-a",))
        for window in windows
        if window.kind == SHORTAGE
    )
    drawn = replace(_BASE, pools=pools, workloads=tuple(workloads), faults=shortages)
    if compacted:
        group = ScenarioNodeGroup(
            name=GROUP, instance_type="c-4x-amd64-linux", size=rng.randint(3, 6), most=10, zones=_ZONES
        )
        group = replace(group, labels={"cloud.google.com/gke-nodepool": GROUP})
        drawn = replace(drawn, node_groups=(group,), autoscaler=_AUTOSCALER)
    searched = rng.random() < GLOBAL_SHARE
    search = Decisions(search=GLOBAL, effort=0) if searched else Decisions(search=PREFIX)
    return Story(
        kind,
        drawn,
        Policy(decisions=search),
        tuple(_deeds(rng, kind)),
        {} if kind in (Kind.COMPACTED, Kind.HARMFUL) else _rates(rng, kind),
        () if kind in (Kind.COMPACTED, Kind.HARMFUL) else tuple(_namespaces(rng)),
        _compaction(rng) if compacted else None,
    )


def open_cluster(story: Story, seed: int) -> VirtualCluster:
    """The cluster of a story; its own controller never starts, but those that do have its settings."""
    cluster = VirtualCluster(story.scenario, CATALOG, policy=story.policy, seed=seed, starts=False)
    for namespace in story.namespaces:
        cluster.store.namespaces.put(namespace)
    for time, deed in story.deeds:
        cluster.queue.at(time, partial(deed, cluster))
    limit_rates(cluster, story.rates)
    if story.kind is Kind.HARMFUL:
        intervals = cluster.controller.intervals
        cluster.controller.intervals = dataclasses.replace(intervals, refresh=HARM_REFRESH)
    return cluster


def limit_rates(cluster: VirtualCluster, rates: dict[str, int]) -> None:
    """Give the limits to whoever is made after the cluster's own controller."""
    controller = cluster.controller
    brakes = dataclasses.replace(
        controller.settings.brakes,
        most_nodes_per_hour=rates.get("nodesPerHour"),
        most_evictions_per_hour=rates.get("evictionsPerHour"),
    )
    controller.settings = dataclasses.replace(controller.settings, brakes=brakes)


def _duration(seconds: float) -> Duration:
    return Duration(int(seconds) * 10**9)


# -- limits ------------------------------------------------------------------------------------------------------------


def _rates(rng: random.Random, kind: Kind) -> dict[str, int]:
    """Limits of an hour, in some stories, and in most that last longer than one."""
    if rng.random() < (0.3 if kind is Kind.LONG else 0.75):
        return {}
    return {"nodesPerHour": rng.randint(1, 3), "evictionsPerHour": rng.randint(2, 8)}


def _namespaces(rng: random.Random) -> list[Namespace]:
    """Each namespace of the story; some limit how many of their pods are evicted, and one says so in vain."""
    limited = rng.random() < 0.4
    found = []
    for name in NAMESPACES:
        limit = rng.choice((None, "0", "1", "3", "6", "many")) if limited else None
        annotations = {} if limit is None else {MAX_EVICTIONS: limit}
        found.append(Namespace(metadata=Metadata(name=name, annotations=annotations)))
    return found


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
_AUTOSCALER: Final = AutoscalerSettings(
    scale_down_utilization_threshold=0.1,
    scale_down_unneeded_time=_duration(120),
    scale_down_delay_after_add=_duration(60),
)


def _pool(rng: random.Random, name: str, zone: str) -> NodePool:
    """A pool; one of a zone has small nodes, so that it has several."""
    (pool,) = _BASE.pools
    disruption = replace(
        pool.spec.disruption,
        consolidate_after=_duration(rng.choice((0, 15, 60))),
        budgets=(replace(pool.spec.disruption.budgets[0], nodes=rng.choice(_BUDGETS)),),
    )
    old = rng.choice((None, None, None, None, 600, 720 * 3600))
    template = pool.spec.template
    requirements = template.spec.requirements
    if zone:
        small = PoolRequirement(key=INSTANCE_TYPE, operator="In", values=("c-2x-amd64-linux",))
        requirements += (PoolRequirement(key=ZONE, operator="In", values=(zone,)), small)
    template = replace(template, spec=replace(template.spec, requirements=requirements))
    if old is not None:
        template = replace(template, spec=replace(template.spec, expire_after=_duration(old)))
    spec = replace(pool.spec, disruption=disruption, template=template)
    return replace(pool, metadata=replace(pool.metadata, name=name), spec=spec)


def _workload(rng: random.Random, kind: Kind, number: int, lost: Sequence[float]) -> ScenarioWorkload:
    zone = _ZONES[number % 2] if kind is Kind.ZONED else ""
    sizes = ("700m", "1500m") if zone else _SIZES
    annotations = rng.choice(({}, {}, {DO_NOT_DISRUPT: "true"}, {DO_NOT_DISRUPT: "5m"}))
    # The compactor knows no protection that ends.
    protects = {} if kind is Kind.COMPACTED and annotations.get(DO_NOT_DISRUPT) == "5m" else annotations
    busy = STORMS[kind][0]
    if kind is Kind.HARMFUL and number < len(_HARMED):
        return _HARMED[number]
    workload = ScenarioWorkload(
        name=f"app{number}",
        namespace="default" if kind is Kind.COMPACTED else rng.choice(NAMESPACES),
        kind=rng.choice(("Deployment", "Deployment", "StatefulSet")),
        replicas=_steps(*_curve(rng, kind, lost)),
        cpu=parse_quantity(rng.choice(sizes)),
        memory=parse_quantity(rng.choice(("256Mi", "2Gi"))),
        annotations=protects if rng.random() < 0.5 else {},
        protection=rng.choice(_PROTECTIONS),
        deploys=tuple(_duration(rng.uniform(busy.start, busy.end)) for _ in range(rng.choice((0, 0, 1)))),
    )
    return replace(workload, spec=replace(workload.spec, node_selector={ZONE: zone})) if zone else workload


def _steps(*steps: tuple[float, int]) -> Curve:
    return Curve(steps=tuple(CurveStep(after=_duration(at), value=value) for at, value in steps))


_HARMED: Final = (
    ScenarioWorkload(name="app0", replicas=_steps((0, 10), (900, 8), (1500, 3)), cpu=parse_quantity("400m")),
    ScenarioWorkload(name="app1", replicas=_steps((0, 8), (300, 1)), cpu=parse_quantity("1500m")),
)
"""Many pods that are not needed for long beside others that stay, so that these are moved."""


def _curve(rng: random.Random, kind: Kind, lost: Sequence[float]) -> list[tuple[float, int]]:
    """How many pods there are: several values in each storm, few at its end, and few soon after a zone is `lost`."""
    least, most = (3, 8) if kind in (Kind.ZONED, Kind.HARMFUL) else (2, 8)
    steps = [(0.0, rng.randint(least, most)), *((at + _MEANWHILE, 1) for at in lost)]
    for storm in STORMS[kind]:
        times = [rng.uniform(storm.start, storm.end - 60) for _ in range(rng.randint(1, 3))]
        lowest = 3 if kind is Kind.HARMFUL else 0
        steps += [(at, rng.randint(lowest, 8)) for at in times if not any(-60 < at - loss < 200 for loss in lost)]
        steps.append((storm.end, rng.randint(1, 3)))
    return sorted(steps)


def _jobs(rng: random.Random, kind: Kind) -> ScenarioWorkload:
    last = STORMS[kind][0].end
    rate = Curve(steps=(CurveStep(after=_duration(0), value=40), CurveStep(after=_duration(last), value=0)))
    return ScenarioWorkload(
        name="job",
        kind="Job",
        namespace=rng.choice(NAMESPACES),
        replicas=rate,
        runs=_duration(rng.choice((60, 240))),
        cpu=parse_quantity("500m"),
        memory=parse_quantity("256Mi"),
        annotations=rng.choice(({}, {DO_NOT_DISRUPT: "true"})),
    )


def _compaction(rng: random.Random) -> Config:
    pool = PoolConfig(
        enabled=True,
        cpu_limit=rng.choice((0.5, 0.75, 0.95)),
        required_count=rng.choice((0, 1, 2)),
        max_in_progress=rng.choice((None, 1, 2)),
    )
    return Config(node_pools={GROUP: pool})


def _deeds(rng: random.Random, kind: Kind) -> list[tuple[float, Deed]]:
    deeds = []
    for storm in STORMS[kind]:
        for _ in range(rng.randrange(4)):
            at = rng.uniform(storm.start, storm.end)
            deeds.append((at, draw_deed(rng, storm.end, pools=kind is not Kind.COMPACTED)))
    if kind is Kind.HARMFUL and rng.random() < 0.3:
        deeds.append((rng.uniform(800, 1500), forgive_harm))
    return deeds
