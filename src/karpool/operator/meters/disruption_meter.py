"""Figures of what commands disrupted lately, and of the harm that was found, as pools have them written down."""

from collections.abc import Iterable
from datetime import datetime

from karpool.disruption.brakes.harm import harm_of
from karpool.disruption.brakes.ledger import COUNTED, ledger_of
from karpool.model.annotations import AnnotationError
from karpool.model.nodepool import NodePool
from karpool.observability.metrics import Metrics


def measure_disruptions(metrics: Metrics, pools: Iterable[NodePool], now: datetime) -> None:
    """Show the ledgers of pools; one that cannot be read shows nothing, and is a brake."""
    nodes: dict[str, int] = {}
    pods: dict[str, int] = {}
    harmed: dict[str, int] = {}
    for pool in pools:
        try:
            entries, harm = ledger_of(pool), harm_of(pool)
        except AnnotationError:
            continue
        counted = [entry for entry in entries if now - entry.at < COUNTED]
        nodes[pool.name] = sum(entry.nodes for entry in counted)
        pods[pool.name] = sum(entry.evictions for entry in counted)
        harmed[pool.name] = 0 if harm is None or harm.well_since is not None else harm.pods
    metrics.disrupted(nodes, pods, harmed)
