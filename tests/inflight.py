"""Objects with their in-flight NodeClaims as the nodes that they will most likely become."""

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.model.objects import Objects
from karpool.provisioning.inflight import as_launched


def with_claims_launched(objects: Objects, catalog: Catalog) -> Objects:
    return replace(objects, node_claims=tuple(as_launched(claim, catalog) for claim in objects.node_claims))
