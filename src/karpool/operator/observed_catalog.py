"""The catalogue of a cluster whose instances another controller launches."""

from collections.abc import Callable, Sequence

import structlog

from karpool.catalog.instance_types import Catalog
from karpool.catalog.overlays import with_overlays
from karpool.controller.store import ClusterStore
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.node import Node
from karpool.model.node_overlay import NodeOverlay
from karpool.model.nodepool import NodeClaim

_log = structlog.get_logger()

CatalogFor = Callable[[Sequence[Node], Sequence[NodeClaim]], Catalog]


class ObservedCatalog:
    """The catalogue with the types that only nodes show, as NodeOverlays change it; rebuilt when these change."""

    def __init__(self, store: ClusterStore, catalog_for: CatalogFor) -> None:
        self._store = store
        self._catalog_for = catalog_for
        self._version = (-1, -1, -1)
        self._seen: tuple[frozenset[str], tuple[NodeOverlay, ...]] = (frozenset(), ())
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        store = self._store
        version = (store.nodes.version, store.claims.version, store.overlays.version)
        if self._catalog is None or (version != self._version and self._shown() != self._seen):
            self._seen = self._shown()
            plain = self._catalog_for(store.nodes.listed(), store.claims.listed())
            overlaid = with_overlays(plain, store.overlays.listed())
            for name, reason in overlaid.left_out.items():
                _log.warning("node overlay left out", overlay=name, reason=reason)
            self._catalog = overlaid.catalog
        self._version = version
        return self._catalog

    def _shown(self) -> tuple[frozenset[str], tuple[NodeOverlay, ...]]:
        return self._types(), self._store.overlays.listed()

    def _types(self) -> frozenset[str]:
        objects = (*self._store.nodes, *self._store.claims)
        return frozenset(
            entry.metadata.labels[INSTANCE_TYPE] for entry in objects if INSTANCE_TYPE in entry.metadata.labels
        )
