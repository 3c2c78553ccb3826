"""Placements from objects: a snapshot and an engine made for one what-if."""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from tests.packing.twin import Wishes

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.directions import Directions
from karpool.packing.engine import Engine
from karpool.packing.options import Options
from karpool.packing.result import PlacementResult

DEFAULTS: Final = Options()


def place(
    objects: Objects,
    catalog: Catalog,
    *,
    pods: Sequence[Pod],
    gone: Collection[str] = (),
    closed: Collection[str] = (),
    exempt: Collection[str] = (),
    options: Options = DEFAULTS,
    reserved_strict: bool = False,
    existing_only: bool = False,
    wishes: Wishes | None = None,
) -> PlacementResult:
    """Where pods would go in a cluster without the nodes `gone`; nodes in `closed` accept only pods in `exempt`."""
    snapshot = Snapshot(objects, preferences=options.preferences, ignore_dra_requests=options.ignore_dra_requests)
    engine = Engine(snapshot, catalog, options)
    rows = [snapshot.pods.rows[pod.key] for pod in pods if pod.key in snapshot.pods.rows]
    nodes = snapshot.nodes
    leaving = [nodes.rows[name] for name in gone if name in nodes.rows]
    shut = np.zeros(len(nodes.live), dtype=np.uint8)
    shut[[nodes.rows[name] for name in closed if name in nodes.rows]] = 1
    with engine.what_if() as trial:
        trial.uncount([row for row in rows if int(snapshot.pods.node_of[row]) not in leaving])
        trial.remove(leaving)
        placement = trial.place(
            rows,
            exempt=[snapshot.pods.get(row).key in exempt for row in rows],
            closed=shut,
            existing_only=existing_only,
            strict_reserved=reserved_strict,
            directions=None if wishes is None else directions_of(snapshot, wishes),
        )
        return placement.result()


def directions_of(snapshot: Snapshot, wishes: Wishes) -> Directions:
    rows, nodes = snapshot.pods.rows, snapshot.nodes.rows
    targets = {
        rows[key]: -2 - place if isinstance(place, int) else nodes[place]
        for key, place in wishes.places.items()
        if key in rows
    }
    return Directions(wishes.new_nodes, targets, wishes.every_level)
