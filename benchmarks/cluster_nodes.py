"""The machines of a generated cluster: instance types, six pools, nodes and the claims behind them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import msgspec

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.kwok_file import read_types
from karpool.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    KWOK_LABELS,
    NODEPOOL,
    ON_DEMAND,
    OS,
    REGISTERED,
    SPOT,
    TERMINATION_FINALIZER,
    ZONE,
)
from karpool.model.node import Node, NodeSpec, NodeStatus
from karpool.model.nodepool import (
    Disruption,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClassRef,
    NodePool,
    NodePoolSpec,
    PoolRequirement,
    PoolTemplate,
    TemplateMetadata,
    TemplateSpec,
)
from karpool.model.scheduling import Taint
from karpool.wire.duration import NEVER, parse_duration
from karpool.wire.objects import Condition, Metadata, OwnerReference

NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
MEBI: Final = 2**20
FAMILIES: Final = {  # architecture, GiB and $/h of one CPU
    "c7i": ("amd64", 2, 0.0446),
    "m7i": ("amd64", 4, 0.0504),
    "r7i": ("amd64", 8, 0.0662),
    "c7g": ("arm64", 2, 0.0363),
    "m7g": ("arm64", 4, 0.0408),
    "r7g": ("arm64", 8, 0.0536),
}
SIZES: Final = {  # CPUs and pods
    "large": (2, 29),
    "xlarge": (4, 58),
    "2xlarge": (8, 58),
    "4xlarge": (16, 234),
    "8xlarge": (32, 234),
}
NODE_CLASS: Final = NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")
SPOT_SHARES: Final = (0.36, 0.4, 0.33)


@dataclass(frozen=True)
class Pool:
    """What a pool is made of, and its share of the nodes."""

    name: str
    share: float
    families: tuple[str, ...]
    capacity_type: str = ON_DEMAND
    labels: dict[str, str] = field(default_factory=dict)
    taint: Taint | None = None
    tight: bool = False
    """Whether its nodes are nearly full, so that pods which leave one often need a new one."""

    @property
    def arch(self) -> str:
        """The architecture of the pool's families."""
        return FAMILIES[self.families[0]][0]


RED, BLUE = (Taint(key="team", value=team, effect="NoSchedule") for team in ("red", "blue"))
POOLS: Final = (
    Pool("general", 0.34, ("m7i", "c7i")),
    Pool("general-arm", 0.22, ("m7g", "c7g")),
    Pool("spot", 0.2, ("m7i", "c7i", "r7i"), SPOT),
    Pool("team-red", 0.1, ("m7i",), labels={"team": "red"}, taint=RED, tight=True),
    Pool("team-blue", 0.07, ("m7g",), labels={"team": "blue"}, taint=BLUE),
    Pool("memory", 0.07, ("r7i",), labels={"workload-class": "memory"}, tight=True),
)


def catalog_entries() -> list[dict[str, Any]]:
    """The catalogue as the KWOK provider's file format writes it."""
    return [
        {
            "name": f"{family}.{size}",
            "architecture": arch,
            "operatingSystems": ["linux"],
            "resources": {"cpu": str(cpu), "memory": f"{cpu * gibibytes}Gi", "pods": str(pods)},
            "offerings": [
                _offer(kind, zone, round(cpu * price * share, 6))
                for zone, cheap in zip(ZONES, SPOT_SHARES, strict=True)
                for kind, share in ((ON_DEMAND, 1.0), (SPOT, cheap))
            ],
        }
        for family, (arch, gibibytes, price) in FAMILIES.items()
        for size, (cpu, pods) in SIZES.items()
    ]


def _offer(kind: str, zone: str, price: float) -> dict[str, Any]:
    places = {CAPACITY_TYPE: kind, ZONE: zone}
    rules = [{"key": key, "operator": "In", "values": [value]} for key, value in places.items()]
    return {"Price": price, "Available": True, "Requirements": rules}


