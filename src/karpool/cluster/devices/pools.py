"""Published devices: slices put together to pools, and which of them a node can reach."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from karpool.cluster.devices.selectors import SelectorError, device_value, matches
from karpool.cluster.groups import labels_satisfy
from karpool.model.devices import AttributeBinding, Device, ResourceSlice, SliceTemplate, TypeDevices
from karpool.model.scheduling import NodeExpression, NodeSelector, NodeTerm

DeviceKey = tuple[str, str, str]
"""Driver, pool and name."""
PoolKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """What says which devices a node can reach."""

    name: str
    labels: Mapping[str, str]
    local: bool = True
    """Whether its own devices are published: those of a node that is still starting may not all be."""


@dataclass(eq=False, slots=True)
class PublishedDevice:
    """A device, with what expressions have said about it."""

    key: DeviceKey
    device: Device
    pool: "DevicePoolState"
    slice: ResourceSlice | None = None
    """Where it was published; None for a device that a node of some type will have."""
    bound: Mapping[str, object] = field(default_factory=dict)
    """By attribute: what it will have in common with others that have the same here."""
    _answers: dict[str, bool | SelectorError] = field(default_factory=dict)
    _value: dict[str, Any] | None = None

    def satisfies(self, expression: str) -> bool:
        """Whether an expression is true of the device; raises SelectorError if that cannot be said."""
        answer = self._answers.get(expression)
        if answer is None:
            if self._value is None:
                self._value = device_value(self.key[0], self.device)
            try:
                answer = matches(expression, self._value)
            except SelectorError as error:
                answer = error
            self._answers[expression] = answer
        if isinstance(answer, SelectorError):
            raise answer
        return answer


@dataclass(eq=False, slots=True)
class DevicePoolState:
    """The newest generation of a pool: its devices, what they share, and what is wrong with it."""

    key: PoolKey
    slices: tuple[ResourceSlice, ...] = ()
    devices: dict[str, tuple[PublishedDevice, ...]] = field(default_factory=dict)
    """By name of a slice."""
    counters: dict[tuple[str, str], int] = field(default_factory=dict)
    """By set and counter, in billionths."""
    problem: str = ""

    def __iter__(self) -> Iterator[PublishedDevice]:
        for devices in self.devices.values():
            yield from devices


@dataclass(frozen=True, slots=True)
class Reach:
    """What a node can reach: devices, in the order in which they are tried, and pools that cannot be used."""

    devices: tuple[PublishedDevice, ...] = ()
    problems: tuple[str, ...] = ()


class SliceTable:
    """ResourceSlices, and the pools that they make."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self.slices = {entry.name: entry for entry in slices}
        self._pools: dict[PoolKey, DevicePoolState] = {}
        self._of_node: dict[str, list[DevicePoolState]] = {}
        self._of_many: list[DevicePoolState] = []
        self._stale = True

    def put(self, name: str, entry: ResourceSlice | None) -> None:
        """Take note of a slice that is new, has changed, or is gone."""
        if entry is None:
            self.slices.pop(name, None)
        else:
            self.slices[name] = entry
        self._stale = True

    def device(self, key: DeviceKey) -> PublishedDevice | None:
        """A device by its key, if it is published."""
        pool = self.pools.get(key[:2])
        return next((device for device in pool or () if device.key == key), None)

    @property
    def pools(self) -> Mapping[PoolKey, DevicePoolState]:
        if self._stale:
            self._gather()
        return self._pools

    @property
    def shared(self) -> bool:
        """Whether some devices can be reached from several nodes."""
        return bool(self.pools) and bool(self._of_many)

    def _gather(self) -> None:
        self._stale = False
        members: dict[PoolKey, list[ResourceSlice]] = {}
        for entry in self.slices.values():
            members.setdefault((entry.spec.driver, entry.spec.pool.name), []).append(entry)
        self._pools = {key: _pool(key, members[key]) for key in sorted(members)}
        self._of_node, self._of_many = {}, []
        for pool in self._pools.values():
            for name in dict.fromkeys(entry.spec.node_name for entry in pool.slices if entry.spec.node_name):
                self._of_node.setdefault(name, []).append(pool)
            if any(entry.spec.all_nodes or entry.spec.node_selector is not None for entry in pool.slices):
                self._of_many.append(pool)

    def reach(self, place: Place, stands: Callable[[str], bool]) -> Reach:
        """What a node can reach; `stands`: whether a Node that owns slices is there, up, and stays."""
        if self._stale:
            self._gather()
        own = self._of_node.get(place.name, ()) if place.local else ()
        if not own and not self._of_many:
            return Reach()
        devices: list[PublishedDevice] = []
        problems: list[str] = []
        for pool in dict.fromkeys((*own, *self._of_many)):
            reached = [entry.name for entry in pool.slices if _reaches(entry, place) and _owner_stands(entry, stands)]
            if not reached:
                continue
            if pool.problem:
                problems.append(pool.problem)
                continue
            for name in reached:
                devices += pool.devices[name]
        return Reach(tuple(devices), tuple(problems))

    def reach_of_new(self, stands: Callable[[str], bool], admits: Callable[[NodeSelector], bool]) -> Reach:
        """What a node that is not there yet could reach of what is published; `admits`: whether it may be selected."""
        if self._stale:
            self._gather()
        devices: list[PublishedDevice] = []
        problems: list[str] = []
        for pool in self._of_many:
            reached = [
                entry.name
                for entry in pool.slices
                if not entry.spec.node_name
                and _owner_stands(entry, stands)
                and (
                    entry.spec.all_nodes or (entry.spec.node_selector is not None and admits(entry.spec.node_selector))
                )
            ]
            if reached and pool.problem:
                problems.append(pool.problem)
            elif reached:
                devices += [device for name in reached for device in pool.devices[name]]
        return Reach(tuple(devices), tuple(problems))

    def complete_drivers(self, node: str) -> set[str]:
        """The drivers that have published a complete pool on a node."""
        return {
            pool.key[0]
            for pool in self.pools.values()
            if not pool.problem and any(entry.spec.node_name == node or node in _owners(entry) for entry in pool.slices)
        }


