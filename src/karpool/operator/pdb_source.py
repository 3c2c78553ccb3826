"""The PodDisruptionBudgets of a live cluster, and the pods that they cover."""

from collections.abc import Collection, Iterator

from karpool.controller.store import ClusterStore
from karpool.disruption.pdbs import PdbLimits


class StorePdbSource:
    """The budgets of a store, indexed again only after a change."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._version = -1
        self._pdbs = PdbLimits(())

    def pdbs(self) -> PdbLimits:
        """The current budgets."""
        if self._version != self._store.pdbs.version:
            self._version = self._store.pdbs.version
            self._pdbs = PdbLimits(self._store.pdbs.listed())
        return self._pdbs

    def covered(self, budgets: Collection[str]) -> Iterator[str]:
        """The keys of the pods that any of these budgets covers."""
        limits = PdbLimits(pdb for key in sorted(budgets) if (pdb := self._store.pdbs.get(key)) is not None)
        for pod in self._store.pods:
            if limits.matching(pod):
                yield pod.key
