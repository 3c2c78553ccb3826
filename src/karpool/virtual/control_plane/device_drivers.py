"""What drivers of devices, and the controller of claims, do: slices of nodes, and claims as pods come and go."""

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.cluster.devices.claims import PodClaim
from karpool.cluster.devices.ledger import DeviceLedger, Grants
from karpool.cluster.devices.pools import bindings
from karpool.model.devices import (
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    ClaimConsumer,
    Device,
    DeviceAttribute,
    DevicePool,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
    ResourceSliceSpec,
    SliceTemplate,
    TypeDevices,
)
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.node import Node
from karpool.model.pod import Pod, PodResourceClaimStatus
from karpool.model.scheduling import NodeExpression, NodeSelector, NodeTerm
from karpool.virtual.changes import with_status
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import Metadata
from karpool.wire.quantity import Quantity


class DeviceDrivers:
    """Publishes the devices of nodes as the catalogue has them, and writes down which claims have which."""

    def __init__(self, world: VirtualWorld, catalog: Callable[[], Catalog]) -> None:
        self.world = world
        self._catalog = catalog
        world.store.nodes.watch(self._node_changed)
        world.store.pods.watch(self._pod_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        slices = self.world.store.resource_slices
        if old is None and new is not None:
            entry = self._catalog().by_name.get(new.metadata.labels.get(INSTANCE_TYPE, ""))
            if entry is not None and not any(known.spec.node_name == new.name for known in slices):
                for published in _published(entry.devices, new.name):
                    slices.put(published)
        elif new is None and old is not None:
            for known in [known for known in slices if known.spec.node_name == old.name]:
                slices.remove(known.key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take the devices of a pod that is gone back, and delete the claims that were made for it."""
        if old is None or not old.spec.resource_claims or (new is not None and not new.terminal):
            return
        store = self.world.store.resource_claims
        made = {status.resource_claim_name for status in old.status.resource_claim_statuses}
        for claim in [claim for claim in store if claim.metadata.namespace == old.metadata.namespace]:
            if claim.name in made:
                store.remove(claim.key)
            elif any(user.name == old.name for user in claim.status.reserved_for):
                left = tuple(user for user in claim.status.reserved_for if user.name != old.name)
                allocation = claim.status.allocation if left else None
                store.put(replace(claim, status=ResourceClaimStatus(allocation, left)))

    def reserve(self, pod: Pod, node: str, ledger: DeviceLedger, grants: Grants) -> Pod:
        """Write the claims of a pod that is bound to a node; the pod with their names."""
        statuses = list(pod.status.resource_claim_statuses)
        store, user = self.world.store.resource_claims, ClaimConsumer(resource="pods", name=pod.name)
        for entry in ledger.state.claims_of(pod):
            claim = entry.claim
            if claim is None:
                reference = entry.key.rpartition("/")[2]
                claim = _made(pod, reference, entry)
                statuses.append(PodResourceClaimStatus(name=reference, resource_claim_name=claim.name))
            allocation = claim.status.allocation
            if allocation is None:
                allocation = _allocation(ledger, grants, entry.key, node)
            users = (*(known for known in claim.status.reserved_for if known.name != pod.name), user)
            store.put(replace(claim, status=ResourceClaimStatus(allocation, users)))
        return with_status(pod, resource_claim_statuses=tuple(statuses))


def _made(pod: Pod, reference: str, entry: PodClaim) -> ResourceClaim:
    metadata = Metadata(name=f"{pod.name}-{reference}", namespace=pod.metadata.namespace)
    return ResourceClaim(metadata=metadata, spec=entry.spec)


def _allocation(ledger: DeviceLedger, grants: Grants, key: str, node: str) -> Allocation:
    given = grants.get(key) or ledger.holdings.of_claim.get(key, ())
    results = tuple(
        AllocatedDevice(
            driver=grant.device[0],
            pool=grant.device[1],
            device=grant.device[2],
            consumed_capacity={name: Quantity(amount) for name, amount in grant.consumed},
        )
        for grant in given
    )
    devices = [ledger.state.slices.device(grant.device) for grant in given]
    if all(device is not None and device.slice is not None and device.slice.spec.all_nodes for device in devices):
        return Allocation(AllocatedDevices(results))
    selectors = {
        device.slice.spec.node_selector for device in devices if device is not None and device.slice is not None
    }
    if len(selectors) == 1 and (selector := selectors.pop()) is not None:
        return Allocation(AllocatedDevices(results), selector)
    # Devices of the node itself, or from several places that this node certainly reaches.
    only = NodeExpression(key="metadata.name", operator="In", values=(node,))
    return Allocation(AllocatedDevices(results), NodeSelector((NodeTerm(match_fields=(only,)),)))


def _published(devices: TypeDevices, node: str) -> Iterator[ResourceSlice]:
    """The slices of a node of a type; what devices have in common gets a value."""
    counts = Counter((template.driver, template.pool) for template in devices.slices)
    for number, template in enumerate(devices.slices):
        yield ResourceSlice(
            metadata=Metadata(name=f"{node}-{number}"),
            spec=ResourceSliceSpec(
                driver=template.driver,
                pool=DevicePool(
                    name=f"{node}/{template.pool}",
                    generation=1,
                    resource_slice_count=counts[template.driver, template.pool],
                ),
                node_name=node,
                devices=tuple(_with_values(device, template, devices) for device in template.devices),
                shared_counters=template.shared_counters,
            ),
        )


def _with_values(device: Device, template: SliceTemplate, devices: TypeDevices) -> Device:
    bound = bindings(devices.bindings, template).get(device.name, {})
    values = {name: DeviceAttribute(string=str(common)) for name, common in bound.items()}
    return replace(device, attributes={**values, **device.attributes})
