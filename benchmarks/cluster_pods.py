"""The pods of a generated cluster: DaemonSets on every node, and deployments that fill nodes unevenly and legally."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, cycle
from random import Random
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from cluster_nodes import NOW, ZONES

from karpool.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    HOSTNAME,
    ON_DEMAND,
    SPOT,
    ZONE,
)
from karpool.model.node import Node
from karpool.model.pod import Container, ContainerPort, Pod, PodSpec, PodStatus, Resources
from karpool.model.scheduling import Affinity, PodAffinity, PodAffinityTerm, SpreadConstraint, Toleration
from karpool.model.selectors import LabelSelector
from karpool.model.workloads import (
    BudgetSpec,
    BudgetStatus,
    DaemonSet,
    PodDisruptionBudget,
    PodTemplateSpec,
    WorkloadSpec,
)
from karpool.wire.objects import Condition, Metadata, OwnerReference
from karpool.wire.quantity import parse_quantity

MEBI: Final = 2**20


@dataclass(frozen=True)
class Audience:
    """Where the pods of a deployment want to be, and the pools that take them."""

    homes: tuple[str, ...]
    selector: dict[str, str]
    tolerations: tuple[Toleration, ...] = ()


AUDIENCES: Final = (
    Audience(("general", "general-arm", "spot"), {}),
    Audience(("general", "spot"), {ARCH: "amd64"}),
    Audience(("general",), {ARCH: "amd64", CAPACITY_TYPE: ON_DEMAND}),
    Audience(("general-arm",), {ARCH: "arm64"}),
    Audience(("spot",), {CAPACITY_TYPE: SPOT}),
    Audience(("team-red",), {"team": "red"}, (Toleration(key="team", value="red"),)),
    Audience(("team-blue",), {"team": "blue"}, (Toleration(key="team", value="blue"),)),
    Audience(("memory",), {"workload-class": "memory"}),
)
CONSTRAINTS: Final = ("none",) * 9 + ("zone spread",) * 4 + ("host spread",) * 3 + ("apart",) * 3 + ("one zone",)
CPU_MILLIS: Final = (50, 50, 50, 100, 100, 100, 100, 200, 200, 250, 250, 250, 500, 500, 500, 1000, 2000)
ALONE: Final = ("host spread", "apart")
"""Constraints that keep the pods of a deployment off each other's nodes."""
MEBI_PER_CPU: Final = (1024, 2048, 2048, 3072)
TRIES: Final = 12
FEWEST: Final = 2
SMALLEST: Final = (50, 51 * MEBI)
NAMESPACES: Final = ("shop", "search", "payments", "data", "platform")


class Named(Protocol):
    """What nodes belong to, as far as it matters to their pods."""

    @property
    def name(self) -> str: ...


@dataclass
class Slot:
    """A node that is being filled: what it may still take without exceeding its share."""

    node: Node
    pool: Named
    cpu: int
    memory: int
    pods: int
    patience: int = 40

    def fits(self, cpu: int, memory: int) -> bool:
        """Whether one more pod may come."""
        return self.pods > 0 and self.cpu >= cpu and self.memory >= memory

    def take(self, cpu: int, memory: int) -> None:
        """Count a pod."""
        self.cpu, self.memory, self.pods = self.cpu - cpu, self.memory - memory, self.pods - 1

    def give_back(self, cpu: int, memory: int) -> None:
        """Count a pod no more."""
        self.cpu, self.memory, self.pods = self.cpu + cpu, self.memory + memory, self.pods + 1


def _container(cpu: int, memory: int, *ports: int) -> Container:
    wanted = {"cpu": parse_quantity(f"{cpu}m"), "memory": parse_quantity(memory)}
    exposed = tuple(ContainerPort(container_port=port, host_port=port) for port in ports)
    return Container(name="main", resources=Resources(requests=wanted), ports=exposed)


class Daemon(NamedTuple):
    """What runs on every node, or on those that a selector finds: millicores, MiB, and ports of the host."""

    name: str
    cpu: int
    memory: int
    ports: tuple[int, ...] = ()
    selector: Mapping[str, str] = {}


DAEMONS: Final = (
    Daemon("kube-proxy", 50, 64),
    Daemon("network", 25, 64),
    Daemon("node-exporter", 25, 32, (9100,)),
    Daemon("log-agent", 50, 128, selector={ARCH: "amd64"}),
)