def _reaches(entry: ResourceSlice, place: Place) -> bool:
    spec = entry.spec
    if spec.node_name:
        return place.local and spec.node_name == place.name
    return spec.all_nodes or (spec.node_selector is not None and selector_admits(spec.node_selector, place))


def selector_admits(selector: NodeSelector, place: Place) -> bool:
    """Whether a node is one of those that a selector means: some term of it holds; an empty term never does."""
    return any(
        (term.match_expressions or term.match_fields)
        and all(_field_holds(entry, place) for entry in term.match_fields)
        and labels_satisfy(place.labels, NodeTerm(match_expressions=term.match_expressions).requirements)
        for term in selector.node_selector_terms
    )


def _field_holds(entry: NodeExpression, place: Place) -> bool:
    if entry.key != "metadata.name":
        return False
    return (
        (place.name in entry.values)
        if entry.operator == "In"
        else (entry.operator == "NotIn" and place.name not in entry.values)
    )


def _owners(entry: ResourceSlice) -> list[str]:
    return [owner.name for owner in entry.metadata.owner_references if owner.kind == "Node"]


def _owner_stands(entry: ResourceSlice, stands: Callable[[str], bool]) -> bool:
    return all(stands(name) for name in _owners(entry))


def _pool(key: PoolKey, members: list[ResourceSlice]) -> DevicePoolState:
    """The newest generation of a pool."""
    about = f"pool {key[1]} of driver {key[0]}"
    if lost := next((entry for entry in members if entry.unreadable), None):
        return DevicePoolState(key, tuple(members), problem=f"{about}: a slice cannot be read: {lost.unreadable}")
    newest = max(entry.spec.pool.generation for entry in members)
    slices = tuple(
        sorted((entry for entry in members if entry.spec.pool.generation == newest), key=lambda entry: entry.name)
    )
    wanted = slices[0].spec.pool.resource_slice_count
    if len(slices) != wanted:
        return DevicePoolState(key, slices, problem=f"{about} is incomplete: {len(slices)} of {wanted} slices")
    pool = DevicePoolState(key, slices)
    for entry in slices:
        for shared in entry.spec.shared_counters:
            for name, counter in shared.counters.items():
                pool.counters[shared.name, name] = counter.value.nano
        pool.devices[entry.name] = tuple(
            PublishedDevice((*key, device.name), device, pool, entry) for device in entry.spec.devices
        )
    pool.problem = _invalid(pool, about)
    return pool


def _invalid(pool: DevicePoolState, about: str) -> str:
    names = [device.key for device in pool]
    if len(names) > len(set(names)):
        return f"{about} is invalid: two devices have the same name"
    if any(not _counted(device, pool) for device in pool):
        return f"{about} is invalid: a device takes of a counter that there is not"
    return ""


def template_reach(devices: TypeDevices, node: str) -> Reach:
    """The devices that a node of a type will have; `node` tells them from those of another."""
    pools: dict[PoolKey, DevicePoolState] = {}
    for template in devices.slices:
        key = (template.driver, f"{node}/{template.pool}")
        pool = pools.setdefault(key, DevicePoolState(key))
        for shared in template.shared_counters:
            for name, counter in shared.counters.items():
                pool.counters[shared.name, name] = counter.value.nano
        bound = bindings(devices.bindings, template)
        pool.devices[f"{len(pool.devices)}"] = tuple(
            PublishedDevice((*key, device.name), device, pool, bound=bound.get(device.name, {}))
            for device in template.devices
        )
    problems = {key: _invalid(pool, f"pool {key[1]} of driver {key[0]}") for key, pool in pools.items()}
    usable = (device for key, pool in pools.items() if not problems[key] for device in pool)
    return Reach(tuple(usable), tuple(filter(None, problems.values())))


def bindings(listed: Iterable[AttributeBinding], template: SliceTemplate) -> dict[str, dict[str, object]]:
    """By device and attribute what stands for the common value; bindings with a device in common are one."""
    groups: dict[str, list[set[str]]] = {}
    for binding in listed:
        if (binding.driver, binding.pool) == (template.driver, template.pool):
            known = groups.setdefault(binding.attribute, [])
            together = [group for group in known if not group.isdisjoint(binding.devices)]
            merged = set(binding.devices).union(*together)
            groups[binding.attribute] = [*(group for group in known if group not in together), merged]
    bound: dict[str, dict[str, object]] = {}
    for attribute, merged_groups in groups.items():
        for group in merged_groups:
            for name in group:
                bound.setdefault(name, {})[attribute] = (template.driver, template.pool, min(group))
    return bound


def _counted(device: PublishedDevice, pool: DevicePoolState) -> bool:
    return all(
        (use.counter_set, name) in pool.counters for use in device.device.consumes_counters for name in use.counters
    )
