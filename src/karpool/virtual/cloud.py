"""A cloud provider: launches instances for NodeClaims as the KWOK provider does, has shortages, interrupts spot nodes.

An instance has the name of its claim. It exists, and costs money, from its launch to the end of its termination.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model import labels as names
from karpool.model.node import Node, NodeSystemInfo
from karpool.model.nodepool import REBOOTING, NodeClaim, as_requirements
from karpool.model.requirements import Requirements
from karpool.model.scheduling import Taint
from karpool.provisioning.instances import choose_offering, instance_labels, starting_node, starting_taints
from karpool.provisioning.shortages import obtainable, offering_key
from karpool.virtual.changes import with_annotation, with_condition, with_metadata, with_status
from karpool.virtual.control_plane.api import Api, get_by_uid
from karpool.virtual.curves import seconds
from karpool.virtual.random_streams import waiting_time
from karpool.virtual.scenario import Fault, Interruptions, Shortage
from karpool.virtual.world import VirtualWorld

PROVIDER: Final = "virtual://"
REMEMBERS_SHORTAGE: Final = 180.0
"""How long an offering counts as unavailable after a launch failed for lack of it, in seconds."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance that exists: its price in $/h, None if nobody knows it, and since when it runs."""

    name: str
    entry: InstanceType
    offering: Offering
    price: float | None
    since: float


