"""What pods' claims ask for, checked once: requests with their alternatives, selectors and constraints."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from karpool.model.devices import (
    MOST_DEVICES,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceToleration,
    ExactRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from karpool.model.pod import Pod, PodResourceClaim

_MODES: Final = ("ExactCount", "All")


class ClaimError(ValueError):
    """A claim that cannot be allocated, whatever devices there are."""


@dataclass(frozen=True, slots=True)
class DeviceAlternative:
    """One way to fulfil a request."""

    name: str
    """As constraints call it: `request`, or `request/alternative`."""
    device_class: str
    expressions: tuple[str, ...]
    count: int
    """Zero for all that there are."""
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, int], ...]
    """What it takes of devices that several share, by name, in billionths."""


@dataclass(frozen=True, slots=True)
class ClaimedRequest:
    name: str
    alternatives: tuple[DeviceAlternative, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """Devices of some requests, or of all, have the same value of an attribute."""

    requests: frozenset[str]
    attribute: str

    def covers(self, request: str, alternative: str) -> bool:
        return not self.requests or request in self.requests or alternative in self.requests


@dataclass(frozen=True, slots=True)
class ClaimDemand:
    """What a claim asks for."""

    requests: tuple[ClaimedRequest, ...]
    constraints: tuple[Constraint, ...]


def demand(spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> ClaimDemand:
    """What a claim asks for; raises ClaimError for what is not known, or not supported."""
    constraints = []
    for constraint in spec.devices.constraints:
        if constraint.match_attribute is None:
            kind = "distinctAttribute" if constraint.distinct_attribute is not None else "an unknown kind"
            raise ClaimError(f"has a constraint of {kind}, which is not supported")
        constraints.append(Constraint(frozenset(constraint.requests), constraint.match_attribute))
    requests = tuple(_request(entry, classes) for entry in spec.devices.requests)
    if sum(min(way.count for way in request.alternatives) for request in requests) > MOST_DEVICES:
        raise ClaimError(f"asks for more than the {MOST_DEVICES} devices that a claim can have")
    return ClaimDemand(requests, tuple(constraints))


def _request(request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> ClaimedRequest:
    if request.exactly is not None:
        return ClaimedRequest(request.name, (_alternative(request.exactly, request.name, classes),))
    if not request.first_available:
        raise ClaimError(f"request {request.name} is of a kind that is not known")
    ways = (_alternative(entry, f"{request.name}/{entry.name}", classes) for entry in request.first_available)
    return ClaimedRequest(request.name, tuple(ways))


def _alternative(request: ExactRequest, name: str, classes: Mapping[str, DeviceClass]) -> DeviceAlternative:
    entry = classes.get(request.device_class_name)
    if entry is None:
        raise ClaimError(f"request {name}: device class {request.device_class_name} does not exist")
    if entry.unreadable:
        raise ClaimError(f"request {name}: device class {entry.name} cannot be read: {entry.unreadable}")
    if request.allocation_mode not in _MODES:
        raise ClaimError(f"request {name} has allocation mode {request.allocation_mode}, which is not known")
    every = request.allocation_mode == "All"
    if not every and not 1 <= request.count <= MOST_DEVICES:
        raise ClaimError(f"request {name} asks for {request.count} devices; a claim can have {MOST_DEVICES}")
    return DeviceAlternative(
        name=name,
        device_class=entry.name,
        expressions=(*_expressions(entry.spec.selectors, name), *_expressions(request.selectors, name)),
        count=0 if every else request.count,
        tolerations=request.tolerations,
        capacity=tuple(sorted((key, amount.nano) for key, amount in request.capacity.requests.items())),
    )


def _expressions(selectors: tuple[DeviceSelector, ...], name: str) -> tuple[str, ...]:
    if any(selector.cel is None for selector in selectors):
        raise ClaimError(f"request {name} has a selector that is no CEL expression")
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim of a pod: one that is there, or what its template will make."""

    key: str
    spec: ResourceClaimSpec
    claim: ResourceClaim | None = None


def claims_of(
    pod: Pod, claims: Mapping[str, ResourceClaim], templates: Mapping[str, ResourceClaimTemplate]
) -> tuple[PodClaim, ...]:
    """The claims of a pod; raises ClaimError if one cannot be found."""
    found = (_claim_of(pod, entry, claims, templates) for entry in pod.spec.resource_claims)
    return tuple(entry for entry in found if entry is not None)


def _claim_of(
    pod: Pod,
    entry: PodResourceClaim,
    claims: Mapping[str, ResourceClaim],
    templates: Mapping[str, ResourceClaimTemplate],
) -> PodClaim | None:
    namespace = pod.metadata.namespace
    name = entry.resource_claim_name
    if name is None:
        made = next((status for status in pod.status.resource_claim_statuses if status.name == entry.name), None)
        if made is None:
            return _from_template(pod, entry, templates)
        if made.resource_claim_name is None:
            return None
        name = made.resource_claim_name
    key = f"{namespace}/{name}"
    claim = claims.get(key)
    if claim is None:
        raise ClaimError(f"claim {key} does not exist")
    if claim.unreadable:
        raise ClaimError(f"claim {key} cannot be read: {claim.unreadable}")
    return PodClaim(key, claim.spec, claim)


def _from_template(pod: Pod, entry: PodResourceClaim, templates: Mapping[str, ResourceClaimTemplate]) -> PodClaim:
    """The claim that a pod will get."""
    template = templates.get(f"{pod.metadata.namespace}/{entry.resource_claim_template_name}")
    if template is None:
        name = entry.resource_claim_template_name
        raise ClaimError(f"claim {entry.name} has not been made yet, and its template {name} is missing")
    if template.unreadable:
        raise ClaimError(f"claim template {template.key} cannot be read: {template.unreadable}")
    return PodClaim(f"{pod.key}/{entry.name}", template.spec.spec)
