"""Devices, slices of them, classes, and claims of pods."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from karpool.model.devices import (
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    AttributeBinding,
    CapacityRequest,
    CelSelector,
    ClaimConsumer,
    ClaimTemplateSpec,
    Counter,
    CounterSet,
    CounterUse,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DevicePool,
    DeviceRequest,
    DeviceRequests,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    ExactRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
    SliceTemplate,
    TypeDevices,
)
from karpool.model.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from karpool.model.scheduling import NodeExpression, NodeSelector, NodeTerm
from karpool.wire.objects import Metadata, OwnerReference
from tests.factories.values import Amount, amounts

DRIVER = "gpu.example.com"


def attribute(value: str | int) -> DeviceAttribute:
    """An attribute; text that begins with a `v` and a digit is a version."""
    if isinstance(value, bool):
        return DeviceAttribute(boolean=value)
    if isinstance(value, int):
        return DeviceAttribute(integer=value)
    return (
        DeviceAttribute(version=value[1:])
        if value[:1] == "v" and value[1:2].isdigit()
        else DeviceAttribute(string=value)
    )


def device(
    name: str,
    *,
    attributes: Mapping[str, str | int] | None = None,
    capacity: Mapping[str, Amount | DeviceCapacity] | None = None,
    counters: Mapping[str, Mapping[str, Amount]] | None = None,
    shared: bool = False,
    taints: Sequence[DeviceTaint] = (),
) -> Device:
    """A device; `counters`: what it takes of sets of counters; `shared`: several claims may have it."""
    sizes = capacity or {}
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in (attributes or {}).items()},
        capacity={
            key: value if isinstance(value, DeviceCapacity) else DeviceCapacity(amounts({key: value})[key])
            for key, value in sizes.items()
        },
        consumes_counters=tuple(
            CounterUse(name, {key: Counter(amount) for key, amount in amounts(used).items()})
            for name, used in (counters or {}).items()
        ),
        allow_multiple_allocations=shared,
        taints=tuple(taints),
    )


def devices(count: int, prefix: str = "gpu", **rest: object) -> list[Device]:
    """Devices that are alike but for their names."""
    return [device(f"{prefix}-{number}", **rest) for number in range(count)]  # type: ignore[arg-type]


def slice_of(
    listed: Sequence[Device],
    *,
    node: str = "",
    driver: str = DRIVER,
    pool: str = "",
    name: str = "",
    generation: int = 1,
    count: int = 1,
    selector: NodeSelector | None = None,
    all_nodes: bool = False,
    counters: Mapping[str, Mapping[str, Amount]] | None = None,
    owner: str = "",
) -> ResourceSlice:
    """A slice of a pool that is called as its node unless it says otherwise."""
    pool = pool or node or "shared"
    owners = (OwnerReference(kind="Node", name=owner),) if owner else ()
    return ResourceSlice(
        metadata=Metadata(name=name or f"{driver}-{pool}", owner_references=owners),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=DevicePool(name=pool, generation=generation, resource_slice_count=count),
            node_name=node,
            node_selector=selector,
            all_nodes=all_nodes,
            devices=tuple(listed),
            shared_counters=tuple(
                CounterSet(key, {entry: Counter(amount) for entry, amount in amounts(sizes).items()})
                for key, sizes in (counters or {}).items()
            ),
        ),
    )


def of_type(
    listed: Sequence[Device],
    *,
    counters: Mapping[str, Mapping[str, Amount]] | None = None,
    bound: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> TypeDevices:
    """The devices of an instance type; `bound`: by attribute which of them will have a value in common."""
    shared = slice_of((), counters=counters).spec.shared_counters
    slices = [SliceTemplate(DRIVER, "gpus", devices=tuple(listed))]
    slices += [SliceTemplate(DRIVER, "gpus", shared_counters=shared)] if shared else []
    bindings = tuple(
        AttributeBinding(DRIVER, "gpus", attribute_name, tuple(group))
        for attribute_name, groups in (bound or {}).items()
        for group in groups
    )
    return TypeDevices(tuple(slices), bindings)


def in_zone(zone: str) -> NodeSelector:
    expression = NodeExpression(key="topology.kubernetes.io/zone", operator="In", values=(zone,))
    return NodeSelector(node_selector_terms=(NodeTerm(match_expressions=(expression,)),))


def on_node(name: str) -> NodeSelector:
    """What kube-scheduler writes for devices of one node."""
    expression = NodeExpression(key="metadata.name", operator="In", values=(name,))
    return NodeSelector(node_selector_terms=(NodeTerm(match_fields=(expression,)),))


def device_class(name: str = "gpu", *expressions: str) -> DeviceClass:
    return DeviceClass(metadata=Metadata(name=name), spec=DeviceClassSpec(selectors=selecting(*expressions)))


def selecting(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CelSelector(expression=entry)) for entry in expressions)


def exactly(
    count: int | None = 1,
    *expressions: str,
    of: str = "gpu",
    name: str = "",
    capacity: Mapping[str, Amount] | None = None,
    tolerations: Sequence[DeviceToleration] = (),
) -> ExactRequest:
    """So many devices of a class; None: all."""
    return ExactRequest(
        name=name,
        device_class_name=of,
        selectors=selecting(*expressions),
        allocation_mode="All" if count is None else "ExactCount",
        count=1 if count is None else count,
        capacity=CapacityRequest(amounts(capacity or {})),
        tolerations=tuple(tolerations),
    )


def asking(
    *requests: ExactRequest | Sequence[ExactRequest],
    match: str | None = None,
    of: Sequence[str] = (),
    constraints: Sequence[DeviceConstraint] = (),
) -> ResourceClaimSpec:
    """A claim with requests `r0`, `r1` and so on; a list of requests is one with alternatives, best first."""
    listed = tuple(
        DeviceRequest(name=f"r{at}", exactly=entry)
        if isinstance(entry, ExactRequest)
        else DeviceRequest(name=f"r{at}", first_available=tuple(entry))
        for at, entry in enumerate(requests)
    )
    held = (DeviceConstraint(requests=tuple(of), match_attribute=match),) if match else ()
    return ResourceClaimSpec(devices=DeviceRequests(requests=listed, constraints=(*held, *constraints)))


ONE = asking(exactly(1))


def claim(
    name: str,
    spec: ResourceClaimSpec = ONE,
    *,
    has: Sequence[str] = (),
    node: str = "",
    users: Sequence[str] = (),
    driver: str = DRIVER,
    pool: str = "",
    consumed: Mapping[str, Amount] | None = None,
    selector: NodeSelector | None = None,
    namespace: str = "default",
    admin: bool | None = None,
) -> ResourceClaim:
    """A claim; `has`: the devices that it was given, on a node or in a pool; `users`: the pods it is reserved for."""
    results = tuple(
        AllocatedDevice(
            request="r0",
            driver=driver,
            pool=pool or node,
            device=entry,
            consumed_capacity=amounts(consumed or {}),
            admin_access=admin,
        )
        for entry in has
    )
    places = selector or (on_node(node) if node else None)
    return ResourceClaim(
        metadata=Metadata(name=name, namespace=namespace),
        spec=spec,
        status=ResourceClaimStatus(
            allocation=Allocation(AllocatedDevices(results), places) if has else None,
            reserved_for=tuple(ClaimConsumer(resource="pods", name=user) for user in users),
        ),
    )


def template(name: str, spec: ResourceClaimSpec = ONE, *, namespace: str = "default") -> ResourceClaimTemplate:
    return ResourceClaimTemplate(metadata=Metadata(name=name, namespace=namespace), spec=ClaimTemplateSpec(spec=spec))


def using(pod: Pod, *claims: str, templates: Mapping[str, str | None] | None = None) -> Pod:
    """A pod with claims by name; `templates`: by template the claim that was made for the pod, None for none yet."""
    named = tuple(PodResourceClaim(name=f"c{at}", resource_claim_name=entry) for at, entry in enumerate(claims))
    made = templates or {}
    from_templates = tuple(PodResourceClaim(name=entry, resource_claim_template_name=entry) for entry in made)
    statuses = tuple(
        PodResourceClaimStatus(name=entry, resource_claim_name=given) for entry, given in made.items() if given
    )
    return replace(
        pod,
        spec=replace(pod.spec, resource_claims=(*named, *from_templates)),
        status=replace(pod.status, resource_claim_statuses=statuses),
    )
