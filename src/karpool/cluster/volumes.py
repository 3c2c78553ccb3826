"""What a pod's volumes demand: where they can be reached, and how many a node can attach."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from karpool.model.labels import HOSTNAME, REGION, ZONE, canonical
from karpool.model.objects import Objects
from karpool.model.pod import Pod, Volume
from karpool.model.requirements import Requirements, one_of
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

_IN_TREE: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_BETWEEN_ZONES: Final = "__"
"""Between the zones of a disk that is in several."""
NOT_CSI: Final = frozenset({"kubernetes.io/no-provisioner", ""})


@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """What the volumes of one pod ask of a node."""

    alternatives: tuple[Requirements, ...] = ()
    attached: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    def without_names(self, shared: frozenset[str]) -> "VolumeNeeds":
        """The same with only shared claims by name: pods that differ in nothing but their own claims are alike."""
        if not self.attached:
            return self
        return replace(self, attached=tuple((driver, name if name in shared else "") for driver, name in self.attached))


NO_VOLUMES: Final = VolumeNeeds()


class VolumeIndex:
    """Claims, volumes and classes by name."""

    def __init__(self, objects: Objects) -> None:
        self.claims = {claim.key: claim for claim in objects.persistent_volume_claims}
        self.volumes = {volume.name: volume for volume in objects.persistent_volumes}
        self.classes = {entry.name: entry for entry in objects.storage_classes}
        self._claims_of: dict[str, set[str]] = {}
        for key, claim in self.claims.items():
            self._claims_of.setdefault(claim.spec.volume_name, set()).add(key)

    def set_claim(self, key: str, claim: PersistentVolumeClaim | None) -> None:
        """Take note of a claim that is new, has changed, or is gone."""
        old = self.claims.pop(key, None)
        if old is not None:
            claims = self._claims_of[old.spec.volume_name]
            claims.discard(key)
            if not claims:
                del self._claims_of[old.spec.volume_name]
        if claim is not None:
            self.claims[key] = claim
            self._claims_of.setdefault(claim.spec.volume_name, set()).add(key)

    def set_volume(self, name: str, volume: PersistentVolume | None) -> list[str]:
        """Take note of a volume that is new, has changed, or is gone; the keys of the claims that name it."""
        if volume is None:
            self.volumes.pop(name, None)
        else:
            self.volumes[name] = volume
        return self.claims_on(name)

    def set_class(self, name: str, entry: StorageClass | None) -> list[str]:
        """Take note of a class that is new, has changed, or is gone; the keys of the claims that wait for it."""
        if entry is None:
            self.classes.pop(name, None)
        else:
            self.classes[name] = entry
        return self.unbound_of(name)

    def claims_on(self, volume: str) -> list[str]:
        """The keys of the claims that name a volume."""
        return sorted(self._claims_of.get(volume, ()))

    def unbound_of(self, storage_class: str) -> list[str]:
        """The keys of the claims of a class that have no volume yet."""
        unbound = self._claims_of.get("", set())
        return sorted(key for key in unbound if self.claims[key].spec.storage_class_name == storage_class)

    def needs(self, pod: Pod) -> VolumeNeeds:
        """Where the pod's volumes can be reached and which drivers attach them; a problem if one cannot be used."""
        if not any(_claim_name(pod, volume) or _disk(pod, volume) for volume in pod.spec.volumes):
            return NO_VOLUMES
        choices: list[tuple[Requirements, ...]] = []
        attached: list[tuple[str, str]] = []
        for volume in pod.spec.volumes:
            if (disk := _disk(pod, volume)) is not None:
                attached.append(disk)
            name = _claim_name(pod, volume)
            if name is None:
                continue
            key = f"{pod.metadata.namespace}/{name}"
            claim = self.claims.get(key)
            problem = f"claim {key} does not exist" if claim is None else self._problem(claim)
            if claim is None or problem:
                return VolumeNeeds(problem=problem)
            if reachable := self._reachable(claim):
                choices.append(reachable)
            if pod.spec.node_name and self._keeps_to_its_host(claim):
                choices.append((Requirements(((HOSTNAME, one_of(pod.spec.node_name)),)),))
            if driver := self._driver(claim):
                attached.append((driver, key))
        return VolumeNeeds(_combine(choices), tuple(sorted(set(attached))))

    def may_attach(self, pod: Pod) -> bool:
        """Whether a driver attaches a volume of the pod to its node, or might, for all that is known."""
        if any(_disk(pod, volume) for volume in pod.spec.volumes):
            return True
        claims = [self.claims.get(key) for key in claims_of(pod)]
        return any(claim is None or self._may_attach(claim) for claim in claims)

    def _may_attach(self, claim: PersistentVolumeClaim) -> bool:
        known = claim.spec.volume_name in self.volumes or (claim.spec.storage_class_name or "") in self.classes
        return not known or self._driver(claim) is not None

    def holds_to_host(self, pod: Pod) -> bool:
        """Whether a volume of the pod is wherever the pod is now."""
        claims = (self.claims.get(key) for key in claims_of(pod))
        return any(claim is not None and self._keeps_to_its_host(claim) for claim in claims)

    def _keeps_to_its_host(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a claim is on a directory of a host without a word on which: elsewhere the pod finds it empty."""
        volume = self.volumes.get(claim.spec.volume_name)
        if volume is None or (volume.spec.local is None and volume.spec.host_path is None):
            return False
        affinity = volume.spec.node_affinity
        return affinity is None or affinity.required is None

    def _problem(self, claim: PersistentVolumeClaim) -> str:
        if claim.unreadable:
            return f"claim {claim.key} cannot be read: {claim.unreadable}"
        if claim.metadata.deletion_timestamp is not None:
            return f"claim {claim.key} is being deleted"
        if claim.status.phase == "Lost":
            return f"claim {claim.key} has lost its volume"
        return self._problem_of_bound(claim) if claim.spec.volume_name else self._problem_of_unbound(claim)

    def _problem_of_bound(self, claim: PersistentVolumeClaim) -> str:
        volume = self.volumes.get(claim.spec.volume_name)
        if volume is None:
            return f"volume {claim.spec.volume_name} of claim {claim.key} does not exist"
        if volume.unreadable:
            return f"volume {volume.name} of claim {claim.key} cannot be read: {volume.unreadable}"
        if volume.metadata.deletion_timestamp is not None:
            return f"volume {volume.name} of claim {claim.key} is being deleted"
        if claim.status.phase not in ("Bound", "") and BIND_COMPLETED not in claim.metadata.annotations:
            return f"claim {claim.key} is not bound to its volume yet"
        return ""

    def _problem_of_unbound(self, claim: PersistentVolumeClaim) -> str:
        if claim.spec.storage_class_name is None:
            return f"claim {claim.key} has neither a volume nor a storage class"
        entry = self.classes.get(claim.spec.storage_class_name)
        if entry is None:
            return f"storage class {claim.spec.storage_class_name} of claim {claim.key} does not exist"
        if entry.unreadable:
            return f"storage class {entry.name} of claim {claim.key} cannot be read: {entry.unreadable}"
        if entry.volume_binding_mode == "Immediate":
            return f"claim {claim.key} should have been bound at once and is not"
        return ""

    def _reachable(self, claim: PersistentVolumeClaim) -> tuple[Requirements, ...]:
        if claim.spec.volume_name:
            return _volume_terms(self.volumes[claim.spec.volume_name])
        return _class_terms(self.classes[claim.spec.storage_class_name or ""])

    def _driver(self, claim: PersistentVolumeClaim) -> str | None:
        volume = self.volumes.get(claim.spec.volume_name)
        if volume is not None:
            return _volume_driver(volume)
        entry = self.classes.get(claim.spec.storage_class_name or "")
        if entry is None or entry.provisioner in NOT_CSI:
            return None
        return _IN_TREE.get(entry.provisioner, entry.provisioner)


def claims_of(pod: Pod) -> list[str]:
    """The volume claims that a pod uses, as `namespace/name`."""
    names = [_claim_name(pod, volume) for volume in pod.spec.volumes]
    return [f"{pod.metadata.namespace}/{name}" for name in names if name is not None]


def attached_by(pod: Pod) -> list[str]:
    """The claims and the disks that a pod uses; several pods may use one."""
    disks = (_disk(pod, volume) for volume in pod.spec.volumes)
    return [*claims_of(pod), *(name for _, name in filter(None, disks))]


def _disk(pod: Pod, volume: Volume) -> tuple[str, str] | None:
    """The driver and the name of a disk that the pod names itself; kube-scheduler counts it as one of the driver."""
    sources = (
        ("kubernetes.io/aws-ebs", volume.aws_elastic_block_store),
        ("kubernetes.io/gce-pd", volume.gce_persistent_disk),
        ("kubernetes.io/azure-disk", volume.azure_disk),
    )
    for plugin, source in sources:
        if source is not None:
            return _IN_TREE[plugin], f"disk {source.id or f'{pod.key} {volume.name}'}"
    return None


def _claim_name(pod: Pod, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def _volume_terms(volume: PersistentVolume) -> tuple[Requirements, ...]:
    affinity, labelled = volume.spec.node_affinity, _labelled_places(volume)
    if affinity is None or affinity.required is None:
        return labelled
    terms = tuple(term.requirements for term in affinity.required.node_selector_terms)
    return _combine([terms, labelled]) if labelled else terms


def _labelled_places(volume: PersistentVolume) -> tuple[Requirements, ...]:
    """Where labels say that a volume is, as kube-scheduler has it; volumes of old drivers may say it nowhere else."""
    placed = ((canonical(key), value) for key, value in volume.metadata.labels.items())
    found = [(key, one_of(*value.split(_BETWEEN_ZONES))) for key, value in placed if key in (ZONE, REGION)]
    return (Requirements(found),) if found else ()


def _class_terms(entry: StorageClass) -> tuple[Requirements, ...]:
    return tuple(
        Requirements((e.key, one_of(*e.values)) for e in term.match_label_expressions)
        for term in entry.allowed_topologies
    )


def _volume_driver(volume: PersistentVolume) -> str | None:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver
    if volume.spec.aws_elastic_block_store is not None:
        return _IN_TREE["kubernetes.io/aws-ebs"]
    if volume.spec.gce_persistent_disk is not None:
        return _IN_TREE["kubernetes.io/gce-pd"]
    if volume.spec.azure_disk is not None:
        return _IN_TREE["kubernetes.io/azure-disk"]
    return None


def _combine(choices: list[tuple[Requirements, ...]]) -> tuple[Requirements, ...]:
    """What satisfies one choice of every volume; volumes that exclude each other leave one that nothing satisfies."""
    combined: tuple[Requirements, ...] = ()
    for terms in choices:
        both = [places.intersect(more) for places, more in product(combined, terms)] if combined else list(terms)
        possible = tuple(dict.fromkeys(entry for entry in both if entry.satisfiable))
        combined = possible or (both[0],)
    return combined
