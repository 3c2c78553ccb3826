"""What a scene is: a small cluster at a moment, and what the next step of its plan should be."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.factories import Z1, Z2, Z3, claim_for, instance_type, node_of, node_pool, pod

from karpool.catalog.instance_types import Catalog
from karpool.disruption.plan import Plan, plan
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.workloads import DaemonSet, PodDisruptionBudget
from karpool.packing.question import Options

NOW: Final = datetime(2026, 6, 15, 12, tzinfo=UTC)  # a Monday
ZONES: Final = (Z1, Z2, Z3)
SIZES: Final = {"tiny": 1, "small": 2, "medium": 4, "large": 8, "huge": 64}
# Each type costs 0.05 $/h a CPU on demand and 0.02 as spot, has 4 Gi of memory a CPU, and is sold in three zones.
CATALOG: Final = Catalog(
    tuple(
        instance_type(name, cpu, f"{4 * cpu}Gi", price=0.05 * cpu, spot_price=0.02 * cpu, zones=ZONES)
        for name, cpu in SIZES.items()
    )
)


def pool_of(name: str = "default", *kinds: str, **rest: Any) -> NodePool:
    """A pool of on-demand nodes, or of the capacity types named; keywords as of `node_pool`."""
    only = (CAPACITY_TYPE, "In", *(kinds or (ON_DEMAND,)))
    return node_pool(name, requirements=[only, *rest.pop("requirements", ())], **rest)


POOL: Final = pool_of()
MIXED: Final = pool_of("default", SPOT, ON_DEMAND)


def ago(**since: float) -> datetime:
    """A moment before now: `ago(minutes=5)`."""
    return NOW - timedelta(**since)


@dataclass(frozen=True)
class Box:
    """A node, the claim behind it, and its pods."""

    node: Node | None
    claim: NodeClaim | None
    pods: tuple[Pod, ...]


def box(
    name: str,
    size: str = "medium",
    pods: int | Sequence[Pod | Mapping[str, Any]] = 0,
    *,
    catalog: Catalog = CATALOG,
    claim: Mapping[str, Any] | None = None,
    managed: bool = True,
    kind: str = ON_DEMAND,
    **rest: Any,
) -> Box:
    """A node of a type with some pods: a number of them (half a CPU each), or each one's keywords."""
    made = node_of(name, catalog.by_name[size], **{"capacity_type": kind, **rest})
    listed = [{}] * pods if isinstance(pods, int) else pods
    held = tuple(_pod(name, number, entry) for number, entry in enumerate(listed))
    return Box(made, claim_for(made, **(claim or {})) if managed else None, held)


def _pod(node: str, number: int, entry: Pod | Mapping[str, Any]) -> Pod:
    return entry if isinstance(entry, Pod) else pod(**{"name": f"{node}-{number}", "node": node, **entry})


@dataclass(frozen=True)
class Scene:
    """Given → expect. `goes` names the nodes of the first command; what is None is not looked at."""

    name: str
    boxes: Sequence[Box]
    goes: str = ""
    pools: Sequence[NodePool] = field(default=(POOL,), kw_only=True)
    pods: Sequence[Pod] = field(default=(), kw_only=True)
    pdbs: Sequence[PodDisruptionBudget] = field(default=(), kw_only=True)
    daemons: Sequence[DaemonSet] = field(default=(), kw_only=True)
    others: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    catalog: Catalog = field(default=CATALOG, kw_only=True)
    settings: DisruptionSettings = field(default=DisruptionSettings(), kw_only=True)
    options: Options = field(default=Options(), kw_only=True)
    now: datetime = field(default=NOW, kw_only=True)
    by: str | None = field(default=None, kw_only=True)
    to: str | None = field(default=None, kw_only=True)
    why: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    said: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    check: Callable[[Plan], object] | None = field(default=None, kw_only=True)

    @property
    def objects(self) -> Objects:
        """The cluster as objects."""
        return cluster(
            self.boxes,
            pools=self.pools,
            pods=self.pods,
            pod_disruption_budgets=tuple(self.pdbs),
            daemon_sets=tuple(self.daemons),
            **self.others,
        )

    def plan(self, most_steps: int | None = 1) -> Plan:
        """The plan for the cluster."""
        return plan(
            self.objects,
            self.catalog,
            now=self.now,
            settings=self.settings,
            options=self.options,
            most_steps=most_steps,
        )

    def verify(self) -> None:
        """Compare the first step, and why nodes stay, with what is expected."""
        made = self.plan()
        reasons = {fate.candidate.name: fate.reasons for fate in made.fates}
        gone = sorted(name for step in made.steps for name in step.command.nodes)
        assert gone == sorted(self.goes.split()), {name: [str(r) for r in found] for name, found in reasons.items()}
        assert all(reasons.values())
        if self.by is not None:
            assert made.steps[0].command.method.startswith(self.by)
        if self.to is not None:
            assert [new.instance_types[0] for new in made.steps[0].command.replacements] == self.to.split()
        for name, code in self.why.items():
            assert code in [reason.code for reason in reasons[name]], reasons[name]
        for name, words in self.said.items():
            assert words in " ".join(f"{reason.object} {reason.message}" for reason in reasons[name]), reasons[name]
        assert self.check is None or self.check(made)


def cluster(
    boxes: Iterable[Box], *, pools: Iterable[NodePool] = (), pods: Iterable[Pod] = (), **others: Any
) -> Objects:
    """Boxes and loose pods as objects."""
    listed = list(boxes)
    return Objects(
        nodes=tuple(one.node for one in listed if one.node is not None),
        node_claims=tuple(one.claim for one in listed if one.claim is not None),
        pods=(*(held for one in listed for held in one.pods), *pods),
        node_pools=tuple(pools),
        **others,
    )


def names(scene: Scene) -> str:
    """The name of a scene, for pytest."""
    return scene.name
