"""The catalogue of a cluster whose instances another controller launches."""

from collections.abc import Callable, Sequence
from typing import Final

from karpool.catalog.instance_types import Catalog
from karpool.controller.store import ClusterStore
from karpool.model.labels import INSTANCE_TYPE, REGION, ZONE, ZONE_ID
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool, NodePoolSpec
from karpool.operator.overlaid_catalog import OverlaidCatalog

CatalogFor = Callable[[Sequence[Node], Sequence[NodeClaim], Sequence[NodePool]], Catalog]
_Shown = tuple[frozenset[tuple[str, ...]], tuple[tuple[str, NodePoolSpec], ...]]
_SHOWING: Final = (INSTANCE_TYPE, REGION, ZONE, ZONE_ID)


class ObservedCatalog:
    """The catalogue of where nodes and pools are, with types that only nodes show, as NodeOverlays change it.

    It is rebuilt when one of these changes; what is written on pools changes nothing.
    """

    def __init__(self, store: ClusterStore, catalog_for: CatalogFor) -> None:
        self._store = store
        self._catalog_for = catalog_for
        self._version = (-1, -1, -1)
        self._seen: _Shown = (frozenset(), ())
        self._plain: Catalog | None = None
        self._overlaid = OverlaidCatalog(store)

    @property
    def catalog(self) -> Catalog:
        store = self._store
        version = (store.nodes.version, store.claims.version, store.pools.version)
        if self._plain is None or (version != self._version and self._shown() != self._seen):
            self._seen = self._shown()
            self._plain = self._catalog_for(store.nodes.listed(), store.claims.listed(), store.pools.listed())
        self._version = version
        return self._overlaid.of(self._plain)

    def _shown(self) -> _Shown:
        objects = (*self._store.nodes, *self._store.claims)
        machines = frozenset(tuple(entry.metadata.labels.get(key, "") for key in _SHOWING) for entry in objects)
        return machines, tuple((pool.name, pool.spec) for pool in self._store.pools.listed())
