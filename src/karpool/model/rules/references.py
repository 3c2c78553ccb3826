"""Objects that name other objects which are not there."""

from collections.abc import Collection, Iterator

from karpool.model.labels import NODEPOOL
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.wire.problems import Flaw


def claim_references(claim: NodeClaim, pools: Collection[str]) -> Iterator[Flaw]:
    """The pool of a claim must exist; a claim without the label belongs to none."""
    pool = claim.metadata.labels.get(NODEPOOL)
    if pool is not None and pool not in pools:
        message = f"there is no NodePool {pool[:60]!r} in the input; add it, or remove the label"
        yield Flaw(f"metadata.labels[{NODEPOOL}]", "UnknownNodePool", message)


def pod_references(pod: Pod, nodes: Collection[str]) -> Iterator[Flaw]:
    """The node of a pod that still runs must exist."""
    if pod.bound and not pod.terminal and pod.spec.node_name not in nodes:
        message = (
            f"there is no Node {pod.spec.node_name[:60]!r} in the input; add it (kubectl get nodes), or remove the pod"
        )
        yield Flaw("spec.nodeName", "UnknownNode", message)
