"""The objects of dynamic resource allocation by name, and what claims ask for."""

from typing import Final

from karpool.cluster.devices.claims import ClaimDemand, ClaimError, PodClaim, claims_of, demand
from karpool.cluster.devices.pools import SliceTable
from karpool.model.devices import DeviceClass, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate, ResourceSlice
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import Object


class DeviceState:
    """Claims, templates, slices and classes, kept up to date by `put`."""

    def __init__(self, objects: Objects) -> None:
        self.claims = {claim.key: claim for claim in objects.resource_claims}
        self.templates = {template.key: template for template in objects.resource_claim_templates}
        self.classes = {entry.name: entry for entry in objects.device_classes}
        self.slices = SliceTable(objects.resource_slices)
        self.version = 0
        """Counts changes."""
        self._demands: dict[int, tuple[ResourceClaimSpec, ClaimDemand | ClaimError]] = {}
        self._alike: dict[ClaimDemand, ClaimDemand] = {}

    def put(self, kind: type[Object], key: str, entry: Object | None) -> None:
        """Take note of an object that is new, has changed, or is gone."""
        self.version += 1
        if kind is ResourceSlice:
            self.slices.put(key, entry if isinstance(entry, ResourceSlice) else None)
            return
        self._demands.clear()
        self._alike.clear()
        known: dict[str, object] = getattr(self, _FIELDS[kind])
        if entry is None:
            known.pop(key, None)
        else:
            known[key] = entry

    def claims_of(self, pod: Pod) -> tuple[PodClaim, ...]:
        """The claims of a pod; raises ClaimError if one cannot be found."""
        return claims_of(pod, self.claims, self.templates)

    def demand(self, claim: PodClaim) -> ClaimDemand:
        """What a claim asks for, the same object for equal claims; raises ClaimError for what is not supported."""
        known = self._demands.get(id(claim.spec))
        if known is None:
            try:
                made = demand(claim.spec, self.classes)
                answer: ClaimDemand | ClaimError = self._alike.setdefault(made, made)
            except ClaimError as error:
                answer = ClaimError(f"claim {claim.key} {error}")
            known = self._demands[id(claim.spec)] = (claim.spec, answer)
        if isinstance(known[1], ClaimError):
            raise known[1]
        return known[1]


_FIELDS: Final[dict[type[Object], str]] = {
    ResourceClaim: "claims",
    ResourceClaimTemplate: "templates",
    DeviceClass: "classes",
}