def catalog() -> Catalog:
    """The instance types of every generated cluster."""
    return Catalog(read_types(msgspec.json.encode(catalog_entries()), "generated"))


def pools_of(nodes: int) -> list[Pool]:
    """The pool of each node; whatever rounding leaves over goes to the first."""
    counts = {pool.name: int(pool.share * nodes) for pool in POOLS}
    counts[POOLS[0].name] += nodes - sum(counts.values())
    return [pool for pool in POOLS for _ in range(counts[pool.name])]


def new_node(name: str, pool: Pool, entry: InstanceType, zone: str, created: datetime) -> Node:
    known = {key: min(wanted.values) for key, wanted in entry.requirements.items() if key in (ARCH, OS, *KWOK_LABELS)}
    labels = {
        **known,
        INSTANCE_TYPE: entry.name,
        ZONE: zone,
        CAPACITY_TYPE: pool.capacity_type,
        NODEPOOL: pool.name,
        HOSTNAME: name,
        REGISTERED: "true",
        INITIALIZED: "true",
        **pool.labels,
    }
    ready = Condition(type="Ready", status="True", reason="KubeletReady", last_transition_time=created)
    return Node(
        metadata=Metadata(
            name=name,
            uid=f"node-{name}",
            labels=labels,
            creation_timestamp=created,
            finalizers=(TERMINATION_FINALIZER,),
        ),
        spec=NodeSpec(provider_id=f"kwok://{name}", taints=(pool.taint,) if pool.taint else ()),
        status=NodeStatus(capacity=dict(entry.capacity), allocatable=entry.allocatable, conditions=(ready,)),
    )


def new_claim(node: Node, pool: Pool, random: Random) -> NodeClaim:
    created = node.metadata.creation_timestamp
    labels = {key: v for key, v in node.metadata.labels.items() if key not in (HOSTNAME, REGISTERED, INITIALIZED)}
    return NodeClaim(
        metadata=Metadata(
            name=f"{pool.name}-{node.name}",
            uid=f"claim-{node.name}",
            labels=labels,
            creation_timestamp=created,
            finalizers=(TERMINATION_FINALIZER,),
            owner_references=(OwnerReference(kind="NodePool", name=pool.name, api_version="karpenter.sh/v1"),),
        ),
        spec=NodeClaimSpec(
            requirements=tuple(_requirements(pool)),
            taints=node.spec.taints,
            node_class_ref=NODE_CLASS,
            expire_after=NEVER,
        ),
        status=NodeClaimStatus(
            node_name=node.name,
            provider_id=node.spec.provider_id,
            capacity=node.status.capacity,
            allocatable=node.status.allocatable,
            conditions=tuple(
                Condition(type=kind, status="True", reason=kind, last_transition_time=created)
                for kind in ("Launched", "Registered", "Initialized", "Ready")
            ),
            last_pod_event_time=NOW - timedelta(minutes=random.randrange(60, 110)),
        ),
    )


def _requirements(pool: Pool) -> Iterator[PoolRequirement]:
    for key, values in (
        (ARCH, (pool.arch,)),
        (CAPACITY_TYPE, (pool.capacity_type,)),
        ("karpenter.kwok.sh/instance-family", pool.families),
    ):
        yield PoolRequirement(key=key, operator="In", values=values)


def new_pool(pool: Pool) -> NodePool:
    return NodePool(
        metadata=Metadata(name=pool.name, uid=f"pool-{pool.name}", creation_timestamp=NOW - timedelta(days=90)),
        spec=NodePoolSpec(
            template=PoolTemplate(
                metadata=TemplateMetadata(labels=pool.labels),
                spec=TemplateSpec(
                    requirements=tuple(_requirements(pool)),
                    taints=(pool.taint,) if pool.taint else (),
                    node_class_ref=NODE_CLASS,
                    expire_after=NEVER,
                ),
            ),
            disruption=Disruption(consolidate_after=parse_duration("5m")),
        ),
    )
