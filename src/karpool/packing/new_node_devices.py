"""New nodes for pods with claims on devices: which types will have the devices, and what an open claim has given away.

Types whose nodes will publish the same devices are one kind, and are judged once. An open claim keeps by kind who has
which of them: as long as its type is open, any of its kinds may come. Devices that are published for many nodes are
taken for all of its kinds together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.devices.claims import ClaimDemand, ClaimError
from karpool.cluster.devices.ledger import DeviceLedger, Grants
from karpool.cluster.devices.pools import PublishedDevice, Reach, template_reach
from karpool.cluster.devices.search import Grant, Holdings, NoDevicesError, allocate
from karpool.model.devices import NO_DEVICES, TypeDevices
from karpool.model.requirements import NO_REQUIREMENTS, Requirements
from karpool.model.scheduling import NodeSelector
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.directed import PROGRESS, place_directed
from karpool.packing.refusal_messages import Refusal, RefusalRule
from karpool.wire.objects import encode_value

if TYPE_CHECKING:
    from karpool.packing.engine import Engine

_NEW: Final = "new"
_ELSEWHERE: Final = "has devices that a new node cannot reach"


@dataclass(slots=True)
class _Opened:
    """What an open claim has given away: by kind of its types, by claim of a pod."""

    grants: dict[int, Grants] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a pod's claims would get on a new node: by kind, and where the node must be for that."""

    grants: Mapping[int, Grants]
    where: Requirements


class _Target(NamedTuple):
    """A new node to send a pod to: its pool, its requirements by number, its types, and its claim if it is open."""

    template: int
    requirement: int
    types: Array
    claim: int = c.UNSET


class DeviceKinds:
    """Instance types by the devices that their nodes will have."""

    def __init__(self, types: Sequence[TypeDevices]) -> None:
        numbers: dict[bytes, int] = {}
        self.reaches: list[Reach] = []
        self.of_type: Array = np.zeros(max(1, len(types)), dtype=np.int32)
        for at, devices in enumerate(types):
            key = b"" if devices is NO_DEVICES else msgspec.json.encode(devices, enc_hook=encode_value)
            number = numbers.setdefault(key, len(numbers))
            if number == len(self.reaches):
                self.reaches.append(template_reach(devices, _NEW))
            self.of_type[at] = number


