"""Labels of one's own that name pools: which one was meant, and which one a cluster seems to have."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from karpool.model.node import Node
from karpool.wire.problems import suggestion

_OF_POOLS: Final = ("pool", "group")
_OF_KUBERNETES: Final = ("kubernetes.io", "k8s.io")


def label_notice(label: str, nodes: Sequence[Node]) -> str:
    """What is wrong with a label that shall name groups and that no node has; empty if one has it."""
    if not nodes or any(label in node.metadata.labels for node in nodes):
        return ""
    keys = sorted({key for node in nodes for key in node.metadata.labels})
    return f"--pool-label {label}: no node has it{suggestion(label, keys)}"


def likely_label(nodes: Sequence[Node]) -> str:
    """The one label that seems to name the pools of some nodes: all have it, and several share a value; else empty."""
    keys = Counter(key for node in nodes for key in node.metadata.labels)
    likely = [key for key, count in keys.items() if count == len(nodes) and _names_pools(key, nodes)]
    return likely[0] if len(likely) == 1 else ""


def _names_pools(key: str, nodes: Iterable[Node]) -> bool:
    domain, _, name = key.rpartition("/")
    if domain.endswith(_OF_KUBERNETES) or not any(word in name.lower() for word in _OF_POOLS):
        return False
    values = Counter(node.metadata.labels[key] for node in nodes)
    return all(values) and max(values.values()) > 1
