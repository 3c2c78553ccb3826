"""What a case of a refusal is: a small cluster in which a pod finds no place, and what is said about it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.factories import (
    Z1,
    Z2,
    instance_type,
    node,
    pod,
    pvc,
)

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.node import Node
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.packing.refusal_messages import NODES, Refusal, RefusalRule
from karpool.packing.refusals import refusals

DRIVER = "csi.example.com"
TYPES = Catalog((instance_type("small", 4, "16Gi"), instance_type("large", 16, "32Gi")))
PVC = {"persistent_volume_claims": (pvc("data", volume="disk"),)}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cluster in which the first pod finds no place, and what is said about it."""

    name: str
    pod: Pod
    nodes: Sequence[Node] = ()
    pools: Sequence[NodePool] = ()
    bound: Sequence[Pod] = ()
    first: Sequence[Pod] = ()
    """Pods that are placed before it."""
    others: dict[str, Any] = field(default_factory=dict)
    catalog: Catalog = TYPES
    closed: Collection[str] = ()
    options: Options = field(default_factory=Options)
    asked: dict[str, Any] = field(default_factory=dict)
    expect: Sequence[tuple[int, str, RefusalRule]]
    says: str

    def ask(self) -> tuple[Refusal, ...]:
        objects = Objects(
            pods=(*self.bound, *self.first, self.pod),
            nodes=tuple(self.nodes),
            node_pools=tuple(self.pools),
            **self.others,
        )
        engine = Engine(Snapshot(objects), self.catalog, self.options)
        refusals = explained(engine, [pod.key for pod in (*self.first, self.pod)], self.closed, **self.asked)
        return refusals[self.pod.key]


def explained(
    engine: Engine, keys: Sequence[str], closed: Collection[str] = (), **asked: Any
) -> dict[str, tuple[Refusal, ...]]:
    nodes, pods = engine.snapshot.nodes, engine.snapshot.pods
    shut = np.zeros(len(nodes.live), dtype=np.uint8)
    shut[[nodes.rows[name] for name in closed]] = 1
    with engine.what_if() as trial:
        placement = trial.place([pods.rows[key] for key in keys], closed=shut, **asked)
        return {key: refusals(engine, pods.rows[key]) for key in placement.result().unplaced}


def on_nodes(name: str, *, pod: Pod, nodes: Sequence[Node], rule: RefusalRule, says: str, **rest: Any) -> Case:
    """A case without new nodes, in which all nodes refuse by one rule."""
    asked = {"existing_only": True}
    return Case(name=name, pod=pod, nodes=nodes, asked=asked, expect=[(len(nodes), NODES, rule)], says=says, **rest)


def in_pool(name: str, *, pod: Pod, pool: NodePool, rule: RefusalRule, says: str, count: int = 2, **rest: Any) -> Case:
    """A case without nodes, in which the only pool refuses by a rule."""
    expect = [(count, f"pool {pool.name}", rule)]
    return Case(name=name, pod=pod, pools=[pool], expect=expect, says=f"pool {pool.name}: {says}", **rest)


N1, N2 = node("n1", zone=Z1), node("n2", zone=Z2)
BIG = pod("big-1", cpu="1", memory="20Gi")
WEB = {"app": "web"}