def daemon_sets(daemons: Iterable[Daemon] = DAEMONS) -> Iterator[DaemonSet]:
    """The DaemonSets of a cluster."""
    for name, cpu, memory, ports, selector in daemons:
        spec = PodSpec(
            containers=(_container(cpu, memory * MEBI, *ports),),
            tolerations=(Toleration(operator="Exists"),),
            node_selector=dict(selector),
        )
        template = PodTemplateSpec(metadata=Metadata(labels={"app": name}), spec=spec)
        yield DaemonSet(
            metadata=Metadata(name=name, namespace="kube-system", uid=f"daemon-set-{name}"),
            spec=WorkloadSpec(selector=LabelSelector(match_labels={"app": name}), template=template),
        )


def runs_on(daemon: DaemonSet, node: Node) -> bool:
    return daemon.spec.template.spec.node_selector.items() <= node.metadata.labels.items()


def daemon_pods(node: Node, daemons: tuple[DaemonSet, ...]) -> Iterator[Pod]:
    created = node.metadata.creation_timestamp or NOW
    for daemon in daemons:
        if runs_on(daemon, node):
            owner = OwnerReference(kind="DaemonSet", name=daemon.name, uid=daemon.metadata.uid, controller=True)
            yield Pod(
                metadata=_pod_metadata(
                    f"{daemon.name}-{node.name}", "kube-system", {"app": daemon.name}, owner, created
                ),
                spec=msgspec.structs.replace(daemon.spec.template.spec, node_name=node.name),
                status=_running(created),
            )


def _pod_metadata(
    name: str, namespace: str, labels: dict[str, str], owner: OwnerReference, created: datetime, **annotations: str
) -> Metadata:
    return Metadata(
        name=name,
        namespace=namespace,
        uid=f"pod-{name}",
        labels=labels,
        annotations=annotations,
        creation_timestamp=created,
        owner_references=(owner,),
    )


def _running(started: datetime) -> PodStatus:
    return PodStatus(phase="Running", start_time=started, conditions=(Condition(type="Ready", status="True"),))


@dataclass(frozen=True)
class Deployment:
    """What the pods of a deployment share."""

    name: str
    namespace: str
    audience: Audience
    constraint: str
    cpu: int
    memory: int
    replicas: int
    protected: bool

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which its pods know each other."""
        return {"app": self.name}

    @property
    def shared_spec(self) -> dict[str, Any]:
        """Everything of the pods' spec but the node."""
        wanted = LabelSelector(match_labels=self.labels)
        spreads = {"zone spread": ZONE, "host spread": HOSTNAME}
        spread = spreads.get(self.constraint)
        terms = {"apart": HOSTNAME, "one zone": ZONE}
        term = PodAffinity(
            required=(PodAffinityTerm(topology_key=terms.get(self.constraint, ZONE), label_selector=wanted),)
        )
        affinities = {"apart": Affinity(pod_anti_affinity=term), "one zone": Affinity(pod_affinity=term)}
        return {
            "containers": (_container(self.cpu, self.memory),),
            "node_selector": self.audience.selector,
            "tolerations": self.audience.tolerations,
            "affinity": affinities.get(self.constraint),
            "topology_spread_constraints": (
                (SpreadConstraint(max_skew=1, topology_key=spread, label_selector=wanted),) if spread else ()
            ),
        }


