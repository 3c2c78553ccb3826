"""What decisions keep from pass to pass."""

from typing import TYPE_CHECKING

from karpool.cluster.arrays import Array
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.closed_labels import ClosedLabels
from karpool.disruption.candidates.movable_pods import MovablePods
from karpool.disruption.candidates.node_facts import NodeFactsCache
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.refusal_cache import RefusalCache
from karpool.disruption.snapshot_diff import SnapshotDiff
from karpool.packing.candidate_pods import CandidatePods
from karpool.packing.engine import Engine

if TYPE_CHECKING:
    from karpool.disruption.fleet_search.global_search import GlobalSearch
    from karpool.disruption.fleet_search.living_search import LivingSearch


class Memo:
    """What decisions keep from pass to pass. Without it they come out the same, only later; but for a global search."""

    def __init__(self, engine: Engine, policies: Policies) -> None:
        self.engine = engine
        self.settings = policies.settings
        self.pools = policies.pools
        self.limited = any(pool.spec.limits for pool in policies.pools.values())
        """Whether a pool has limits, so that a refusal may end with what other nodes take of them."""
        settings = policies.settings
        self.nodes = NodeFactsCache(
            engine.snapshot.nodes,
            policies.pools,
            engine.catalog,
            complete=settings.complete_catalog,
            repair=settings.repair,
        )
        self.movable = MovablePods()
        self.closed_labels = ClosedLabels()
        self.candidates: dict[int, tuple[int, Candidate]] = {}
        self.candidate_pods = CandidatePods()
        self.enlisted: dict[int, Candidate] = {}
        self.consolidatable: dict[int, tuple[Candidate, bool]] = {}
        self.refusals = RefusalCache()
        self.global_search: GlobalSearch | None = None
        """The target that a plan of a global search follows, if there is one."""
        self.living_search: LivingSearch | None = None
        """What a global search keeps in a cluster that lives; it outlasts engines and pools."""
        self._diff = SnapshotDiff()

    def fits(self, engine: Engine, policies: Policies) -> bool:
        """Whether this was worked out with the same engine, pools and settings."""
        return self.engine is engine and self.settings == policies.settings and self.pools == policies.pools

    def forget_refusals(self, closed: Array) -> None:
        """Drop the refusals of earlier passes that changes of the snapshot may have made wrong."""
        change = self._diff.change(self.engine.snapshot, closed, limited=self.limited)
        if change is None:
            self.refusals = RefusalCache()
        else:
            self.refusals.forget(self.engine.snapshot, change)