class NewNodes:
    """The new nodes of one placement that take pods with claims on devices."""

    def __init__(self, engine: "Engine", ledger: DeviceLedger) -> None:
        self.engine, self.ledger = engine, ledger
        self.opened: dict[int, _Opened] = {}
        self._node_of: dict[str, int] = {}
        """By claim of a pod the new node whose own devices it has."""

    def drivers(self) -> dict[int, tuple[str, ...]]:
        """By open claim the drivers whose devices its pods count on."""
        used = {
            claim: {
                grant.device[0] for grants in opened.grants.values() for given in grants.values() for grant in given
            }
            for claim, opened in self.opened.items()
        }
        return {claim: tuple(sorted(names)) for claim, names in used.items() if names}

    # -- placing -----------------------------------------------------------------------------------------------------

    def place(self, item: int, row: int, queued: int) -> None:
        """Send a pod to open claims, those with the fewest pods first, then to a new node of each pool in order."""
        memory = self.engine.memory
        for claim in memory["claim_order"][: int(memory["state"][c.CLAIMS])].tolist():
            if self._on_open(item, row, queued, claim):
                return
        for template in range(len(self.engine.tables.pools.templates)):
            if self._on_new(item, row, queued, template):
                return

    def _on_open(self, item: int, row: int, queued: int, claim: int) -> bool:
        memory, tables = self.engine.memory, self.engine.tables
        before, count = int(memory["claim_requirement"][claim]), int(memory["claim_type_count"][claim])
        types = memory["claim_types"][claim, :count].copy()
        offer = self._offer(row, claim, tables.requirements.requirements[before], types)
        if isinstance(offer, str):
            return False
        number = tables.requirements.both(tables.requirements.requirements[before], offer.where)
        kept = types[np.isin(self.engine.device_kinds.of_type[types], list(offer.grants))]
        if number < 0 or not len(kept):
            return False
        memory.put(**tables.requirements.columns)
        memory["claim_types"][claim, : len(kept)], memory["claim_type_count"][claim] = kept, len(kept)
        memory["claim_requirement"][claim] = number
        template = int(memory["claim_template"][claim])
        if self._send(item, queued, _Target(template, number, kept, claim)):
            self._give(row, claim, offer)
            return True
        memory["claim_types"][claim, :count], memory["claim_type_count"][claim] = types, count
        memory["claim_requirement"][claim] = before
        return False

    def _on_new(self, item: int, row: int, queued: int, template: int) -> bool:
        tables = self.engine.tables
        requirements, types = (
            tables.pools.templates[template].requirements,
            np.flatnonzero(tables.pools.usable_mask(template)),
        )
        offer = self._offer(row, None, requirements, types)
        if isinstance(offer, str):
            return False
        number = tables.requirements.both(requirements, offer.where)
        if number < 0:
            return False
        kept = types[np.isin(self.engine.device_kinds.of_type[types], list(offer.grants))]
        claim = int(self.engine.memory["state"][c.CLAIMS])
        self.engine.memory.put(**tables.requirements.columns)
        if not self._send(item, queued, _Target(template, number, kept)):
            return False
        self._give(row, claim, offer)
        return True

    def _send(self, item: int, queued: int, target: _Target) -> bool:
        """Let the kernel put one pod on one new node, open or not; whether it did."""
        memory = self.engine.memory
        kinds = np.full(queued, c.UNSET, dtype=np.int32)
        kinds[item] = 0
        mask = np.zeros((1, max(1, len(self.engine.tables.pools.types.types))), dtype=np.uint8)
        mask[0, target.types] = 1
        one = np.ones(1, dtype=np.int32)
        self.engine.run(
            place_directed,
            np.zeros(PROGRESS, dtype=np.int64),
            1,
            kinds,
            np.array([0, 1]),
            -2 * one,
            one.copy(),
            np.full(1, c.UNSET, dtype=np.int64),
            target.template * one,
            target.requirement * one,
            mask,
            target.claim * one,
        )
        if int(memory["target"][item]) == c.UNPLACED:
            return False
        count = int(memory["state"][c.CLAIMS])
        memory["claim_order"][:count] = np.argsort(memory["claim_pods"][:count], kind="stable")
        return True

    def _give(self, row: int, claim: int, offer: _Offer) -> None:
        """Note what the claims of a pod got on a new node, for the kinds that its types still have."""
        memory, opened = self.engine.memory, self.opened.setdefault(claim, _Opened())
        types = memory["claim_types"][claim, : int(memory["claim_type_count"][claim])]
        left = set(self.engine.device_kinds.of_type[types].tolist())
        opened.grants = {
            kind: {**opened.grants.get(kind, {}), **grants} for kind, grants in offer.grants.items() if kind in left
        }
        booked: Grants = {}
        for grants in opened.grants.values():
            for key, given in grants.items():
                shared = [grant for grant in given if not _own(grant)]
                if len(shared) < len(given):
                    self._node_of[key] = claim
                booked[key] = _together(booked.get(key, ()), shared)
        for key in booked:
            self.ledger.holdings.release(key)
        self.ledger.assign(row, booked)

    # -- what can be had ---------------------------------------------------------------------------------------------

    def _offer(self, row: int, claim: int | None, requirements: Requirements, types: Array) -> _Offer | str:
        """What a pod's claims would get on a new node of some types; why nothing, if nothing."""
        needed, where = [], NO_REQUIREMENTS
        own = self.opened.get(claim) if claim is not None else None
        if self.ledger.doubt:
            return self.ledger.doubt
        try:
            for entry in self.ledger.state.claims_of(self.engine.snapshot.pods.get(row)):
                if own is not None and any(entry.key in grants for grants in own.grants.values()):
                    continue
                if entry.key in self._node_of:
                    return f"claim {entry.key} {_ELSEWHERE}"
                known = self._where(entry.key, requirements.intersect(where))
                if known is None:
                    needed.append((entry.key, self.ledger.state.demand(entry)))
                elif isinstance(known, str):
                    return known
                else:
                    where = where.intersect(known)
        except ClaimError as error:
            return str(error)
        return self._by_kind(needed, own, requirements, where, types)

    def _by_kind(
        self,
        needed: list[tuple[str, ClaimDemand]],
        own: _Opened | None,
        requirements: Requirements,
        where: Requirements,
        types: Array,
    ) -> _Offer | str:
        kinds = self.engine.device_kinds
        offers: dict[int, Grants] = {}
        why = "has no type that could be launched"
        for kind in np.unique(kinds.of_type[types]).tolist():
            if own is not None and own.grants and kind not in own.grants:
                continue
            place = requirements.intersect(where)
            published = self.ledger.state.slices.reach_of_new(self.ledger.stands, partial(self._admits, place))
            later = kinds.reaches[kind]
            reach = Reach(published.devices + later.devices, published.problems + later.problems)
            try:
                grants = allocate(needed, reach, self._holdings(own, kind)) if needed else {}
            except NoDevicesError as error:
                why = str(error)
                continue
            narrowed = self._reached(grants, published.devices, place, where)
            if narrowed is None:
                why = "would have to be in two places to reach its devices"
                continue
            offers[kind], where = grants, narrowed
        return _Offer(offers, where) if offers else why

    def _holdings(self, own: _Opened | None, kind: int) -> Holdings:
        """Who has which devices, on a new node of a kind too."""
        if own is None or kind not in own.grants:
            return self.ledger.holdings
        holdings = self.ledger.holdings.copy()
        for given in own.grants[kind].values():
            for grant in given:
                if _own(grant):
                    holdings.take(grant)
        return holdings

    def _where(self, key: str, place: Requirements) -> Requirements | str | None:
        """Where a node must be that can reach what a claim has; None if it has nothing yet."""
        kept = self.ledger.kept.get(key)
        if kept is not None:
            if kept.node_selector is None:
                return NO_REQUIREMENTS
            return self._term(kept.node_selector, place) or f"claim {key} {_ELSEWHERE}"
        if key not in self.ledger.holdings.of_claim:
            return None
        where = NO_REQUIREMENTS
        for grant in self.ledger.holdings.of_claim[key]:
            device = self.ledger.state.slices.device(grant.device)
            narrowed = None if device is None else self._narrowed(device, place, where)
            if narrowed is None:
                return f"claim {key} {_ELSEWHERE}"
            where = narrowed
        return where

    def _reached(
        self, grants: Grants, published: Sequence[PublishedDevice], place: Requirements, where: Requirements
    ) -> Requirements | None:
        """Where a node must be that can reach all devices of claims; None if there is no such place."""
        by_key = {device.key: device for device in published}
        for given in grants.values():
            for grant in given:
                if not _own(grant):
                    narrowed = self._narrowed(by_key[grant.device], place, where)
                    if narrowed is None:
                        return None
                    where = narrowed
        return where

    def _narrowed(self, device: PublishedDevice, place: Requirements, where: Requirements) -> Requirements | None:
        if device.slice is None or device.slice.spec.node_name:
            return None
        if device.slice.spec.all_nodes:
            return where
        selector = device.slice.spec.node_selector
        term = None if selector is None else self._term(selector, place.intersect(where))
        return None if term is None else where.intersect(term)

    def _admits(self, place: Requirements, selector: NodeSelector) -> bool:
        return self._term(selector, place) is not None

    def _term(self, selector: NodeSelector, place: Requirements) -> Requirements | None:
        """The first term of a selector that a new node can meet; terms about names it cannot."""
        free = self.engine.tables.free_keys
        for term in selector.node_selector_terms:
            wanted = term.requirements
            if not term.match_fields and wanted and place.conflict(wanted, undefined=free) is None:
                return wanted
        return None

    # -- why not -----------------------------------------------------------------------------------------------------

    def refusals(self, row: int) -> Iterator[tuple[str, Refusal | None]]:
        """By pool why no new node of it would have the devices that a pod asks for; None if some would."""
        pools = self.engine.tables.pools
        for number, template in enumerate(pools.templates):
            types = np.flatnonzero(pools.usable_mask(number))
            offer = self._offer(row, None, template.requirements, types)
            what = f"pool {template.name}"
            yield what, Refusal(len(types), what, RefusalRule.DEVICES, offer) if isinstance(offer, str) else None


def _own(grant: Grant) -> bool:
    """Whether a device is one that the new node itself will have."""
    return grant.device[1].startswith(f"{_NEW}/")


def _together(first: Sequence[Grant], second: Sequence[Grant]) -> tuple[Grant, ...]:
    """What a claim may have of each device at most, whichever of two ways it goes."""
    most: dict[tuple[str, str, str], dict[str, int]] = {}
    for grant in (*first, *second):
        known = most.setdefault(grant.device, {})
        for name, amount in grant.consumed:
            known[name] = max(amount, known.get(name, 0))
    return tuple(Grant(device, tuple(sorted(consumed.items()))) for device, consumed in most.items())
