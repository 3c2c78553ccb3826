"""In-flight NodeClaims, which have no instance yet, as the nodes that they will most likely become.

Decisions count on the node that is coming, so that a slow launch delays nothing and nothing is launched twice.
"""

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import by_price, cheapest_launch
from karpool.model.labels import INSTANCE_TYPE, of_provider
from karpool.model.nodepool import NodeClaim
from karpool.model.requirements import Requirements
from karpool.provisioning.instances import holds, single_values


def as_launched(claim: NodeClaim, catalog: Catalog) -> NodeClaim:
    """A claim as if it were launched: as its cheapest type, where that is cheapest."""
    if claim.status.provider_id or claim.metadata.deletion_timestamp is not None:
        return claim
    wanted = claim.node_requirements
    entry = _cheapest_type(claim, wanted, catalog)
    offering = None if entry is None else cheapest_launch(entry, wanted)
    if entry is None or offering is None:
        return claim
    own = catalog.in_pool(entry, claim.pool)
    labels = {**single_values(wanted, entry.requirements, offering.requirements), **claim.metadata.labels}
    return replace(
        claim,
        metadata=replace(claim.metadata, labels=labels),
        status=replace(
            claim.status,
            provider_id=f"launching://{claim.name}",
            capacity=dict(own.capacity),
            allocatable=dict(own.allocatable),
        ),
    )


def _cheapest_type(claim: NodeClaim, wanted: Requirements, catalog: Catalog) -> InstanceType | None:
    named = wanted.get(INSTANCE_TYPE)
    if named is None or named.complement:
        # Nobody has chosen types for it: a claim of a static pool, or one that somebody else created.
        requests = claim.spec.resources.requests
        unwritten = wanted.without(*(key for key in claim.metadata.labels if of_provider(key)))
        types = [
            entry
            for entry in catalog.types
            if entry.meets(unwritten) and holds(catalog.in_pool(entry, claim.pool), requests)
        ]
    else:
        types = [catalog.by_name[name] for name in sorted(named.values) if name in catalog.by_name]
    return next(iter(by_price(types, wanted)), None)
