"""Dynamic resource allocation: devices that drivers publish, and the claims of pods on them (`resource.k8s.io`)."""

import msgspec

from karpool.model.pod import Amounts
from karpool.model.scheduling import NodeSelector
from karpool.wire.objects import Object, Wire
from karpool.wire.quantity import Quantity

MOST_DEVICES = 32
"""How many devices a claim can have."""


class CelSelector(Wire):
    expression: str = ""


class DeviceSelector(Wire):
    """What a device must be like; a selector of a kind that is not known has no expression."""

    cel: CelSelector | None = None


class DeviceTaint(Wire):
    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class DeviceToleration(Wire):
    """Taints of devices that a request tolerates; no key tolerates every key, no effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: DeviceTaint) -> bool:
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


# -- what drivers publish -----------------------------------------------------------------------------------------


class DeviceAttribute(Wire):
    """A value of one of these kinds; none of them for a kind that is not known."""

    string: str | None = None
    integer: int | None = msgspec.field(name="int", default=None)
    boolean: bool | None = msgspec.field(name="bool", default=None)
    version: str | None = None


class ValidRange(Wire):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(Wire):
    """How much of a capacity a claim takes that asks for some amount, or for none."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: ValidRange | None = None


class DeviceCapacity(Wire):
    value: Quantity
    request_policy: CapacityPolicy | None = None


class Counter(Wire):
    value: Quantity


class CounterSet(Wire):
    """What the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterUse(Wire):
    """What a device takes of a set of counters."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class Device(Wire):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterUse, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    allow_multiple_allocations: bool = False


class DevicePool(Wire):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Wire):
    driver: str = ""
    pool: DevicePool = DevicePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object):
    """Some devices of a driver, and which nodes can reach them."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Wire):
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceClass(Object):
    """Devices that are alike to those who ask for them."""

    spec: DeviceClassSpec = DeviceClassSpec()


# -- what pods ask for --------------------------------------------------------------------------------------------


class CapacityRequest(Wire):
    requests: Amounts = {}


class ExactRequest(Wire):
    """So many devices of a class, or all of them; `name` only where it is one of several alternatives."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequest = CapacityRequest()


class DeviceRequest(Wire):
    """Devices under a name: exactly these, or the first of several alternatives that can be had."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()


class DeviceConstraint(Wire):
    """What devices of some requests, or of all, have in common."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceRequests(Wire):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


class ResourceClaimSpec(Wire):
    devices: DeviceRequests = DeviceRequests()


class AllocatedDevice(Wire):
    """A device that a claim has; of one that several claims share, how much."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: Amounts = {}


class AllocatedDevices(Wire):
    results: tuple[AllocatedDevice, ...] = ()


class Allocation(Wire):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ClaimConsumer(Wire):
    """Who uses a claim; a pod has the resource `pods` and no group."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(Wire):
    allocation: Allocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(Object):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ClaimTemplateSpec(Wire):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object):
    """The claim that each pod which names it gets of its own."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


# -- what nodes of a type will publish ----------------------------------------------------------------------------


class SliceTemplate(Wire):
    """A slice that the driver publishes on every node of an instance type: devices, or counters that they share."""

    driver: str
    pool: str
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class AttributeBinding(Wire):
    """Devices of a pool that will have the same value of an attribute, whatever it is."""

    driver: str
    pool: str
    attribute: str
    devices: tuple[str, ...] = ()


class TypeDevices(Wire):
    """The devices of an instance type."""

    slices: tuple[SliceTemplate, ...] = ()
    bindings: tuple[AttributeBinding, ...] = ()


NO_DEVICES = TypeDevices()
DeviceObject = ResourceClaim | ResourceClaimTemplate | ResourceSlice | DeviceClass
