"""The catalogue of a cluster whose instances another controller launches."""

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from karpool.catalog.instance_types import Catalog
from karpool.catalog.overlays import with_overlays
from karpool.controller.store import ClusterStore
from karpool.model.labels import INSTANCE_TYPE, REGION, ZONE, ZONE_ID
from karpool.model.node import Node
from karpool.model.node_overlay import NodeOverlay
from karpool.model.nodepool import NodeClaim, NodePool

_log = structlog.get_logger()

CatalogFor = Callable[[Sequence[Node], Sequence[NodeClaim], Sequence[NodePool]], Catalog]
_Shown = tuple[frozenset[tuple[str, ...]], tuple[NodePool, ...], tuple[NodeOverlay, ...]]
_SHOWING: Final = (INSTANCE_TYPE, REGION, ZONE, ZONE_ID)


class ObservedCatalog:
    """The catalogue of where nodes and pools are, with types that only nodes show, as NodeOverlays change it.

    It is rebuilt when one of these changes.
    """

    def __init__(self, store: ClusterStore, catalog_for: CatalogFor) -> None:
        self._store = store
        self._catalog_for = catalog_for
        self._version = (-1, -1, -1, -1)
        self._seen: _Shown = (frozenset(), (), ())
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        store = self._store
        version = (store.nodes.version, store.claims.version, store.pools.version, store.overlays.version)
        if self._catalog is None or (version != self._version and self._shown() != self._seen):
            self._seen = self._shown()
            plain = self._catalog_for(store.nodes.listed(), store.claims.listed(), store.pools.listed())
            overlaid = with_overlays(plain, store.overlays.listed())
            for name, reason in overlaid.left_out.items():
                _log.warning("node overlay left out", overlay=name, reason=reason)
            self._catalog = overlaid.catalog
        self._version = version
        return self._catalog

    def _shown(self) -> _Shown:
        objects = (*self._store.nodes, *self._store.claims)
        machines = frozenset(tuple(entry.metadata.labels.get(key, "") for key in _SHOWING) for entry in objects)
        return machines, self._store.pools.listed(), self._store.overlays.listed()
