"""The workload by which schedulers of this kind are measured: 400 types, one pool, and pods of five kinds in a mix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE
from karpool.model.nodepool import Disruption, NodePool, NodePoolSpec, PoolTemplate, TemplateSpec
from karpool.model.objects import Objects
from karpool.model.pod import Container, Pod, PodSpec, PodStatus, Resources
from karpool.model.requirements import DOES_NOT_EXIST, Requirement, Requirements, one_of
from karpool.model.scheduling import (
    Affinity,
    NodeAffinity,
    NodeExpression,
    NodeTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodeTerm,
    SpreadConstraint,
    WeightedPodAffinityTerm,
)
from karpool.model.selectors import LabelSelector
from karpool.wire.duration import NEVER
from karpool.wire.objects import Condition, Metadata
from karpool.wire.quantity import parse_quantity

SEED: Final = 42
SIZES: Final = (1, 50, 100, 500, 1000, 2000, 5000, 10000, 20000)
PREFERENCE_PODS: Final = 4000
LETTERS: Final = "abcdefg"
CPUS: Final = (100, 250, 500, 1000, 1500)
MEMORIES: Final = (100, 256, 512, 1024, 2048, 4096)
ZONES: Final = ("test-zone-1", "test-zone-2", "test-zone-3")
OFFERS: Final = (*((SPOT, zone) for zone in ZONES[:2]), *((ON_DEMAND, zone) for zone in ZONES))
CREATED: Final = datetime(2026, 1, 1, tzinfo=UTC)
UNSCHEDULABLE: Final = PodStatus(
    phase="Pending", conditions=(Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
)


@dataclass(frozen=True)
class Workload:
    """Pods that wait, the pool that serves them, and what it can buy."""

    objects: Objects
    catalog: Catalog


def diverse(count: int, seed: int = SEED) -> Workload:
    """A fifth each of plain, zone-spread, host-spread, zone-affine and host-anti-affine pods; the rest plain."""
    return _workload(tuple(diverse_pods(count, Random(seed))))


def preferring(count: int = PREFERENCE_PODS, seed: int = SEED) -> Workload:
    """Equal pods whose preferences cannot all be met."""
    return _workload(tuple(preference_pods(count, Random(seed))))


def _workload(pods: tuple[Pod, ...]) -> Workload:
    return Workload(Objects(pods=pods, node_pools=(pool(),)), Catalog(tuple(instance_types(400))))


def pool() -> NodePool:
    """A pool that demands nothing and has practically no limits."""
    limits = {"cpu": parse_quantity(10_000_000), "memory": parse_quantity("10000000Gi")}
    return NodePool(
        metadata=Metadata(name="default", uid="default"),
        spec=NodePoolSpec(
            template=PoolTemplate(spec=TemplateSpec(expire_after=NEVER)),
            disruption=Disruption(consolidate_after=NEVER),
            limits=limits,
        ),
    )


def instance_types(count: int) -> Iterator[InstanceType]:
    """Types `fake-it-i` of i+1 CPUs, with 2 Gi of memory and 10 pods for each CPU."""
    overhead = {"cpu": parse_quantity("100m"), "memory": parse_quantity("10Mi")}
    places = [Requirements.of_labels({CAPACITY_TYPE: kind, ZONE: zone}) for kind, zone in OFFERS]
    for index in range(count):
        cpu = index + 1
        memory = parse_quantity(f"{2 * cpu}Gi")
        price = 0.1 * cpu + 0.1 * memory.units / 1e9
        yield InstanceType(
            name=f"fake-it-{index}",
            requirements=Requirements(_type_labels(index).items()),
            capacity={"cpu": parse_quantity(cpu), "memory": memory, "pods": parse_quantity(10 * cpu)},
            overhead=overhead,
            offerings=tuple(Offering(requirements=place, price=price) for place in places),
        )


def _type_labels(index: int) -> dict[str, Requirement]:
    cpu, gibibytes = index + 1, 2 * (index + 1)
    large = cpu > 4 and gibibytes > 8  # noqa: PLR2004 - where the benchmark draws the line
    return {
        INSTANCE_TYPE: one_of(f"fake-it-{index}"),
        ARCH: one_of("amd64"),
        OS: one_of("linux", "windows", "darwin"),
        ZONE: one_of(*ZONES),
        CAPACITY_TYPE: one_of(SPOT, ON_DEMAND),
        "size": one_of("large" if large else "small"),
        "special": one_of("optional") if large else DOES_NOT_EXIST,
        "integer": one_of(str(cpu)),
    }


def diverse_pods(count: int, random: Random) -> Iterator[Pod]:
    """The five-way mix, every random draw in the order in which the benchmark makes it."""
    fifth = count // 5
    numbers = iter(range(count))
    for _ in range(fifth):
        yield _generic(next(numbers), random)
    for key in (ZONE, HOSTNAME):
        for _ in range(fifth):
            yield _spread(next(numbers), key, random)
    for _ in range(fifth):
        yield _affine(next(numbers), random)
    for _ in range(fifth):
        yield _lonely(next(numbers), random)
    for number in numbers:
        yield _generic(number, random)


def _generic(number: int, random: Random) -> Pod:
    labels = {"my-label": random.choice(LETTERS)}
    return _pod(number, labels, _container(random))


def _spread(number: int, key: str, random: Random) -> Pod:
    labels = {"my-label": random.choice(LETTERS)}
    wanted = LabelSelector(match_labels={"my-label": random.choice(LETTERS)})
    constraint = SpreadConstraint(max_skew=1, topology_key=key, label_selector=wanted)
    return _pod(number, labels, _container(random), spread=(constraint,))


def _affine(number: int, random: Random) -> Pod:
    labels = {"my-affininity": random.choice(LETTERS)}
    near = PodAffinity(required=(_term(labels, ZONE),))
    return _pod(number, labels, _container(random), Affinity(pod_affinity=near))


def _lonely(number: int, random: Random) -> Pod:
    labels = {"app": "nginx"}
    apart = PodAffinity(required=(_term(labels, HOSTNAME),))
    return _pod(number, labels, _container(random), Affinity(pod_anti_affinity=apart))


def preference_pods(count: int, random: Random) -> Iterator[Pod]:
    """Pods that prefer one zone and to be alone: on their host, which is possible, and in their zone, which is not."""
    labels = {"app": "nginx"}
    container = _container(random)
    zone = NodeTerm(match_expressions=(NodeExpression(key=ZONE, operator="In", values=ZONES[:1]),))
    preferences = tuple(
        WeightedPodAffinityTerm(weight=weight, pod_affinity_term=_term(labels, key))
        for weight, key in ((10, ZONE), (1, HOSTNAME))
    )
    affinity = Affinity(
        node_affinity=NodeAffinity(preferred=(PreferredNodeTerm(weight=1, preference=zone),)),
        pod_anti_affinity=PodAffinity(preferred=preferences),
    )
    for number in range(count):
        yield _pod(number, labels, container, affinity)


def _term(labels: dict[str, str], key: str) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels=dict(labels)))


def _container(random: Random) -> Container:
    cpu, memory = random.choice(CPUS), random.choice(MEMORIES)
    wanted = {"cpu": parse_quantity(f"{cpu}m"), "memory": parse_quantity(f"{memory}Mi")}
    return Container(name="main", resources=Resources(requests=wanted))


def _pod(
    number: int,
    labels: dict[str, str],
    container: Container,
    affinity: Affinity | None = None,
    spread: Sequence[SpreadConstraint] = (),
) -> Pod:
    name = f"pod-{number:05}"
    return Pod(
        metadata=Metadata(
            name=name,
            namespace="default",
            uid=name,
            labels={**labels, "testing/cluster": "unspecified"},
            creation_timestamp=CREATED,
        ),
        spec=PodSpec(containers=(container,), affinity=affinity, topology_spread_constraints=tuple(spread)),
        status=UNSCHEDULABLE,
    )
