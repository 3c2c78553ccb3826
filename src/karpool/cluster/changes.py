"""Did this change matter: for each kind, what columns and decisions read of an object, stated once.

Every function compares two versions of one object. So writes of fields that are not read
(heartbeats, resource versions) cost nothing.
"""

from enum import IntEnum

from msgspec.structs import replace

from karpool.cluster.nodes import StateNode
from karpool.cluster.pod_classes import requests_key
from karpool.cluster.volumes import BIND_COMPLETED
from karpool.model.deletion_cost import without_own_cost
from karpool.model.devices import DeviceObject, ResourceClaim
from karpool.model.labels import DISRUPTIONS, DO_NOT_DISRUPT
from karpool.model.node import CSINode
from karpool.model.nodepool import CONSOLIDATABLE, NodePool
from karpool.model.pod import Pod
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.model.workloads import Namespace, PodDisruptionBudget
from karpool.wire.objects import Condition, Object, is_true


class Impact(IntEnum):
    """How far a change of a pod or a node reaches; each level includes the ones before."""

    NONE = 0
    """What changed is not read, except perhaps the time of the last pod event."""
    FACTS = 1
    """The columns stay, but decisions may come out differently: annotations, conditions."""
    BINDING = 2
    """A pod is on another node, or is being deleted; its class stays."""
    COLUMNS = 3
    """The columns of the object are written anew."""


def pod_change(old: Pod, new: Pod) -> Impact:
    """What a change of an unfinished pod reaches."""
    before, after = old.metadata, new.metadata
    same_spec = old.spec is new.spec or old.spec == new.spec
    if (
        before.uid != after.uid
        or before.unreadable != after.unreadable
        or before.labels != after.labels
        or before.owner_references != after.owner_references
        or before.creation_timestamp != after.creation_timestamp
        or not (same_spec or replace(old.spec, node_name=new.spec.node_name) == new.spec)
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or _resized(old, new)
    ):
        return Impact.COLUMNS
    if not same_spec or (before.deletion_timestamp is None) is not (after.deletion_timestamp is None):
        return Impact.BINDING
    return Impact.FACTS if _pod_facts_differ(old, new) else Impact.NONE


def _resized(old: Pod, new: Pod) -> bool:
    before, after = old.status, new.status
    if (
        before.container_statuses == after.container_statuses
        and before.init_container_statuses == after.init_container_statuses
        and before.allocated_resources == after.allocated_resources
        and before.resources == after.resources
    ):
        return False
    return requests_key(old) != requests_key(new)


def _pod_facts_differ(old: Pod, new: Pod) -> bool:
    before, after = old.status, new.status
    return (
        _pod_annotations_differ(old, new)
        or before.start_time != after.start_time
        or before.phase != after.phase
        or _conditions_differ(before.conditions, after.conditions)
    )


def _pod_annotations_differ(old: Pod, new: Pod) -> bool:
    """Whether others say something else of a pod; what Karpool writes there changes no decision."""
    before, after = old.metadata.annotations, new.metadata.annotations
    return before != after and without_own_cost(before) != without_own_cost(after)


def frees_pod(old: Pod, new: Pod) -> bool:
    """Whether other facts of a pod may let it go; to start or to become ready only holds it."""
    return (
        _pod_annotations_differ(old, new)
        or (DO_NOT_DISRUPT in new.metadata.annotations and old.status.start_time != new.status.start_time)
        or new.status.phase != "Running"
        or not is_true(new.status.conditions, "Ready")
    )


def node_change(old: StateNode, new: StateNode) -> Impact:
    """What a change of a Node or of its NodeClaim reaches."""
    if not _same_columns(old, new):
        return Impact.COLUMNS
    return Impact.FACTS if _node_facts_differ(old, new) else Impact.NONE


def _same_columns(old: StateNode, new: StateNode) -> bool:
    if _unreadable_parts(old) != _unreadable_parts(new):
        return False
    if old.node is new.node and old.claim is not None and new.claim is not None and old.initialized and old.registered:
        # All columns of a node that is up come from the node itself; a reboot makes its fence count for nothing.
        return old.deleting is new.deleting and old.rebooting is new.rebooting
    return (
        (old.node is None) is (new.node is None)
        and (old.claim is None) is (new.claim is None)
        and old.deleting is new.deleting
        and old.initialized is new.initialized
        and old.taints == new.taints
        and old.allocatable == new.allocatable
        and old.capacity == new.capacity
        and old.labels == new.labels
    )


def _unreadable_parts(state: StateNode) -> tuple[str, ...]:
    return tuple([part.unreadable for part in (state.node, state.claim) if part is not None])


