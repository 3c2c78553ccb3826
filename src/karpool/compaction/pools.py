"""The pool of a node: the value of a label that its cloud, or Karpenter, sets; and how small pools may become."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from karpool.compaction.config import Config, PoolConfig
from karpool.model.group_sizes import Sizes, sizes_of
from karpool.model.labels import NODEPOOL
from karpool.model.managers import ManagerKind, group_of, manager_of
from karpool.model.node import Node
from karpool.model.objects import Objects

_UNDER_USED: Final = 0.75


def pool_of(node: Node, label: str | None) -> str:
    """The name of a node's pool, by a given label or by the first well-known one it has; empty without one."""
    if label is not None:
        return node.metadata.labels.get(label, "")
    group = group_of(node)
    return node.metadata.labels.get(NODEPOOL, "") if group is None else group.name


def pools_without_nodes(config: Config, pools: Collection[str]) -> tuple[str, ...]:
    """The enabled pools without nodes: scaled to zero, or misspelt; `pools` are those of the nodes."""
    return tuple(sorted(name for name, pool in config.node_pools.items() if pool.enabled and name not in pools))


def known_sizes(objects: Objects, written: Mapping[str, Sizes], label: str | None) -> dict[str, Sizes]:
    """How small and large pools may be, as far as Cluster Autoscaler or a file says."""
    members: dict[str, list[Node]] = {}
    for node in objects.nodes:
        members.setdefault(pool_of(node, label), []).append(node)
    nodes: Mapping[str, Sequence[Node]] = {name: found for name, found in members.items() if name}
    return sizes_of(nodes, objects.autoscaler_statuses, written)


def default_config(objects: Objects, sizes: Mapping[str, Sizes], label: str | None) -> Config:
    """What a plan assumes where nobody wrote a configuration: every node group takes part, under careful limits.

    A node is under-used below three quarters of CPU and memory, and its pods must have another place. Nodes that the
    autoscaler would not remove stay, and a group of unknown minimum keeps a node. NodePools look after themselves.
    """
    names = {
        pool_of(node, label)
        for node in objects.nodes
        if manager_of(node, claimed=False, pool_label=label).kind is ManagerKind.NODE_GROUP
    }
    return Config(
        node_pools={
            name: PoolConfig(
                enabled=True,
                cpu_limit=_UNDER_USED,
                memory_limit=_UNDER_USED,
                required_count=1,
                skip_system_pods=True,
                minimum=None if name in sizes and sizes[name].minimum is not None else 1,
            )
            for name in sorted(names - {""})
        }
    )
