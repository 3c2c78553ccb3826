"""Who has which devices now, and in a what-if: claims of pods that leave are free, claims of pods that came are not.

A claim that the API server knows as allocated keeps its devices, and its pods go only where these can be reached, as
long as somebody stays who uses it. If all its pods leave, it is allocated anew with the first of them. Pods that were
moved on the columns alone, as in the steps of a plan, count where they are.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from karpool.cluster.devices.claims import ClaimDemand, ClaimError
from karpool.cluster.devices.pools import Place, Reach, selector_admits, template_reach
from karpool.cluster.devices.search import Grant, Holdings, NoDevicesError, allocate
from karpool.model.devices import Allocation, ClaimConsumer, ResourceClaim, TypeDevices
from karpool.model.labels import INSTANCE_TYPE

if TYPE_CHECKING:
    from karpool.cluster.snapshot import Snapshot

Grants = dict[str, tuple[Grant, ...]]
NO_TYPES: Final[Mapping[str, TypeDevices]] = MappingProxyType({})
_PODS: Final = ("pods", "")


class DeviceLedger:
    """Devices and their claims at one moment of a snapshot."""

    def __init__(self, snapshot: "Snapshot", types: Mapping[str, TypeDevices] | None = NO_TYPES) -> None:
        """`types`: by name of an instance type the devices that its nodes will have.

        None for the view of a scheduler: what is published counts, whether or not a node has come up fully.
        """
        self.snapshot = snapshot
        self.types = types
        self.state = snapshot.devices
        self.holdings = Holdings()
        self.kept: dict[str, Allocation] = {}
        """Allocations as the API server has them, of claims that stay as they are."""
        self.users: dict[str, set[int]] = {}
        """By claim the rows of the pods that use it."""
        self.doubts: dict[int, str] = {}
        """By row of a node: why nobody knows which of its devices are free."""
        self.doubt = ""
        """Why nobody knows that of any device."""
        self._strangers: set[str] = set()
        """Claims that are used by somebody who is not among the pods."""
        self._gone: frozenset[str] = frozenset()
        self._reach: dict[int, Reach] = {}
        self._fits: dict[tuple[int, ...], dict[int, bool]] = {}
        """By what pods ask for: the nodes that were asked, and whether they have it now."""

    @classmethod
    def of(cls, snapshot: "Snapshot", types: Mapping[str, TypeDevices] | None = NO_TYPES) -> "DeviceLedger":
        """What the claims say, and what pods have that were moved."""
        ledger = cls(snapshot, types)
        ledger._read()
        return ledger

    def without(self, leaving: Collection[int], gone: Iterable[int]) -> "DeviceLedger":
        """The same without nodes, and without pods that leave theirs."""
        other = DeviceLedger(self.snapshot, self.types)
        other.holdings = self.holdings.copy()
        other.kept, other.doubts, other.doubt = dict(self.kept), dict(self.doubts), self.doubt
        other._strangers = self._strangers
        other.users = {key: users.difference(leaving) for key, users in self.users.items()}
        other._gone = frozenset(self.snapshot.nodes.get(row).name for row in gone)
        for key, users in self.users.items():
            if users and not other.users[key] and key not in self._strangers:
                other.kept.pop(key, None)
                other.holdings.release(key)
        if not self.state.slices.shared:
            other._fits = {key: dict(known) for key, known in self._fits.items()}
            for key in self.holdings.of_claim.keys() - other.holdings.of_claim.keys():
                other._forget(self.holdings.of_claim[key])
        return other

    # -- questions ---------------------------------------------------------------------------------------------------

    def problem(self, pod: int) -> str:
        """Why a pod's claims cannot be fulfilled anywhere; empty if it depends on the node."""
        try:
            for claim in self.state.claims_of(self.snapshot.pods.get(pod)):
                if claim.key not in self.kept:
                    self.state.demand(claim)
        except ClaimError as error:
            return str(error)
        return self.doubt

    def nodes_for(self, pod: int, nodes: Sequence[int]) -> list[int]:
        """The nodes of some on which a pod's claims can be fulfilled; pods that ask for the same are asked once."""
        try:
            claims = self.state.claims_of(self.snapshot.pods.get(pod))
            held = any(claim.key in self.kept or claim.key in self.holdings.of_claim for claim in claims)
            asked = () if held else tuple(id(self.state.demand(claim)) for claim in claims)
        except ClaimError:
            return []
        known = self._fits.setdefault(asked, {}) if asked else {}
        for node in nodes:
            if node not in known:
                known[node] = not self.refusal(pod, node)
        return [node for node in nodes if known[node]]

    def _forget(self, grants: Iterable[Grant]) -> None:
        """Ask again where devices were given away or taken back."""
        for grant in grants:
            device = self.state.slices.device(grant.device)
            name = "" if device is None or device.slice is None else device.slice.spec.node_name
            row = self.snapshot.nodes.rows.get(name)
            if row is None:
                self._fits.clear()
                return
            for known in self._fits.values():
                known.pop(row, None)

    def refusal(self, pod: int, node: int) -> str:
        """Why a pod's claims cannot be fulfilled on a node; empty if they can."""
        try:
            self.grants(pod, node)
        except (ClaimError, NoDevicesError) as error:
            return str(error)
        return ""

    def grants(self, pod: int, node: int) -> Grants:
        """The devices that a pod's claims would get on a node, beside those that they have.

        Raises ClaimError or NoDevicesError if they cannot be fulfilled there.
        """
        claims = self.state.claims_of(self.snapshot.pods.get(pod))
        if doubt := self.doubt or self.doubts.get(node, ""):
            raise NoDevicesError(doubt)
        place, reach = self._place(node), self.reach(node)
        needed: list[tuple[str, ClaimDemand]] = []
        for claim in claims:
            if claim.key in self.kept:
                selector = self.kept[claim.key].node_selector
                if selector is not None and not selector_admits(selector, place):
                    raise NoDevicesError(f"claim {claim.key} has devices that cannot be reached from there")
            elif claim.key in self.holdings.of_claim:
                reached = {device.key for device in reach.devices}
                if any(grant.device not in reached for grant in self.holdings.of_claim[claim.key]):
                    raise NoDevicesError(f"claim {claim.key} has devices that cannot be reached from there")
            else:
                needed.append((claim.key, self.state.demand(claim)))
        return allocate(needed, reach, self.holdings) if needed else {}

    def reach(self, node: int) -> Reach:
        """The devices that a node can reach."""
        if node not in self._reach:
            published = self.state.slices.reach(self._place(node), self.stands)
            state = self.snapshot.nodes.get(node)
            starting = self.types is not None and not state.initialized
            expected = self.types.get(state.labels.get(INSTANCE_TYPE, "")) if self.types and starting else None
            if expected is not None:
                later = template_reach(expected, state.name)
                published = Reach(published.devices + later.devices, published.problems + later.problems)
            self._reach[node] = published
        return self._reach[node]

    def _place(self, node: int) -> Place:
        state = self.snapshot.nodes.get(node)
        return Place(state.name, state.labels, local=state.initialized or self.types is None)

    def stands(self, name: str) -> bool:
        """Whether a node that owns slices is there, up, and stays."""
        row = self.snapshot.nodes.rows.get(name)
        return row is not None and name not in self._gone and self.snapshot.nodes.get(row).initialized

    # -- changes -----------------------------------------------------------------------------------------------------

    def assign(self, pod: int, grants: Grants) -> None:
        """Give a pod the devices that its claims would get."""
        for key, given in grants.items():
            self.holdings.book(key, given)
            self._forget(given)
        for claim in self.state.claims_of(self.snapshot.pods.get(pod)):
            self.users.setdefault(claim.key, set()).add(pod)

    def _read(self) -> None:
        pods = self.snapshot.pods
        self._read_claims()
        waiting: list[int] = []
        for row in sorted(pods.device_rows):
            node = int(pods.node_of[row])
            pod = pods.get(row)
            home = self.snapshot.nodes.rows.get(pod.spec.node_name) if pod.spec.node_name else None
            if node < 0:
                continue
            try:
                claims = self.state.claims_of(pod)
            except ClaimError as error:
                self.doubts[node] = f"pod {pod.key} has devices there that are not known: {error}"
                continue
            for claim in claims:
                self.users.setdefault(claim.key, set()).add(row)
            if node != home or any(claim.key not in self.kept for claim in claims):
                waiting.append(row)
        self._settle(sorted(waiting, key=pods.ranking.rank.__getitem__))

    def _read_claims(self) -> None:
        for claim in self.state.claims.values():
            if claim.unreadable:
                self.doubt = f"claim {claim.key} cannot be read: {claim.unreadable}"
            allocation = claim.status.allocation
            if allocation is None:
                continue
            self.kept[claim.key] = allocation
            self.holdings.book(claim.key, _grants(allocation))
            rows = {self._user(claim, consumer) for consumer in claim.status.reserved_for}
            if None in rows:
                self._strangers.add(claim.key)
            self.users[claim.key] = {row for row in rows if row is not None}

    def _user(self, claim: ResourceClaim, consumer: ClaimConsumer) -> int | None:
        """The row of a pod that a claim is reserved for; None if it is another, or no pod."""
        row = self.snapshot.pods.rows.get(f"{claim.metadata.namespace}/{consumer.name}")
        if row is None or (consumer.resource, consumer.api_group) != _PODS:
            return None
        uid = self.snapshot.pods.get(row).metadata.uid
        return row if not consumer.uid or not uid or consumer.uid == uid else None

    def _settle(self, rows: Sequence[int]) -> None:
        """Give devices to pods on nodes whose claims say nothing of them: they were moved, or nobody wrote it down."""
        pods, nodes = self.snapshot.pods, self.snapshot.nodes
        moved = {row for row in rows if nodes.rows.get(pods.get(row).spec.node_name) != int(pods.node_of[row])}
        for key, users in self.users.items():
            if users and users <= moved and key not in self._strangers and key in self.kept:
                del self.kept[key]
                self.holdings.release(key)
        for row in rows:
            node = int(pods.node_of[row])
            try:
                self.assign(row, self.grants(row, node))
            except (ClaimError, NoDevicesError) as error:
                self.doubts[node] = f"nobody knows which devices pod {pods.get(row).key} has there: {error}"


def _grants(allocation: Allocation) -> list[Grant]:
    """The devices of an allocation; those for administrators are not used up."""
    return [
        Grant(
            (entry.driver, entry.pool, entry.device),
            tuple(sorted((name, amount.nano) for name, amount in entry.consumed_capacity.items())),
        )
        for entry in allocation.devices.results
        if not entry.admin_access
    ]
