"""The cluster is unhealthy: too many of its nodes, or of those of one zone, are not ready."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stop
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import INITIALIZED, ZONE
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.wire.objects import condition

_STARTUP: Final = timedelta(minutes=15)
"""How long a new node may take to become ready, as Cluster Autoscaler has it."""


def unhealthy(objects: Objects, settings: BrakeSettings, now: datetime) -> Iterator[Stop]:
    """A stop of everything while too much of the cluster is unready: what looks unused may only be unreachable."""
    nodes = [node for node in objects.nodes if not _starting(node, now)]
    message = _whole_cluster(nodes, settings) or _one_zone(nodes, settings)
    if message is not None:
        yield Stop(ReasonCode.CLUSTER_UNHEALTHY, message, "Cluster", halts=True)


def _whole_cluster(nodes: Sequence[Node], settings: BrakeSettings) -> str | None:
    unready = sum(map(_unready, nodes))
    if unready <= settings.unready_nodes_allowed or not _too_many(unready, len(nodes), settings):
        return None
    return (
        f"{unready} of {len(nodes)} nodes are not ready, more than {settings.most_unready_percent:g}% "
        f"and more than {settings.unready_nodes_allowed}"
    )


def _one_zone(nodes: Sequence[Node], settings: BrakeSettings) -> str | None:
    zones: dict[str, list[Node]] = {}
    for node in nodes:
        zones.setdefault(node.metadata.labels.get(ZONE, ""), []).append(node)
    zones.pop("", None)
    for zone, members in sorted(zones.items()):
        unready = sum(map(_unready, members))
        if len(members) >= settings.least_nodes_of_zone and _too_many(unready, len(members), settings):
            most = f"{settings.most_unready_percent:g}%"
            return f"zone {zone} is losing its nodes: {unready} of {len(members)} are not ready, more than {most}"
    return None


def _too_many(unready: int, nodes: int, settings: BrakeSettings) -> bool:
    return unready * 100 > nodes * settings.most_unready_percent


def _unready(node: Node) -> bool:
    """Whether a node that is to stay is not ready; one that is being deleted is expected to go."""
    ready = condition(node.status.conditions, "Ready")
    return ready is not None and ready.status != "True" and node.metadata.deletion_timestamp is None


def _starting(node: Node, now: datetime) -> bool:
    """Whether a node is so new that it may not have been ready yet."""
    created = node.metadata.creation_timestamp
    young = created is not None and now - created < _STARTUP
    return young and _unready(node) and node.metadata.labels.get(INITIALIZED) != "true"