class VirtualCloud:
    """All instances; `catalog` has what the provider offers now."""

    def __init__(self, world: VirtualWorld, api: Api, catalog: Catalog, faults: Iterable[Fault]) -> None:
        self.world = world
        self.api = api
        self.catalog = catalog
        self.instances: dict[str, Instance] = {}
        self.on_start: list[Callable[[Instance], None]] = []
        self.on_end: list[Callable[[Instance], None]] = []
        self.on_price: list[Callable[[Instance, Instance], None]] = []
        self.on_boot: list[Callable[[str], None]] = []
        self.failed_launches = 0
        self.interrupted = 0
        self._all = catalog
        self._shortages = [fault for fault in faults if isinstance(fault, Shortage)]
        self._interruptions = [fault for fault in faults if isinstance(fault, Interruptions)]
        self._known_short: dict[tuple[str, str, str], float] = {}
        self._reserved: dict[str, int] = {}
        self._leaving: set[str] = set()
        """Instances that were interrupted."""
        world.store.claims.watch(self._claim_changed)

    # -- launch ----------------------------------------------------------------------------------------------------

    def _claim_changed(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if new is not None and old is None and not new.status.provider_id:
            delay = self.world.jittered(self.world.timings.launch, "launch", new.name)
            self.world.queue.after(delay, partial(self._launch, new.name, new.metadata.uid))
        elif new is None and old is not None and old.name in self.instances:
            self.end(old.name)

    def _launch(self, name: str, uid: str) -> None:
        claim = get_by_uid(self.world.store.claims, name, uid)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        requirements = as_requirements(claim.spec.requirements)
        choice = self._choose(requirements)
        if choice is None:
            self.failed_launches += 1
            message = "no instance that it accepts is available"
            failed = with_condition(
                claim, "Launched", "Unknown", self.world.queue.moment, reason="LaunchFailed", message=message
            )
            self.world.store.claims.put(failed)
            self.api.delete(self.world.store.claims, name, uid)
            return
        entry, offering = choice
        if offering.reservation_id is not None:
            self._reserved[offering.reservation_id] = self._reserved.get(offering.reservation_id, 0) + 1
            self._publish()
        instance = self.start(name, entry, offering)
        self._report(claim, instance, requirements)
        delay = self.world.jittered(self.world.timings.registration, "registration", name)
        self.world.queue.after(delay, partial(self._register, name, uid))

    def _choose(self, requirements: Requirements) -> tuple[InstanceType, Offering] | None:
        """The cheapest instance that is available; shortages that were met are remembered."""

        def is_short(entry: InstanceType, offering: Offering) -> bool:
            short = self._short(entry, offering)
            if short:
                self._remember(entry, offering)
            return short

        return choose_offering(self._all, requirements, is_short)

    def start(self, name: str, entry: InstanceType, offering: Offering) -> Instance:
        return self.start_at(name, entry, offering, self._all.price(offering))

    def start_at(self, name: str, entry: InstanceType, offering: Offering, price: float | None) -> Instance:
        """An instance that costs what it costs, whatever the offering next to it would."""
        instance = self.instances[name] = Instance(name, entry, offering, price, self.world.queue.time)
        for observe in self.on_start:
            observe(instance)
        if offering.capacity_type == names.SPOT:
            self._plan_interruption(name)
        return instance

    def _report(self, claim: NodeClaim, instance: Instance, requirements: Requirements) -> None:
        launched = with_status(
            with_condition(claim, "Launched", "True", self.world.queue.moment, reason="Launched"),
            provider_id=PROVIDER + instance.name,
            capacity=dict(instance.entry.capacity),
            allocatable=dict(instance.entry.allocatable),
        )
        labels = instance_labels(instance.entry, instance.offering, instance.price, requirements)
        self.world.store.claims.put(with_metadata(launched, labels={**labels, **claim.metadata.labels}))

    def _register(self, name: str, uid: str) -> None:
        claim = get_by_uid(self.world.store.claims, name, uid)
        if claim is None or name not in self.instances or name in self.world.store.nodes:
            return
        self.api.create_node(node_of(self.instances[name], claim.metadata.labels, starting_taints(claim)))

    # -- prices ----------------------------------------------------------------------------------------------------

    def reprice(self, prices: Mapping[tuple[str, str], float]) -> None:
        """Spot markets, each a type and a zone, cost something else from now on, also for who is there already."""
        kinds = {kind for kind, _ in prices}
        types = tuple(_repriced(entry, prices) if entry.name in kinds else entry for entry in self._all.types)
        if types == self._all.types:
            return
        self._all = replace(self._all, types=types)
        self._publish()
        for name, before in list(self.instances.items()):
            price = prices.get((before.entry.name, before.offering.zone))
            if price is not None and before.offering.capacity_type == names.SPOT:
                after = replace(before, offering=replace(before.offering, price=price), price=self._all.with_fee(price))
                self.instances[name] = after
                for observe in self.on_price:
                    observe(before, after)

    # -- shortages -------------------------------------------------------------------------------------------------

    def _short(self, entry: InstanceType, offering: Offering) -> bool:
        now = self.world.queue.time
        taken = self._reserved.get(offering.reservation_id or "", 0)
        if offering.reservation_id is not None and taken >= offering.reservation_capacity:
            return True
        return any(
            seconds(short.start) <= now < seconds(short.start) + seconds(short.length)
            and _concerns(short, entry, offering)
            for short in self._shortages
        )

    def _remember(self, entry: InstanceType, offering: Offering) -> None:
        until = self.world.queue.time + REMEMBERS_SHORTAGE
        self._known_short[offering_key(entry, offering)] = until
        self.world.queue.at(until, self._publish)
        self._publish()

    def _publish(self) -> None:
        now = self.world.queue.time
        self._known_short = {key: until for key, until in self._known_short.items() if until > now}
        available = obtainable(self._all, self._known_short, self._reserved)
        if available.types != self.catalog.types:
            self.catalog = available

    # -- termination -----------------------------------------------------------------------------------------------

    def terminate(self, claim: NodeClaim) -> None:
        """Terminate the instance of a claim; a condition of the claim says when it is gone."""
        name, now = claim.name, self.world.queue.moment
        status = "Terminating" if name in self.instances else "Terminated"
        if not claim.is_true("InstanceTerminating") or status == "Terminated":
            self.world.store.claims.put(with_condition(claim, "InstanceTerminating", "True", now, reason=status))
        if name in self.instances and not claim.is_true("InstanceTerminating"):
            delay = self.world.jittered(self.world.timings.termination, "termination", name)
            self.world.queue.after(delay, partial(self._terminated, name, claim.metadata.uid))

    def _terminated(self, name: str, uid: str) -> None:
        self.end(name)
        claim = get_by_uid(self.world.store.claims, name, uid)
        if claim is not None:
            now = self.world.queue.moment
            terminated = with_condition(claim, "InstanceTerminating", "True", now, reason="Terminated")
            self.world.store.claims.put(terminated)

    def end(self, name: str) -> None:
        instance = self.instances.pop(name, None)
        self._leaving.discard(name)
        if instance is None:
            return
        if instance.offering.reservation_id is not None:
            self._reserved[instance.offering.reservation_id] -= 1
            self._publish()
        for observe in self.on_end:
            observe(instance)

    def reboot(self, claim: NodeClaim, operation: str) -> None:
        """Reboot the instance of a claim: its node is not ready for a while, and has another boot id then."""
        node, now = self.world.store.nodes.get(claim.status.node_name), self.world.queue.moment
        if node is None or claim.name not in self.instances:
            refused = "there is no instance to reboot"
            self.world.store.claims.put(with_annotation(claim, names.REBOOT_REFUSED, refused))
            return
        issued = with_annotation(claim, names.REBOOT_ISSUED, now.isoformat(timespec="seconds"))
        self.world.store.claims.put(with_condition(issued, REBOOTING, "True", now, reason="RebootIssued"))
        self.world.store.nodes.put(with_condition(node, "Ready", "Unknown", now, reason="Rebooting"))
        delay = self.world.jittered(self.world.timings.readiness, "reboot", operation)
        self.world.queue.after(delay, partial(self._booted, node.name, operation))

    def _booted(self, name: str, operation: str) -> None:
        node = self.world.store.nodes.get(name)
        if node is not None and name in self.instances:
            ready = with_condition(node, "Ready", "True", self.world.queue.moment)
            booted = with_status(ready, node_info=NodeSystemInfo(boot_id=f"virtual-{operation}"))
            self.world.store.nodes.put(booted)
            for observe in self.on_boot:
                observe(name)

    def _plan_interruption(self, name: str) -> None:
        for number, fault in enumerate(self._interruptions):
            mean = seconds(fault.every)
            wait = waiting_time(self.world.seed, mean, "interruption", str(number), name)
            begins = max(self.world.queue.time, seconds(fault.start)) + wait
            self.plan_interruption(self.instances[name], begins, seconds(fault.warning))

    def plan_interruption(self, instance: Instance, begins: float, warning: float) -> None:
        """Interrupt an instance at a time, if it is still there."""
        self.world.queue.at(begins, partial(self._interrupt, instance.name, instance.since, warning))

    def _interrupt(self, name: str, since: float, warning: float) -> None:
        """Delete the claim as interruption handlers do, and take the instance away after the warning."""
        if self._is_there(name, since) and name not in self._leaving:
            self._leaving.add(name)
            self.interrupted += 1
            self.api.delete(self.world.store.claims, name)
            self.world.queue.after(warning, partial(self._reclaim, name, since))

    def _is_there(self, name: str, since: float) -> bool:
        """Whether an instance is still there; its price may be another one."""
        there = self.instances.get(name)
        return there is not None and there.since == since

    def _reclaim(self, name: str, since: float) -> None:
        if not self._is_there(name, since):
            return
        node = self.world.store.nodes.get(name)
        if node is not None:
            self.world.store.nodes.put(with_condition(node, "Ready", "Unknown", self.world.queue.moment))
        claim = self.world.store.claims.get(name)
        self._terminated(name, claim.metadata.uid if claim is not None else "")


def _repriced(entry: InstanceType, prices: Mapping[tuple[str, str], float]) -> InstanceType:
    """The type with other prices of its spot offerings."""
    return replace(entry, offerings=tuple(_at_price(entry.name, offering, prices) for offering in entry.offerings))


def _at_price(kind: str, offering: Offering, prices: Mapping[tuple[str, str], float]) -> Offering:
    price = prices.get((kind, offering.zone)) if offering.capacity_type == names.SPOT else None
    return offering if price is None or price == offering.price else replace(offering, price=price)


def _concerns(shortage: Shortage, entry: InstanceType, offering: Offering) -> bool:
    return (
        (not shortage.instance_types or entry.name in shortage.instance_types)
        and (not shortage.zones or offering.zone in shortage.zones)
        and (not shortage.capacity_types or offering.capacity_type in shortage.capacity_types)
    )


def node_of(instance: Instance, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> Node:
    merged = {**instance_labels(instance.entry, instance.offering, instance.price), **labels}
    return starting_node(instance.name, PROVIDER + instance.name, instance.entry, labels=merged, taints=taints)
