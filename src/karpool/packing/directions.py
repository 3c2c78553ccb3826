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
    kinds = _kinds(engine, rows.tolist(), exempt.tolist(), directions)
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


def _kinds(engine: "Engine", rows: list[int], exempt: list[int], directions: Directions) -> tuple[Array, ...]:
    """By pod its kind, -1 for none; by kind where its destinations begin, then what they are and how many each takes.

    Destinations are tried in the order in which pods name them. At last, by kind, what the kernel remembers of its
    refusal.
    """
    pods, nodes = engine.snapshot.pods, engine.snapshot.nodes
    known = set(nodes.order.tolist())
    kind_of = np.full(len(rows), c.UNSET, dtype=np.int32)
    numbers: dict[tuple[int, int, int], int] = {}
    wanted: list[dict[int, int]] = []
    for item, row in enumerate(rows):
        target = directions.targets.get(row)
        if target is None or (target >= 0 and target not in known):
            continue
        if target < 0 and not 0 <= -2 - target < len(directions.new_nodes):
            raise UnknownDestinationError(
                f"pod row {row} is sent to {target}, of {len(directions.new_nodes)} new nodes"
            )
        key = (int(pods.class_of[row]), int(pods.labels_of[row]), int(exempt[item]))
        number = kind_of[item] = numbers.setdefault(key, len(numbers))
        if number == len(wanted):
            wanted.append({})
        wanted[number][target] = wanted[number].get(target, 0) + 1
    start = np.zeros(len(wanted) + 1, dtype=np.int64)
    np.cumsum([len(targets) for targets in wanted], out=start[1:])
    destinations = np.array([target for targets in wanted for target in targets], dtype=np.int32)
    left = np.array([count for targets in wanted for count in targets.values()], dtype=np.int32)
    return kind_of, start, destinations, left, np.full(len(wanted), c.UNSET, dtype=np.int64)


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
