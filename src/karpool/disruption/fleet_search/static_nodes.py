"""Nodes of pools with a fixed number of nodes, as a bound counts them.

None of them goes for good: each stays, or another of its pool takes its place. What takes the place of one that has
drifted or is broken may cost as little as anything that its pool can have, and may have as much room.
"""

from dataclasses import replace

import numpy as np

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import Fleet
from karpool.model.nodepool import NodePool
from karpool.optimization.problem import FleetProblem
from karpool.packing.templates import template_of

_OPEN = 2
"""A node takes all pods that suit it."""


def with_replaced_nodes(decision_pass: DecisionPass, fleet: Fleet) -> FleetProblem:
    """The problem of a fleet whose static nodes that may be replaced are as good as whatever replaces them."""
    problem, nodes = fleet.problem, fleet.problem.nodes
    pools = {node.row: node.pool for node in _replaceable(decision_pass) if node.pool is not None and node.pool.static}
    if not pools:
        return problem
    price, free, takes = nodes.price.copy(), nodes.free.copy(), nodes.takes.copy()
    for at, row in enumerate(fleet.rows.tolist()):
        if row in pools:
            price[at] = min(price[at], _least(decision_pass, pools[row]))
            free[at] = np.maximum(free[at], _most(decision_pass, pools[row])[fleet.columns])
            takes[at] = _OPEN
    return replace(problem, nodes=replace(nodes, price=price, free=free, takes=takes))


def _replaceable(decision_pass: DecisionPass) -> list[Candidate]:
    drifted = [node for node, _ in decision_pass.drifted()]
    return drifted + [node.candidate for node in decision_pass.repairs() if node.diagnosis is not None]


def _least(decision_pass: DecisionPass, pool: NodePool) -> float:
    """The least that a node of a pool may cost, also with a slot that is still to be given back; 0 if nobody knows."""
    catalog, wanted = decision_pass.context.catalog, template_of(pool).requirements
    offerings = (
        offering
        for entry in catalog.types
        if entry.meets(wanted)
        for offering in entry.offerings
        if offering.available and offering.requirements.meets(wanted)
    )
    return min((catalog.price(offering) or 0.0 for offering in offerings), default=0.0)


def _most(decision_pass: DecisionPass, pool: NodePool) -> "np.typing.NDArray[np.int64]":
    """The most of each resource that a node of a pool may have."""
    context = decision_pass.context
    table, wanted = context.engine.tables.pools.types, template_of(pool).requirements
    room = table.room_in(pool.name, context.snapshot.resources)
    fitting = np.array([entry.meets(wanted) for entry in context.catalog.types], dtype=np.bool_)
    most: np.typing.NDArray[np.int64] = room.max(axis=0, where=fitting[:, None], initial=0)
    return most
