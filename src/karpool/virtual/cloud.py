"""A cloud: launches machines for NodeClaims as the KWOK provider does, runs short of types, takes spot nodes away.

A machine has the name of its claim. It exists, and costs money, from its launch to the end of its termination.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, as_requirements
from karpool.model.requirements import Requirements
from karpool.model.scheduling import Taint
from karpool.provisioning.machines import choose_machine, machine_labels, starting_node, starting_taints
from karpool.provisioning.shortages import obtainable, offering_key
from karpool.virtual.api import Api
from karpool.virtual.changes import with_claim_condition, with_node_condition
from karpool.virtual.curves import seconds
from karpool.virtual.random_streams import waiting_time
from karpool.virtual.scenario import Interruptions, Shortage
from karpool.virtual.world import VirtualWorld

PROVIDER: Final = "virtual://"
REMEMBERS_SHORTAGE: Final = 180.0
"""How long the provider tells decisions that an offering cannot be had, after it could not be had once."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine that exists: what it costs an hour, and since when it does."""

    name: str
    entry: InstanceType
    offering: Offering
    price: float
    since: float


class VirtualCloud:
    """All machines; `catalog` is what the provider says can be had now."""

    def __init__(
        self,
        world: VirtualWorld,
        api: Api,
        catalog: Catalog,
        *,
        shortages: Iterable[Shortage] = (),
        interruptions: Iterable[Interruptions] = (),
    ) -> None:
        self.world = world
        self.api = api
        self.catalog = catalog
        self.machines: dict[str, Instance] = {}
        self.on_start: list[Callable[[Instance], None]] = []
        self.on_end: list[Callable[[Instance], None]] = []
        self.failed_launches = 0
        self.interrupted = 0
        self._all = catalog
        self._shortages = tuple(shortages)
        self._interruptions = tuple(interruptions)
        self._known_short: dict[tuple[str, str, str], float] = {}
        self._reserved: dict[str, int] = {}
        world.store.claims.watch(self._claim)

    # -- launch --------------------------------------------------------------------------------------------------

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if new is not None and old is None and not new.status.provider_id:
            delay = self.world.strayed(self.world.timings.launch, "launch", new.name)
            self.world.queue.after(delay, partial(self._launch, new.name, new.metadata.uid))
        elif new is None and old is not None and old.name in self.machines:
            self.end(old.name)

    def _held(self, name: str, uid: str) -> NodeClaim | None:
        claim = self.world.store.claims.get(name)
        return claim if claim is not None and claim.metadata.uid == uid else None

    def _launch(self, name: str, uid: str) -> None:
        claim = self._held(name, uid)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        wanted = as_requirements(claim.spec.requirements)
        found = self._choose(wanted)
        if found is None:
            self.failed_launches += 1
            self.api.delete_claim(name, uid)
            return
        entry, offering = found
        if offering.reservation_id is not None:
            self._reserved[offering.reservation_id] = self._reserved.get(offering.reservation_id, 0) + 1
            self._publish()
        machine = self.start(name, entry, offering)
        self._report(claim, machine, wanted)
        delay = self.world.strayed(self.world.timings.registration, "registration", name)
        self.world.queue.after(delay, partial(self._appear, name, uid))

    def _choose(self, wanted: Requirements) -> tuple[InstanceType, Offering] | None:
        """The cheapest machine that can be had; what is missing is remembered."""

        def is_short(entry: InstanceType, offering: Offering) -> bool:
            short = self._short(entry, offering)
            if short:
                self._remember(entry, offering)
            return short

        return choose_machine(self._all, wanted, is_short)

    def start(self, name: str, entry: InstanceType, offering: Offering) -> Instance:
        """Start a machine."""
        price = self._all.price(offering) or 0.0
        machine = self.machines[name] = Instance(name, entry, offering, price, self.world.queue.time)
        for told in self.on_start:
            told(machine)
        if offering.capacity_type == names.SPOT:
            self._plan_interruption(name)
        return machine

    def _report(self, claim: NodeClaim, machine: Instance, wanted: Requirements) -> None:
        """Write into the claim what was launched."""
        labels = {**machine_labels(machine.entry, machine.offering, machine.price, wanted), **claim.metadata.labels}
        launched = with_claim_condition(claim, "Launched", "True", self.world.queue.moment, reason="Launched")
        status = replace(
            launched.status,
            provider_id=PROVIDER + machine.name,
            capacity=dict(machine.entry.capacity),
            allocatable=dict(machine.entry.allocatable),
        )
        metadata = replace(claim.metadata, labels=labels)
        self.world.store.claims.put(replace(launched, metadata=metadata, status=status))

    def _appear(self, name: str, uid: str) -> None:
        """The machine's kubelet registers a Node, which says that it is not ready yet."""
        claim = self._held(name, uid)
        if claim is None or name not in self.machines or name in self.world.store.nodes:
            return
        self.api.create_node(node_of(self.machines[name], claim.metadata.labels, starting_taints(claim)))

    # -- what cannot be had --------------------------------------------------------------------------------------

    def _short(self, entry: InstanceType, offering: Offering) -> bool:
        now = self.world.queue.time
        taken = self._reserved.get(offering.reservation_id or "", 0)
        if offering.reservation_id is not None and taken >= offering.reservation_capacity:
            return True
        return any(
            seconds(one.start) <= now < seconds(one.start) + seconds(one.length) and _concerns(one, entry, offering)
            for one in self._shortages
        )

    def _remember(self, entry: InstanceType, offering: Offering) -> None:
        """Tell decisions for a while that an offering cannot be had."""
        until = self.world.queue.time + REMEMBERS_SHORTAGE
        self._known_short[offering_key(entry, offering)] = until
        self.world.queue.at(until, self._publish)
        self._publish()

    def _publish(self) -> None:
        now = self.world.queue.time
        self._known_short = {key: until for key, until in self._known_short.items() if until > now}
        found = obtainable(self._all, self._known_short, self._reserved)
        if found.types != self.catalog.types:
            self.catalog = found

    # -- end -----------------------------------------------------------------------------------------------------

    def terminate(self, claim: NodeClaim) -> None:
        """End a claim's machine; the claim says when it is over."""
        name, now = claim.name, self.world.queue.moment
        status = "Terminating" if name in self.machines else "Terminated"
        if not claim.is_true("InstanceTerminating") or status == "Terminated":
            self.world.store.claims.put(with_claim_condition(claim, "InstanceTerminating", "True", now, reason=status))
        if name in self.machines and not claim.is_true("InstanceTerminating"):
            delay = self.world.strayed(self.world.timings.termination, "termination", name)
            self.world.queue.after(delay, partial(self._terminated, name, claim.metadata.uid))

    def _terminated(self, name: str, uid: str) -> None:
        self.end(name)
        claim = self._held(name, uid)
        if claim is not None:
            now = self.world.queue.moment
            self.world.store.claims.put(
                with_claim_condition(claim, "InstanceTerminating", "True", now, reason="Terminated")
            )

    def end(self, name: str) -> None:
        """End a machine at once."""
        machine = self.machines.pop(name, None)
        if machine is None:
            return
        if machine.offering.reservation_id is not None:
            self._reserved[machine.offering.reservation_id] -= 1
            self._publish()
        for told in self.on_end:
            told(machine)

    def _plan_interruption(self, name: str) -> None:
        for number, fault in enumerate(self._interruptions):
            mean = seconds(fault.every)
            wait = waiting_time(self.world.seed, mean, "interruption", str(number), name)
            begins = max(self.world.queue.time, seconds(fault.start)) + wait
            self.world.queue.at(begins, partial(self._warn, name, self.machines[name], seconds(fault.warning)))

    def _warn(self, name: str, machine: Instance, warning: float) -> None:
        """The cloud will take the machine: its claim is deleted as interruption handlers do, and soon it is gone."""
        if self.machines.get(name) is machine:
            self.interrupted += 1
            self.api.delete_claim(name)
            self.world.queue.after(warning, partial(self._take, name, machine))

    def _take(self, name: str, machine: Instance) -> None:
        if self.machines.get(name) is not machine:
            return
        node = self.world.store.nodes.get(name)
        if node is not None:
            self.world.store.nodes.put(with_node_condition(node, "Ready", "Unknown", self.world.queue.moment))
        claim = self.world.store.claims.get(name)
        self._terminated(name, claim.metadata.uid if claim is not None else "")


def _concerns(shortage: Shortage, entry: InstanceType, offering: Offering) -> bool:
    return (
        (not shortage.instance_types or entry.name in shortage.instance_types)
        and (not shortage.zones or offering.zone in shortage.zones)
        and (not shortage.capacity_types or offering.capacity_type in shortage.capacity_types)
    )


def node_of(machine: Instance, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> Node:
    """The Node that a machine registers: not ready yet."""
    said = {**machine_labels(machine.entry, machine.offering, machine.price), **labels}
    return starting_node(machine.name, PROVIDER + machine.name, machine.entry, labels=said, taints=taints)
