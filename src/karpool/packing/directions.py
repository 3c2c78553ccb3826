"""Where a caller wants pods to go: nodes that exist, and new nodes of its choice.

Directions are wishes. Each pod is tried at a destination first, with all of the engine's checks, and goes the ordinary
way if that refuses it; a new node that no pod goes to is not opened.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karpool.cluster.arrays import Array
from karpool.model.requirements import Requirements
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.directed import PROGRESS, place_directed

if TYPE_CHECKING:
    from karpool.packing.engine import Engine


class UnknownDestinationError(ValueError):
    """Directions send a pod to a new node that they do not have."""


@dataclass(frozen=True, slots=True)
class DirectedNode:
    """A new node to open: its pool, what it must be like beside what the pool says, and the types it may have."""

    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...] | None = None
    """None: all types of the pool."""


@dataclass(frozen=True, slots=True)
class Directions:
    """New nodes, and by row of a pod its destination: the row of a node, or -2 - n for the new node n.

    Equal pods (class, labels, exemption) share their destinations: each takes as many of them as it is named for.
    """

    new_nodes: tuple[DirectedNode, ...]
    targets: Mapping[int, int]
    every_level: bool = False
    """Whether pods give up preferences to get there, as in a command that has found out that they must."""


def follow(engine: "Engine", rows: Array, exempt: Array, directions: Directions) -> list[int]:
    """Place the directed pods of a queue that has just been filled, and leave the others in it.

    Returns the claim of each new node of the directions, -1 where no pod went.
    """
    kinds = _kinds(engine, rows, exempt, directions)
    new = _new_nodes(engine, directions)
    progress = np.zeros(PROGRESS, dtype=np.int64)
    engine.run(place_directed, progress, int(directions.every_level), *kinds, *new)
    memory = engine.memory
    state, count = memory["state"], int(memory["state"][c.CLAIMS])
    waiting = np.flatnonzero(memory["target"][: len(rows)] == c.UNPLACED)
    memory["queue"][: len(waiting)] = waiting
    state[c.WAITING] = len(waiting)
    memory["claim_order"][:count] = np.argsort(memory["claim_pods"][:count], kind="stable")
    claims: list[int] = new[-1].tolist()
    return claims


def _kinds(engine: "Engine", rows: Array, exempt: Array, directions: Directions) -> tuple[Array, ...]:
    """By pod its kind, -1 for none; by kind where its destinations begin, then what they are and how many each takes.

    Destinations are tried in the order in which pods name them. At last, by kind, what the kernel remembers of its
    refusal.
    """
    pods, nodes = engine.snapshot.pods, engine.snapshot.nodes
    wanted = np.array([directions.targets.get(row, c.UNSET) for row in rows.tolist()], dtype=np.int64)
    if len(wanted) and -2 - int(wanted.min()) >= len(directions.new_nodes):
        raise UnknownDestinationError(f"pods are sent to {wanted.min()}, of {len(directions.new_nodes)} new nodes")
    present = np.zeros(len(nodes.live), dtype=np.bool_)
    present[nodes.order] = True
    items = np.flatnonzero((wanted < c.UNSET) | ((wanted >= 0) & present[np.maximum(wanted, 0)]))
    alike = pods.class_of[rows].astype(np.int64) * (int(pods.labels_of[rows].max(initial=0)) + 1) + pods.labels_of[rows]
    _, kinds = np.unique(2 * alike[items] + exempt[items], return_inverse=True)
    kind_of = np.full(len(rows), c.UNSET, dtype=np.int32)
    kind_of[items] = kinds
    least = int(wanted.min(initial=0))
    pairs = kinds * (int(wanted.max(initial=0)) - least + 1) + wanted[items] - least
    _, first, count = np.unique(pairs, return_index=True, return_counts=True)
    order = np.lexsort((first, kinds[first]))
    first, count = first[order], count[order]
    amount = int(kinds.max(initial=-1)) + 1
    start = np.searchsorted(kinds[first], np.arange(amount + 1))
    destinations, left = wanted[items[first]].astype(np.int32), count.astype(np.int32)
    return kind_of, start, destinations, left, np.full(amount, c.UNSET, dtype=np.int64)


def _new_nodes(engine: "Engine", directions: Directions) -> tuple[Array, ...]:
    """By new node: its pool, its requirements (-1 if it cannot be), its types, and its claim, none at first."""
    tables, pools = engine.tables, engine.tables.pools
    templates = {template.name: number for number, template in enumerate(pools.templates)}
    type_numbers = {name: number for number, name in enumerate(pools.types.names.tolist())}
    count = len(directions.new_nodes)
    template = np.zeros(count, dtype=np.int32)
    requirement = np.full(count, c.UNSET, dtype=np.int32)
    types = np.ones((count, max(1, len(pools.types.types))), dtype=np.uint8)
    for number, node in enumerate(directions.new_nodes):
        pool = templates.get(node.pool)
        if pool is None:
            continue
        template[number] = pool
        requirement[number] = tables.requirements.both(pools.templates[pool].requirements, node.requirements)
        if node.instance_types is not None:
            types[number] = 0
            types[number, [type_numbers[name] for name in node.instance_types if name in type_numbers]] = 1
    engine.memory.put(**tables.requirements.columns)
    return template, requirement, types, np.full(count, c.UNSET, dtype=np.int32)