def _node_facts_differ(old: StateNode, new: StateNode) -> bool:
    if old.node is not new.node and old.node is not None and new.node is not None:
        before, after = old.node, new.node
        if (
            before.metadata.annotations != after.metadata.annotations
            or before.metadata.labels != after.metadata.labels
            or before.spec != after.spec
            or _conditions_differ(before.status.conditions, after.status.conditions)
        ):
            return True
    if old.claim is new.claim or old.claim is None or new.claim is None:
        return False
    was, now = old.claim, new.claim
    return (
        was.metadata.annotations != now.metadata.annotations
        or was.metadata.labels != now.metadata.labels
        or was.spec != now.spec
        or was.status.node_name != now.status.node_name
        or was.status.provider_id != now.status.provider_id
        or _conditions_differ(was.status.conditions, now.status.conditions)
    )


def _conditions_differ(old: tuple[Condition, ...], new: tuple[Condition, ...]) -> bool:
    return old is not new and old != new and _read_of(old) != _read_of(new)


def device_object_changed(old: DeviceObject | None, new: DeviceObject | None) -> bool:
    """Whether what is read of a claim, a claim template, a slice or a device class changed."""
    if old is None or new is None:
        return True
    owners = old.metadata.owner_references != new.metadata.owner_references
    if owners or old.unreadable != new.unreadable or old.spec != new.spec:
        return True
    return isinstance(old, ResourceClaim) and isinstance(new, ResourceClaim) and old.status != new.status


def _read_of(conditions: tuple[Condition, ...]) -> list[tuple[object, ...]]:
    return [
        (entry.type, entry.status, entry.reason, entry.last_transition_time) for entry in conditions_read(conditions)
    ]


def conditions_read(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The conditions that decisions read; whether a node is consolidatable they work out themselves."""
    return tuple([entry for entry in conditions if entry.type != CONSOLIDATABLE])


def pool_changed(old: NodePool | None, new: NodePool | None) -> bool:
    """Whether decisions may see another pool; budgets, periods and hashes may be in annotations.

    The ledger of disruptions, which brakes read for themselves, changes with every command.
    """
    return (
        old is None
        or new is None
        or old.spec != new.spec
        or old.ready is not new.ready
        or old.unreadable != new.unreadable
        or _settings(old) != _settings(new)
    )


def _settings(pool: NodePool) -> dict[str, str]:
    annotations = pool.metadata.annotations
    return {key: annotations[key] for key in annotations if key != DISRUPTIONS}


def pdb_opened(old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> bool:
    """Whether a PodDisruptionBudget may let a pod go that it did not let go before."""
    if old is None or new is None or old.spec != new.spec or old.unreadable != new.unreadable:
        return True
    return any(now and not then for then, now in zip(_allowances(old), _allowances(new), strict=True))


def _allowances(budget: PodDisruptionBudget) -> tuple[bool, bool]:
    """Whether a budget lets a pod go, and whether it has all the healthy pods that it needs."""
    status = budget.status
    return status.disruptions_allowed > 0, status.current_healthy >= status.desired_healthy


def namespace_changed(old: Namespace | None, new: Namespace | None) -> bool:
    """Whether namespace selectors may find other namespaces."""
    return old is None or new is None or _differ(old, new) or old.metadata.labels != new.metadata.labels


def volume_claim_changed(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
    """Whether pods that use a claim may have other places."""
    return (
        old is None
        or new is None
        or _differ(old, new)
        or old.spec != new.spec
        or old.status.phase != new.status.phase
        or _being_deleted(old) is not _being_deleted(new)
        or (BIND_COMPLETED in old.metadata.annotations) is not (BIND_COMPLETED in new.metadata.annotations)
    )


def volume_changed(old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
    """Whether pods that use a volume may have other places."""
    if old is None or new is None or _differ(old, new):
        return True
    moved = old.spec != new.spec or old.metadata.labels != new.metadata.labels
    return moved or _being_deleted(old) is not _being_deleted(new)


def storage_class_changed(old: StorageClass | None, new: StorageClass | None) -> bool:
    """Whether claims of a class may be bound elsewhere."""
    return old is None or new is None or _differ(old, new) or replace(old, metadata=new.metadata) != new


def csi_node_changed(old: CSINode | None, new: CSINode | None) -> bool:
    """Whether a node may attach other numbers of volumes."""
    return old is None or new is None or _differ(old, new) or old.spec != new.spec


def _differ(old: Object, new: Object) -> bool:
    """Whether one of two versions cannot be read."""
    return old.unreadable != new.unreadable


def _being_deleted(entry: Object) -> bool:
    return entry.metadata.deletion_timestamp is not None
