"""What can be had, for a cluster whose machines another controller launches."""

from collections.abc import Callable, Sequence

from karpool.catalog.instance_types import Catalog
from karpool.controller.store import ClusterStore
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim

CatalogFor = Callable[[Sequence[Node], Sequence[NodeClaim]], Catalog]


class ObservedCatalog:
    """The catalogue with the types that only the nodes show; made anew when they show another one."""

    def __init__(self, store: ClusterStore, catalog_for: CatalogFor) -> None:
        self._store = store
        self._catalog_for = catalog_for
        self._version = (-1, -1)
        self._seen: frozenset[str] = frozenset()
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """What can be had, and what is there."""
        version = (self._store.nodes.version, self._store.claims.version)
        if self._catalog is None or (version != self._version and self._types() != self._seen):
            self._seen = self._types()
            self._catalog = self._catalog_for(self._store.nodes.listed(), self._store.claims.listed())
        self._version = version
        return self._catalog

    def _types(self) -> frozenset[str]:
        """The types that nodes and claims show."""
        labels = (one.metadata.labels for store in (self._store.nodes, self._store.claims) for one in store)
        return frozenset(found for one in labels if (found := one.get(INSTANCE_TYPE)) is not None)
