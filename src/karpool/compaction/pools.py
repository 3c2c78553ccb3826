"""The pool of a node: the value of a label that its cloud, or Karpenter, sets."""

from collections.abc import Collection, Mapping
from typing import Final

from karpool.compaction.config import Config
from karpool.model.labels import NODEPOOL

LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    NODEPOOL,
)


def pool_of(labels: Mapping[str, str], label: str | None) -> str:
    """The name of a node's pool, by a given label or by the first well-known one it has; empty without one."""
    keys = LABELS if label is None else (label,)
    return next((labels[key] for key in keys if key in labels), "")


def pools_without_nodes(config: Config, pools: Collection[str]) -> tuple[str, ...]:
    """The enabled pools without nodes: scaled to zero, or misspelt; `pools` are those of the nodes."""
    return tuple(sorted(name for name, pool in config.node_pools.items() if pool.enabled and name not in pools))
