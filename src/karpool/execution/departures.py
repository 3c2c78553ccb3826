"""Pods that will need another place soon, because their nodes are on their way out."""

from datetime import datetime

from karpool.cluster.nodes import join
from karpool.disruption.pdbs import PdbLimits, currently_reschedulable
from karpool.execution.tickets import in_command
from karpool.model.objects import Objects


def leaving_nodes(objects: Objects) -> frozenset[str]:
    """The nodes that are being deleted, and those that a command is about to delete."""
    deleting = (state.name for state in join(objects.nodes, objects.node_claims) if state.deleting)
    return in_command(objects).union(deleting)


def moving_pods(objects: Objects, now: datetime, pdbs: PdbLimits | None = None) -> frozenset[str]:
    """The pods, by key, that leave such nodes and that nothing keeps there; provisioning finds room for them."""
    nodes = leaving_nodes(objects)
    if not nodes:
        return frozenset()
    pdbs = pdbs or PdbLimits(objects.pod_disruption_budgets)
    return frozenset(
        pod.key for pod in objects.pods if pod.spec.node_name in nodes and currently_reschedulable(pod, pdbs, now)
    )
