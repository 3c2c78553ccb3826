"""Which devices claims get: depth first over claims, requests and their devices, the first solution counts.

A device is tried if it is free, suits, and its pool's counters and the claim's constraints allow it. The search counts
steps instead of seconds, so that the same cluster always gets the same answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from karpool.cluster.devices.claims import ClaimDemand, Constraint, DeviceAlternative
from karpool.cluster.devices.pools import DeviceKey, DevicePoolState, PoolKey, PublishedDevice, Reach
from karpool.cluster.devices.selectors import SelectorError
from karpool.model.devices import MOST_DEVICES, DeviceAttribute, DeviceCapacity

MOST_STEPS: Final = 20_000
"""How many devices one search may try."""
_SCHEDULING: Final = ("NoSchedule", "NoExecute")


class Grant(NamedTuple):
    """A device that a claim has, and what it takes of it if several may have it."""

    device: DeviceKey
    consumed: tuple[tuple[str, int], ...] = ()


class Holdings:
    """Who has which devices."""

    def __init__(self) -> None:
        self.of_claim: dict[str, tuple[Grant, ...]] = {}
        self.of_device: dict[DeviceKey, list[Grant]] = {}

    def copy(self) -> "Holdings":
        other = Holdings()
        other.of_claim = dict(self.of_claim)
        other.of_device = {key: list(grants) for key, grants in self.of_device.items()}
        return other

    def book(self, claim: str, grants: Iterable[Grant]) -> None:
        """Give devices to a claim."""
        self.of_claim[claim] = tuple(grants)
        for grant in self.of_claim[claim]:
            self.of_device.setdefault(grant.device, []).append(grant)

    def release(self, claim: str) -> None:
        """Take a claim's devices back."""
        for grant in self.of_claim.pop(claim, ()):
            self.untake(grant)

    def take(self, grant: Grant) -> None:
        self.of_device.setdefault(grant.device, []).append(grant)

    def untake(self, grant: Grant) -> None:
        left = self.of_device[grant.device]
        left.remove(grant)
        if not left:
            del self.of_device[grant.device]

    def counted(self, pool: DevicePoolState) -> dict[tuple[str, str], int]:
        """What the devices of a pool that somebody has take of its counters."""
        used: dict[tuple[str, str], int] = {}
        for device in pool:
            if device.key in self.of_device:
                _count(used, device, 1)
        return used


def _count(used: dict[tuple[str, str], int], device: PublishedDevice, sign: int) -> None:
    for use in device.device.consumes_counters:
        for name, counter in use.counters.items():
            at = (use.counter_set, name)
            used[at] = used.get(at, 0) + sign * counter.value.nano


class NoDevicesError(ValueError):
    """Claims cannot get the devices that they ask for."""


@dataclass(slots=True)
class _Match:
    """The value that a constraint is held to, and by how many devices."""

    value: object = None
    devices: int = 0


class _Asked(NamedTuple):
    """One way to fulfil a request: of which claim, and which of its requests."""

    claim: int
    at: int
    request: str
    way: DeviceAlternative


