"""The catalogue of a cluster whose instances another controller launches."""

from collections.abc import Callable, Sequence

from karpool.catalog.instance_types import Catalog
from karpool.controller.store import ClusterStore
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim

CatalogFor = Callable[[Sequence[Node], Sequence[NodeClaim]], Catalog]


class ObservedCatalog:
    """The catalogue with the types that only nodes show; rebuilt when they show another one."""

    def __init__(self, store: ClusterStore, catalog_for: CatalogFor) -> None:
        self._store = store
        self._catalog_for = catalog_for
        self._version = (-1, -1)
        self._seen: frozenset[str] = frozenset()
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        version = (self._store.nodes.version, self._store.claims.version)
        if self._catalog is None or (version != self._version and self._types() != self._seen):
            self._seen = self._types()
            self._catalog = self._catalog_for(self._store.nodes.listed(), self._store.claims.listed())
        self._version = version
        return self._catalog

    def _types(self) -> frozenset[str]:
        objects = (*self._store.nodes, *self._store.claims)
        return frozenset(
            entry.metadata.labels[INSTANCE_TYPE] for entry in objects if INSTANCE_TYPE in entry.metadata.labels
        )
