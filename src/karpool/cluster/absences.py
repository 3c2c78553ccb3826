"""Kinds that an input does not hold although decisions may rest on them, and what is then assumed."""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from karpool.cluster.constraints import selects_namespaces
from karpool.cluster.gangs import GangIndex
from karpool.cluster.volumes import VolumeIndex, claims_of
from karpool.model import labels as names
from karpool.model.gangs import COSCHEDULING, NATIVE, VOLCANO
from karpool.model.objects import Objects


class Absence(NamedTuple):
    """A kind of which there is nothing in the input: what decisions assume, and what `kubectl get` calls it."""

    kind: str
    assumed: str
    resource: str


class _Rule(NamedTuple):
    absence: Absence
    matters: Callable[[Objects], bool]


def _has_pods(objects: Objects) -> bool:
    return any(pod.reschedulable for pod in objects.pods)


def _has_pools(objects: Objects) -> bool:
    return any(names.NODEPOOL in node.metadata.labels for node in objects.nodes)


def _uses_claims(objects: Objects) -> bool:
    return any(claims_of(pod) for pod in objects.pods)


def _attaches(objects: Objects) -> bool:
    volumes = VolumeIndex(objects)
    return any(volumes.may_attach(pod) for pod in objects.pods)


def _uses_volumes(objects: Objects) -> bool:
    return any(claim.spec.volume_name for claim in objects.persistent_volume_claims)


def _wants_volumes(objects: Objects) -> bool:
    claims = objects.persistent_volume_claims
    return any(not claim.spec.volume_name and claim.spec.storage_class_name for claim in claims)


def _selects_namespaces(objects: Objects) -> bool:
    return any(selects_namespaces(pod) for pod in objects.pods)


def _has_gangs_of(scheduler: str, *, in_workload: bool = False) -> Callable[[Objects], bool]:
    def matters(objects: Objects) -> bool:
        waiting = [pod for pod in objects.pods if pod.waits_for_node]
        gangs = GangIndex(objects).waiting(waiting, range(len(waiting)), ())
        unknown = [gang.id for gang in gangs if gang.least is None]
        return any((gang.scheduler, gang.in_workload) == (scheduler, in_workload) for gang in unknown)

    return matters


_WHOLE_GANG: Final = "all waiting pods of a gang count as needed at once"
_RULES: Final = (
    _Rule(Absence("PodDisruptionBudget", "no pod counts as protected", "pdb"), _has_pods),
    _Rule(Absence("DaemonSet", "what new nodes run is guessed from the pods of today's", "daemonsets"), _has_pods),
    _Rule(Absence("NodePool", "nothing is launched, and nodes of pools stay", "nodepools"), _has_pools),
    _Rule(Absence("NodeClaim", "nodes of pools stay", "nodeclaims"), _has_pools),
    _Rule(Absence("PersistentVolumeClaim", "pods with volumes stay", "pvc"), _uses_claims),
    _Rule(Absence("PersistentVolume", "pods with volumes stay", "pv"), _uses_volumes),
    _Rule(Absence("StorageClass", "pods that wait for volumes stay", "storageclasses"), _wants_volumes),
    _Rule(Absence("CSINode", "nodes attach any number of volumes", "csinodes"), _attaches),
    _Rule(Absence("Namespace", "affinities that select namespaces find none", "namespaces"), _selects_namespaces),
    _Rule(Absence("PodGroup", _WHOLE_GANG, f"podgroups.{COSCHEDULING}"), _has_gangs_of(COSCHEDULING)),
    _Rule(Absence("PodGroup", _WHOLE_GANG, f"podgroups.{VOLCANO}"), _has_gangs_of(VOLCANO)),
    _Rule(Absence("PodGroup", _WHOLE_GANG, f"podgroups.{NATIVE}"), _has_gangs_of(NATIVE)),
    _Rule(Absence("Workload", _WHOLE_GANG, f"workloads.{NATIVE}"), _has_gangs_of(NATIVE, in_workload=True)),
)


def absences(objects: Objects, listed: Collection[str]) -> Iterator[Absence]:
    """Every kind that was not `listed`, not even as an empty list, and that could change decisions."""
    for rule in _RULES:
        if rule.absence.kind not in listed and rule.matters(objects):
            yield rule.absence


NO_PODS: Final = (
    "there are no Pods in the input, so that every node would count as empty; add what"
    " `kubectl get pods -A -o json` prints, or an empty PodList if there are none"
)


def lacks_pods(objects: Objects, listed: Collection[str]) -> bool:
    """Whether there are nodes, and pods were not even listed."""
    return bool(objects.nodes) and "Pod" not in listed


def absence_notice(missing: Collection[Absence]) -> str:
    """One sentence about missing kinds, with what would fill the gap."""
    parts = ", ".join(f"{absence.kind} ({absence.assumed})" for absence in missing)
    resources = ",".join(absence.resource for absence in missing)
    return f"the input holds no {parts}; if the cluster does, add what `kubectl get {resources} -A -o json` prints"
