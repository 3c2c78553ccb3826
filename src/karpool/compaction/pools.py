"""The pool of a node: the value of a label that its cloud, or Karpenter, gave it."""

from collections.abc import Mapping
from typing import Final

from karpool.model.labels import NODEPOOL

LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    NODEPOOL,
)


def pool_of(labels: Mapping[str, str], label: str | None = None) -> str:
    """The name of a node's pool, by a given label or by the first well-known one it has; empty without one."""
    keys = LABELS if label is None else (label,)
    return next((labels[key] for key in keys if key in labels), "")
