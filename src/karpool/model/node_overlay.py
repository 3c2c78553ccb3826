"""NodeOverlays: prices and further resources of instance types, as an administrator knows them."""

from karpool.model.nodepool import PoolRequirement
from karpool.model.pod import Amounts
from karpool.wire.objects import Object, Wire


class NodeOverlaySpec(Wire):
    """Which types it is for, and what they cost or hold; the overlay with the greatest weight counts."""

    requirements: tuple[PoolRequirement, ...] = ()
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Amounts = {}
    weight: int = 0


class NodeOverlay(Object):
    spec: NodeOverlaySpec = NodeOverlaySpec()