class Filler:
    """Fills nodes with deployments, pod by pod, each where its constraint lets it be."""

    def __init__(
        self,
        slots: list[Slot],
        random: Random,
        *,
        audiences: Sequence[Audience] = AUDIENCES,
        zones: Sequence[str] = ZONES,
        constraints: Sequence[str] = CONSTRAINTS,
    ) -> None:
        self._random, self._audiences, self._all_zones, self._constraints = random, audiences, zones, constraints
        self._open: dict[tuple[str, str], list[Slot]] = {}
        self._zones: dict[str, set[str]] = {}
        for slot in slots:
            zone = slot.node.metadata.labels.get(ZONE, "")
            self._open.setdefault((slot.pool.name, zone), []).append(slot)
            self._zones.setdefault(slot.pool.name, set()).add(zone)
        self._samples = {pool: next(s.node for s in slots if s.pool.name == pool) for pool in self._zones}
        self.budgets: list[PodDisruptionBudget] = []

    def fill(self) -> Iterator[Pod]:
        """Pods until nearly every node has had its share."""
        present = [audience for audience in self._audiences if set(audience.homes) & set(self._zones)]
        numbers = count()
        while True:
            weights = [sum(len(places) for places in self._places(audience, None)) for audience in present]
            if not any(weights):
                return
            audience = self._random.choices(present, weights)[0]
            deployment = self._deployment(next(numbers), audience)
            yield from self._pods(deployment, self._settle(deployment))

    def _deployment(self, number: int, audience: Audience) -> Deployment:
        random = self._random
        cpu = random.choice(CPU_MILLIS)
        per_cpu = 6144 if "memory" in audience.homes else random.choice(MEBI_PER_CPU)
        return Deployment(
            name=f"{random.choice(('api', 'web', 'worker', 'cache', 'batch'))}-{number}",
            namespace=random.choice(NAMESPACES),
            audience=audience,
            constraint=random.choice(self._constraints),
            cpu=cpu,
            memory=cpu * per_cpu // 1000 * MEBI,
            replicas=min(60, 2 + int(random.expovariate(1 / 12))),
            protected=random.random() < 0.01,  # noqa: PLR2004 - one in a hundred
        )

    def _places(self, audience: Audience, zone: str | None) -> list[list[Slot]]:
        """The nodes that may still take pods of an audience, pool by pool and zone by zone."""
        zones = self._all_zones if zone is None else (zone,)
        return [self._open.get((pool, where), []) for pool in audience.homes for where in zones]

    def _settle(self, deployment: Deployment) -> list[Slot]:
        """The nodes of the pods in the order in which they came; fewer than asked for when room or rules run out."""
        found: list[Slot] = []
        used: set[str] = set()
        for zone in self._zone_order(deployment):
            slot = self._find(deployment, zone, used)
            if slot is None:
                break
            slot.take(deployment.cpu, deployment.memory)
            found.append(slot)
            used.add(slot.node.name)
        if len(found) >= FEWEST:
            return found
        for slot in found:
            slot.give_back(deployment.cpu, deployment.memory)
        return []

    def _zone_order(self, deployment: Deployment) -> list[str | None]:
        """The zone of each pod: in turn over every zone that counts for a spread, one for all, or any."""
        if deployment.constraint == "zone spread":
            zones = sorted(zone for pool in self._selected(deployment.audience) for zone in self._zones[pool])
            return [zone for _, zone in zip(range(deployment.replicas), cycle(dict.fromkeys(zones)), strict=False)]
        zone = self._random.choice(self._all_zones) if deployment.constraint == "one zone" else None
        return [zone] * deployment.replicas

    def _selected(self, audience: Audience) -> list[str]:
        """Pools whose nodes the audience's selector finds, whether or not it tolerates their taints."""
        wanted = audience.selector.items()
        return [pool for pool, node in self._samples.items() if wanted <= node.metadata.labels.items()]

    def _find(self, deployment: Deployment, zone: str | None, used: set[str]) -> Slot | None:
        """A node with room, found by a few random tries; nodes that had their share leave the game."""
        alone = deployment.constraint in ALONE
        places = [places for places in self._places(deployment.audience, zone) if places]
        for _ in range(TRIES if places else 0):
            nearby = self._random.choices(places, [len(slots) for slots in places])[0]
            if not nearby:
                continue
            index = self._random.randrange(len(nearby))
            slot = nearby[index]
            if slot.fits(deployment.cpu, deployment.memory) and not (alone and slot.node.name in used):
                return slot
            slot.patience -= 1
            if slot.patience < 0 or not slot.fits(*SMALLEST):
                nearby[index] = nearby[-1]
                nearby.pop()
                places = [slots for slots in places if slots]
                if not places:
                    return None
        return None

    def _pods(self, deployment: Deployment, placed: list[Slot]) -> Iterator[Pod]:
        if not placed:
            return
        template = f"{self._random.randrange(16**8):08x}"
        labels = {**deployment.labels, "pod-template-hash": template}
        owner = OwnerReference(
            kind="ReplicaSet", name=f"{deployment.name}-{template}", api_version="apps/v1", controller=True
        )
        annotations = {DO_NOT_DISRUPT: "true"} if deployment.protected else {}
        shared = deployment.shared_spec
        for number, slot in enumerate(placed):
            created = NOW - timedelta(minutes=self._random.randrange(120, 50_000))
            name = f"{owner.name}-{number:02}"
            yield Pod(
                metadata=_pod_metadata(name, deployment.namespace, labels, owner, created, **annotations),
                spec=PodSpec(node_name=slot.node.name, **shared),
                status=_running(created),
            )
        if self._random.random() < 0.2:  # noqa: PLR2004 - one deployment in five
            self.budgets.append(self._budget(deployment, len(placed)))

    def _budget(self, deployment: Deployment, healthy: int) -> PodDisruptionBudget:
        """A budget that lets one pod go at a time; one in twenty lets none go."""
        allowed = 0 if self._random.random() < 0.05 else 1  # noqa: PLR2004 - one in twenty
        return PodDisruptionBudget(
            metadata=Metadata(name=deployment.name, namespace=deployment.namespace),
            spec=BudgetSpec(selector=LabelSelector(match_labels=deployment.labels), max_unavailable=allowed),
            status=BudgetStatus(
                disruptions_allowed=allowed,
                current_healthy=healthy,
                desired_healthy=healthy - allowed,
                expected_pods=healthy,
            ),
        )
