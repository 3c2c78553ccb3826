"""Pools as templates for new nodes, in the order in which they are tried."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from karpool.model import labels as names
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.requirements import DOES_NOT_EXIST, Requirements, one_of
from karpool.model.scheduling import Taint


@dataclass(frozen=True)
class NodeTemplate:
    """What a new node of a pool would be: its labels as requirements, its taints."""

    pool: NodePool
    requirements: Requirements
    taints: tuple[Taint, ...]

    @property
    def name(self) -> str:
        return self.pool.name

    @property
    def title(self) -> str:
        """How people call what it makes nodes for."""
        return title_of(self.pool)


def title_of(pool: NodePool) -> str:
    """A pool as people call it: `pool general`, `group web`."""
    return f"{'group' if isinstance(pool, NodeGroup) else 'pool'} {pool.name}"


def templates(pools: Iterable[NodePool], seed: int, annotation: str | None = None) -> list[NodeTemplate]:
    """Templates of the pools that can create nodes, heaviest first; `seed` decides between equal weights.

    `annotation`: what a pool has to carry so that it is asked at all.
    """

    def rank(pool: NodePool) -> tuple[int, bytes]:
        return -pool.weight, hashlib.blake2b(f"{seed}:{pool.name}".encode(), digest_size=8).digest()

    return [template_of(pool) for pool in sorted(pools, key=rank) if supplies(pool, annotation)]


def supplies(pool: NodePool, annotation: str | None) -> bool:
    """Whether a pool can create nodes, and may be asked to."""
    return not pool.static and pool.ready and (annotation is None or annotation in pool.metadata.annotations)


def template_of(pool: NodePool) -> NodeTemplate:
    spec = pool.spec.template.spec
    if isinstance(pool, NodeGroup):
        # Its nodes have no label of a NodePool, and pods may ask for just that.
        return NodeTemplate(pool, pool.requirements.with_key(names.NODEPOOL, DOES_NOT_EXIST), spec.taints)
    up = Requirements([(names.REGISTERED, one_of("true")), (names.INITIALIZED, one_of("true"))])
    return NodeTemplate(pool=pool, requirements=pool.node_requirements.intersect(up), taints=spec.taints)
