"""Rules between a pod's volumes and a machine: where they can be reached, and how many it can attach."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from karpool.model.labels import HOSTNAME
from karpool.model.pod import Pod
from karpool.model.scheduling import NodeTerm
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, TopologyTerm
from tests.checker.facts import Machine, State, expression_holds

IN_TREE: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
}


def claim_names(pod: Pod) -> list[str]:
    """The claims of a pod, as `namespace/name`."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.name}-{volume.name}")
    return [f"{pod.metadata.namespace}/{name}" for name in names]


def claim_problem(pod: Pod, state: State) -> str | None:
    """A claim with which the pod can start nowhere."""
    for name in claim_names(pod):
        claim = state.claims.get(name)
        if claim is None or claim.metadata.deletion_timestamp is not None or claim.status.phase == "Lost":
            return f"claim {name} is missing, lost or being deleted"
        storage_class = state.storage_classes.get(claim.spec.storage_class_name or "")
        if claim.spec.volume_name:
            volume = state.volumes.get(claim.spec.volume_name)
            if volume is None or volume.metadata.deletion_timestamp is not None:
                return f"volume of claim {name} is missing or being deleted"
        elif storage_class is None or storage_class.volume_binding_mode == "Immediate":
            return f"claim {name} is not bound"
    return None


def reach_problem(pod: Pod, labels: Mapping[str, str], state: State) -> str | None:
    """A volume that cannot be reached from a node with these labels."""
    for name in claim_names(pod):
        claim = state.claims[name]
        if pod.spec.node_name not in ("", labels.get(HOSTNAME)) and _is_of_an_unnamed_host(claim, state):
            return f"claim {name} is a directory of {pod.spec.node_name}"
        alternatives = list(_alternatives(claim, state))
        if alternatives and not any(alternative(labels) for alternative in alternatives):
            return f"claim {name} cannot be reached"
    return None


def _is_of_an_unnamed_host(claim: PersistentVolumeClaim, state: State) -> bool:
    """Whether a claim is bound to a directory, and only where its pod runs says which host has it."""
    if not claim.spec.volume_name:
        return False
    spec = state.volumes[claim.spec.volume_name].spec
    return (spec.local is not None or spec.host_path is not None) and spec.node_affinity is None


class _Reach:
    """Conditions on node labels of which all must hold for a volume to be reached."""

    def __init__(self, term: NodeTerm | TopologyTerm) -> None:
        self._term = term

    def __call__(self, labels: Mapping[str, str]) -> bool:
        if isinstance(self._term, TopologyTerm):
            return all(labels.get(e.key) in e.values for e in self._term.match_label_expressions)
        return all(expression_holds(e, labels) for e in self._term.match_expressions)


def _alternatives(claim: PersistentVolumeClaim, state: State) -> Iterator[_Reach]:
    """The ways to reach a volume."""
    if claim.spec.volume_name:
        spec = state.volumes[claim.spec.volume_name].spec
        required = spec.node_affinity.required if spec.node_affinity else None
        for term in required.node_selector_terms if required else ():
            yield _Reach(term)
        return
    for topology in state.storage_classes[claim.spec.storage_class_name or ""].allowed_topologies:
        yield _Reach(topology)


def attach_problem(pod: Pod, machine: Machine, state: State) -> str | None:
    """A driver of which the machine can attach no more volumes."""
    there = {name for other in state.pods_on(machine.name) for name in claim_names(other)}
    new = set(claim_names(pod)) - there
    attached = Counter(_driver(name, state) for name in there | new)
    mine = {_driver(name, state) for name in new}
    for driver, limit in machine.volume_limits.items():
        if driver in mine and attached[driver] > limit:
            return f"more than {limit} volumes of {driver}"
    return None


def _driver(name: str, state: State) -> str | None:
    claim = state.claims.get(name)
    if claim is None:
        return None
    if claim.spec.volume_name and (volume := state.volumes.get(claim.spec.volume_name)) is not None:
        return _volume_driver(volume)
    storage_class = state.storage_classes.get(claim.spec.storage_class_name or "")
    return IN_TREE.get(storage_class.provisioner, storage_class.provisioner) if storage_class else None


def _volume_driver(volume: PersistentVolume) -> str | None:
    spec = volume.spec
    if spec.csi is not None:
        return spec.csi.driver
    if spec.aws_elastic_block_store is not None:
        return IN_TREE["kubernetes.io/aws-ebs"]
    if spec.gce_persistent_disk is not None:
        return IN_TREE["kubernetes.io/gce-pd"]
    return IN_TREE["kubernetes.io/azure-disk"] if spec.azure_disk is not None else None
