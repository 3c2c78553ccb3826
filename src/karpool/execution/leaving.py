"""Nodes that will be gone soon, and the pods that need another node because of that."""

from datetime import datetime

from karpool.cluster.pairing import join
from karpool.disruption.candidates.pdbs import PdbLimits, currently_reschedulable
from karpool.execution.tickets import nodes_in_commands
from karpool.model.objects import Objects


def leaving_nodes(objects: Objects) -> frozenset[str]:
    deleting = (state.name for state in join(objects.nodes, objects.node_claims) if state.deleting)
    return nodes_in_commands(objects).union(deleting)


def moving_pods(objects: Objects, now: datetime, pdbs: PdbLimits) -> frozenset[str]:
    """The keys of the pods that leave such nodes and that nothing keeps there; provisioning finds room for them."""
    nodes = leaving_nodes(objects)
    return frozenset(
        pod.key for pod in objects.pods if pod.spec.node_name in nodes and currently_reschedulable(pod, pdbs, now)
    )
