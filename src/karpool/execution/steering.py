"""Nodes that go soon ask pods to stay away, so that nobody who moves once has to move again.

The taint is a wish (PreferNoSchedule): a pod that fits nowhere else comes all the same. Cluster Autoscaler marks nodes
that it may remove in the same way. Nobody has to remember anything: a taint on a node that is not about to go is taken
away in the next pass, whoever put it there.
"""

from collections.abc import Collection, Iterable
from typing import Final

from karpool.cluster.nodes import is_steering
from karpool.execution.actions import AddTaint, RemoveTaint, TaintEdit
from karpool.model.labels import STEERING_TAINT
from karpool.model.node import Node
from karpool.model.scheduling import Taint

STEERING: Final = Taint(key=STEERING_TAINT, effect="PreferNoSchedule")


def steer(nodes: Iterable[Node], leaving: Collection[str]) -> list[TaintEdit]:
    """What makes exactly those nodes ask pods to stay away that go soon."""
    edits: list[TaintEdit] = []
    for node in nodes:
        if node.unreadable or node.terminating:
            continue
        marked = bool(node.spec.taints) and any(map(is_steering, node.spec.taints))
        if node.name in leaving and not marked:
            edits.append(AddTaint(node.name, STEERING))
        elif marked and node.name not in leaving:
            edits.append(RemoveTaint(node.name, STEERING))
    return edits
