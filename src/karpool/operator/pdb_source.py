"""The PodDisruptionBudgets of a live cluster."""

from karpool.controller.store import ClusterStore
from karpool.disruption.candidates.pdbs import PdbLimits


class StorePdbSource:
    """The budgets of a store, indexed again only after a change."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._version = -1
        self._pdbs = PdbLimits(())

    def pdbs(self) -> PdbLimits:
        if self._version != self._store.pdbs.version:
            self._version = self._store.pdbs.version
            self._pdbs = PdbLimits(self._store.pdbs.listed())
        return self._pdbs
