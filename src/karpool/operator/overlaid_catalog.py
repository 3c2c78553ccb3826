"""A catalogue as NodeOverlays change it now, made anew when overlays or pools change."""

import structlog

from karpool.catalog.instance_types import Catalog
from karpool.catalog.overlays import with_overlays
from karpool.controller.store import ClusterStore
from karpool.model.node_overlay import NodeOverlay
from karpool.model.requirements import Requirements

_log = structlog.get_logger()
_Basis = tuple[tuple[NodeOverlay, ...], tuple[tuple[str, Requirements], ...]]


class OverlaidCatalog:
    """Remembers the last catalogue, so that it stays the same object while nothing changes."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._plain: Catalog | None = None
        self._version = (-1, -1)
        self._basis: _Basis = ((), ())
        self._catalog: Catalog | None = None

    def of(self, plain: Catalog) -> Catalog:
        """A catalogue with the overlays that there are."""
        store = self._store
        version = (store.overlays.version, store.pools.version)
        if self._catalog is not None and plain is self._plain and version == self._version:
            return self._catalog
        basis = self._read()
        self._version = version
        if self._catalog is None or plain is not self._plain or basis != self._basis:
            self._plain, self._basis = plain, basis
            overlaid = with_overlays(plain, store.overlays.listed(), store.pools.listed())
            for name, reason in overlaid.left_out.items():
                _log.warning("node overlay left out", overlay=name, reason=reason)
            self._catalog = overlaid.catalog
        return self._catalog

    def _read(self) -> _Basis:
        """What of overlays and pools matters; of pools nothing without overlays."""
        overlays = self._store.overlays.listed()
        pools = self._store.pools.listed() if overlays else ()
        return overlays, tuple((pool.name, pool.node_requirements) for pool in pools if not pool.unreadable)