@dataclass(slots=True)
class _Search:
    demands: Sequence[tuple[str, ClaimDemand]]
    reach: Reach
    holdings: Holdings
    steps: int = 0
    best: tuple[int, int] = (-1, 0)
    why: str = "has no devices"
    chosen: list[list[Grant]] = field(default_factory=list)
    matches: list[list[_Match]] = field(default_factory=list)
    counters: dict[PoolKey, dict[tuple[str, str], int]] = field(default_factory=dict)
    suiting: dict[DeviceAlternative, list[PublishedDevice]] = field(default_factory=dict)

    def hopeless(self) -> bool:
        """Whether some request could not be fulfilled even if it were the only one."""
        for claim, (_, demand) in enumerate(self.demands):
            for at, request in enumerate(demand.requests):
                asked = [_Asked(claim, at, request.name, way) for way in request.alternatives]
                if not any(map(self._could_be, asked)):
                    return True
        return False

    def _could_be(self, asked: _Asked) -> bool:
        way, suiting = asked.way, self._suiting(asked.way)
        free = sum(self._is_free(way, device) for device in suiting)
        if free < (way.count or max(1, len(suiting))):
            wanted = f"{way.count}" if way.count else "all"
            unusable = f"; {self.reach.problems[0]}" if self.reach.problems else ""
            had = f"{free} of {len(suiting)} free{unusable}"
            return self._failed(asked, f"asks for {wanted} of class {way.device_class}, {had}")
        return True

    def claim(self, at: int) -> bool:
        """Fulfil the claims from one on."""
        if at == len(self.demands):
            return True
        return self.request(at, 0)

    def request(self, claim: int, at: int) -> bool:
        """Fulfil the requests of a claim from one on, then the claims behind it."""
        requests = self.demands[claim][1].requests
        if at == len(requests):
            return len(self.chosen[claim]) <= MOST_DEVICES and self.claim(claim + 1)
        return any(self._fulfil(_Asked(claim, at, requests[at].name, way)) for way in requests[at].alternatives)

    def _fulfil(self, asked: _Asked) -> bool:
        way, suiting = asked.way, self._suiting(asked.way)
        if way.count == 0:
            return self._all(asked, suiting)
        later = self.demands[asked.claim][1].requests[asked.at + 1 :]
        least = sum(min(other.count for other in request.alternatives) for request in later)
        if len(self.chosen[asked.claim]) + way.count + least > MOST_DEVICES:
            return self._failed(asked, f"would give the claim more than {MOST_DEVICES} devices")
        return self._slot(asked, suiting, 0, way.count)

    def _all(self, asked: _Asked, suiting: list[PublishedDevice]) -> bool:
        """Take every device that suits: none may be lacking, taken, or unknown."""
        if self.reach.problems:
            return self._failed(asked, f"asks for all devices, and {self.reach.problems[0]}")
        if not suiting:
            return self._failed(asked, f"asks for all devices of class {asked.way.device_class}, and there are none")
        taken: list[tuple[PublishedDevice, Grant]] = []
        for device in suiting:
            grant = self._take(asked, device)
            if grant is None:
                had = f"{len(taken)} of {len(suiting)} can be had"
                self._failed(asked, f"asks for all devices of class {asked.way.device_class}, {had}")
                break
            taken.append((device, grant))
        if len(taken) == len(suiting) and self.request(asked.claim, asked.at + 1):
            return True
        for device, grant in reversed(taken):
            self._give_back(asked, device, grant)
        return False

    def _slot(self, asked: _Asked, suiting: list[PublishedDevice], first: int, left: int) -> bool:
        """Choose so many more devices, each behind the one before: their order makes no difference."""
        if left == 0:
            return self.request(asked.claim, asked.at + 1)
        found = False
        for position in range(first, len(suiting)):
            device = suiting[position]
            grant = self._take(asked, device)
            if grant is None:
                continue
            found = True
            if self._slot(asked, suiting, position + 1, left - 1):
                return True
            self._give_back(asked, device, grant)
        if not found:
            way = asked.way
            had = f"{way.count - left} of {len(suiting)} can be had"
            self._failed(asked, f"asks for {way.count} of class {way.device_class}, {had}")
        return False

    def _failed(self, asked: _Asked, why: str) -> bool:
        """Keep what the search failed for where it got furthest; always False."""
        depth = (asked.claim, asked.at)
        if depth > self.best:
            self.best, self.why = depth, f"claim {self.demands[asked.claim][0]}: request {asked.way.name} {why}"
        return False

    # -- devices ---------------------------------------------------------------------------------------------------

    def _suiting(self, way: DeviceAlternative) -> list[PublishedDevice]:
        """The devices that classes and selectors mean, whoever has them."""
        known = self.suiting.get(way)
        if known is None:
            try:
                known = [device for device in self.reach.devices if all(map(device.satisfies, way.expressions))]
            except SelectorError as error:
                raise NoDevicesError(f"request {way.name}: a selector {error}") from error
            self.suiting[way] = known
        return known

    def _take(self, asked: _Asked, device: PublishedDevice) -> Grant | None:
        """Take a device if it can be had; None if not."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise NoDevicesError(f"after {MOST_STEPS:,} steps no devices for its claims have been found")
        consumed = self._consumed(asked.way, device)
        if consumed is None or not self._counters_allow(device):
            return None
        held = self._constraints(asked)
        if any(not _joins(match, constraint, device) for constraint, match in held):
            return None
        for constraint, match in held:
            match.value = _value(device, constraint.attribute)
            match.devices += 1
        grant = Grant(device.key, consumed)
        if device.device.consumes_counters and device.key not in self.holdings.of_device:
            _count(self._used(device.pool), device, 1)
        self.holdings.take(grant)
        self.chosen[asked.claim].append(grant)
        return grant

    def _give_back(self, asked: _Asked, device: PublishedDevice, grant: Grant) -> None:
        self.chosen[asked.claim].remove(grant)
        self.holdings.untake(grant)
        if device.device.consumes_counters and device.key not in self.holdings.of_device:
            _count(self._used(device.pool), device, -1)
        for _, match in self._constraints(asked):
            match.devices -= 1

    def _constraints(self, asked: _Asked) -> list[tuple[Constraint, _Match]]:
        constraints = self.demands[asked.claim][1].constraints
        return [
            (constraint, match)
            for constraint, match in zip(constraints, self.matches[asked.claim], strict=True)
            if constraint.covers(asked.request, asked.way.name)
        ]

    def _used(self, pool: DevicePoolState) -> dict[tuple[str, str], int]:
        if pool.key not in self.counters:
            self.counters[pool.key] = self.holdings.counted(pool)
        return self.counters[pool.key]

    def _counters_allow(self, device: PublishedDevice) -> bool:
        if not device.device.consumes_counters or device.key in self.holdings.of_device:
            return True
        used = dict(self._used(device.pool))
        _count(used, device, 1)
        return all(amount <= device.pool.counters[at] for at, amount in used.items())

    def _is_free(self, way: DeviceAlternative, device: PublishedDevice) -> bool:
        return self._consumed(way, device) is not None and self._counters_allow(device)

    def _consumed(self, way: DeviceAlternative, device: PublishedDevice) -> tuple[tuple[str, int], ...] | None:
        """What a request takes of a device; None if the device cannot be had."""
        if not _tolerated(way, device):
            return None
        capacity, asked = device.device.capacity, dict(way.capacity)
        holders = self.holdings.of_device.get(device.key, [])
        if not device.device.allow_multiple_allocations:
            enough = all(name in capacity and amount <= capacity[name].value.nano for name, amount in asked.items())
            return () if enough and not holders else None
        if not asked.keys() <= capacity.keys():
            return None
        taken: dict[str, int] = {}
        for grant in holders:
            for name, amount in grant.consumed:
                taken[name] = taken.get(name, 0) + amount
        consumed: dict[str, int] = {}
        for name, entry in capacity.items():
            wanted = rounded(entry, asked.get(name))
            if wanted is None or taken.get(name, 0) + wanted > entry.value.nano:
                return None
            consumed[name] = wanted
        return tuple(sorted(consumed.items()))


def _tolerated(way: DeviceAlternative, device: PublishedDevice) -> bool:
    return all(
        taint.effect not in _SCHEDULING or any(entry.tolerates(taint) for entry in way.tolerations)
        for taint in device.device.taints
    )


def rounded(capacity: DeviceCapacity, asked: int | None) -> int | None:
    """What a claim takes of a capacity that it asks some amount of, or none; None if that is not to be had."""
    policy = capacity.request_policy
    if asked is None:
        return capacity.value.nano if policy is None or policy.default is None else policy.default.nano
    if policy is None:
        return asked
    if policy.valid_values:
        return min((value.nano for value in policy.valid_values if value.nano >= asked), default=None)
    if policy.valid_range is not None:
        least = policy.valid_range.min.nano if policy.valid_range.min is not None else 0
        amount = max(asked, least)
        if policy.valid_range.step is not None and policy.valid_range.step.nano > 0:
            step = policy.valid_range.step.nano
            amount = least + -(-(amount - least) // step) * step
        most = policy.valid_range.max
        return None if most is not None and amount > most.nano else amount
    return asked


def _joins(match: _Match, constraint: Constraint, device: PublishedDevice) -> bool:
    value = _value(device, constraint.attribute)
    return value is not None and (match.devices == 0 or match.value == value)


def _value(device: PublishedDevice, attribute: str) -> tuple[str, object] | None:
    """The value of an attribute of a device, with its kind; its driver's own attributes need no domain."""
    attributes: Mapping[str, DeviceAttribute] = device.device.attributes
    entry = attributes.get(attribute)
    domain, _, local = attribute.rpartition("/")
    if entry is None and domain == device.key[0]:
        entry = attributes.get(local)
    if entry is None:
        common = device.bound.get(attribute)
        return None if common is None else ("bound", common)
    kinds = (("string", entry.string), ("int", entry.integer), ("bool", entry.boolean), ("version", entry.version))
    return next(((kind, value) for kind, value in kinds if value is not None), None)


def allocate(
    demands: Sequence[tuple[str, ClaimDemand]], reach: Reach, holdings: Holdings
) -> dict[str, tuple[Grant, ...]]:
    """The devices that claims would get, by the key of a claim; holdings stay as they are.

    Raises NoDevicesError if they cannot all be fulfilled, or if nobody can say.
    """
    search = _Search(demands, reach, holdings)
    search.chosen = [[] for _ in demands]
    search.matches = [[_Match() for _ in demand.constraints] for _, demand in demands]
    try:
        if search.hopeless() or not search.claim(0):
            raise NoDevicesError(search.why)
        return {key: tuple(chosen) for (key, _), chosen in zip(demands, search.chosen, strict=True)}
    finally:
        for chosen in search.chosen:
            for grant in chosen:
                holdings.untake(grant)
