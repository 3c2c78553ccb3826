"""What rules look at: the objects of a cluster, the instance types that can be had, and the time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import launchable
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import NODEPOOL
from karpool.model.node import Node
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.owners import workload_of
from karpool.model.pod import Pod
from karpool.model.requirements import Requirements


@dataclass(frozen=True)
class LintedCluster:
    """Everything that rules may look at; what is derived is made once."""

    objects: Objects
    catalog: Catalog
    now: datetime
    settings: DisruptionSettings

    @cached_property
    def pools(self) -> tuple[NodePool, ...]:
        """NodePools that could be read, by name; node groups have no manifests to put right."""
        readable = (pool for pool in self.objects.node_pools if not pool.unreadable)
        return tuple(sorted((pool for pool in readable if not isinstance(pool, NodeGroup)), key=lambda pool: pool.name))

    @cached_property
    def open_pools(self) -> tuple[NodePool, ...]:
        """Pools that give nodes to pods that ask for nothing special."""
        return tuple(pool for pool in self.pools if not pool.static and not _tainted(pool))

    @cached_property
    def nodes_of(self) -> Mapping[str, tuple[Node, ...]]:
        """Nodes by the name of their pool, without those that are being deleted."""
        by_pool = defaultdict[str, list[Node]](list)
        for node in self.objects.nodes:
            if node.metadata.deletion_timestamp is None and (pool := node.metadata.labels.get(NODEPOOL)):
                by_pool[pool].append(node)
        return {pool: tuple(nodes) for pool, nodes in by_pool.items()}

    @cached_property
    def pdbs(self) -> PdbLimits:
        return PdbLimits(self.objects.pod_disruption_budgets)

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Pods that need another node when theirs goes, in a stable order."""
        moving = (pod for pod in self.objects.pods if pod.reschedulable and not pod.unreadable)
        return tuple(sorted(moving, key=lambda pod: pod.key))

    @cached_property
    def _types(self) -> dict[Requirements, tuple[InstanceType, ...]]:
        return {}

    def types_for(self, wanted: Requirements) -> tuple[InstanceType, ...]:
        """The types of the catalogue that meet requirements and can be launched."""
        if wanted not in self._types:
            known = (entry for entry in self.catalog.types if not entry.observed and entry.meets(wanted))
            self._types[wanted] = tuple(entry for entry in known if any(launchable(entry, wanted)))
        return self._types[wanted]


def _tainted(pool: NodePool) -> bool:
    return any(taint.effect != "PreferNoSchedule" for taint in pool.spec.template.spec.taints)


def by_workload(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Pods by what people call them: `Deployment shop/web`, or `Pod shop/web-1` for one that nobody owns."""
    owned = defaultdict[str, list[Pod]](list)
    for pod in pods:
        owned[str(workload_of(pod))].append(pod)
    return dict(sorted(owned.items()))
