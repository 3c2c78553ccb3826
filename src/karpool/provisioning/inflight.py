"""In-flight NodeClaims, which have no instance yet, as the nodes that they will most likely become.

Decisions count on the node that is coming, so that a slow launch delays nothing and nothing is launched twice.
"""

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.catalog.pricing import by_price, cheapest_launch
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.nodepool import NodeClaim, as_requirements
from karpool.model.objects import Objects
from karpool.model.requirements import Requirements


def with_claims_launched(objects: Objects, catalog: Catalog) -> Objects:
    """The objects with every in-flight claim as if it were launched."""
    if all(claim.status.provider_id for claim in objects.node_claims):
        return objects
    return replace(objects, node_claims=tuple(as_launched(claim, catalog) for claim in objects.node_claims))


def as_launched(claim: NodeClaim, catalog: Catalog) -> NodeClaim:
    """A claim as if it were launched: as its cheapest type, where that is cheapest."""
    if claim.status.provider_id or claim.metadata.deletion_timestamp is not None:
        return claim
    wanted = as_requirements(claim.spec.requirements)
    choice = _likely(wanted, catalog)
    if choice is None:
        return claim
    entry, offering = choice
    labels = {**_single_values(wanted, entry.requirements, offering.requirements), **claim.metadata.labels}
    return replace(
        claim,
        metadata=replace(claim.metadata, labels=labels),
        status=replace(
            claim.status,
            provider_id=f"launching://{claim.name}",
            capacity=dict(entry.capacity),
            allocatable=dict(entry.allocatable),
        ),
    )


def _likely(wanted: Requirements, catalog: Catalog) -> tuple[InstanceType, Offering] | None:
    named = wanted.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return None
    types = [catalog.by_name[name] for name in sorted(named.values) if name in catalog.by_name]
    for entry in by_price(types, wanted)[:1]:
        offering = cheapest_launch(entry, wanted)
        if offering is not None:
            return entry, offering
    return None


def _single_values(*collections: Requirements) -> dict[str, str]:
    return {
        key: next(iter(allowed.values))
        for requirements in collections
        for key, allowed in requirements.items()
        if not allowed.complement and len(allowed.values) == 1
    }
