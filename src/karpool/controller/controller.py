"""The controller: runs the lifecycle, provisioning, disruption and harm controllers on one store.

It can be stopped and started at any moment. A stop loses what is in memory; the objects stay as they are.
"""

from dataclasses import replace

from karpool.controller.cluster_state import ClusterState
from karpool.controller.deletion_cost_controller import DeletionCostController
from karpool.controller.disruption_controller import DisruptionController
from karpool.controller.harm_controller import HarmController
from karpool.controller.legacy_repair_controller import LegacyRepairController
from karpool.controller.lifecycle_controller import LifecycleController
from karpool.controller.observer import DecisionObserver
from karpool.controller.ports import (
    Actuator,
    Beside,
    CatalogSource,
    Clock,
    Distrusted,
    Duties,
    FactSource,
    Intervals,
    PdbSource,
    at_once,
    nothing_distrusted,
)
from karpool.controller.provisioning_controller import ProvisioningController
from karpool.controller.session import Session
from karpool.controller.static_controller import StaticController
from karpool.controller.store import ClusterStore
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.actions import Action
from karpool.execution.settings import ExecutionSettings
from karpool.model.devices import ResourceSlice
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.workloads import ConfigMap, PodDisruptionBudget
from karpool.packing.options import Options


class Controller:
    """Starts and stops sessions, and passes changes of the store on to the running one."""

    def __init__(
        self,
        store: ClusterStore,
        clock: Clock,
        cluster_state: ClusterState,
        actuator: Actuator,
        *,
        catalog_source: CatalogSource,
        pdb_source: PdbSource,
        facts: FactSource,
        settings: DisruptionSettings,
        options: Options,
        execution: ExecutionSettings | None = None,
        intervals: Intervals | None = None,
        duties: Duties | None = None,
        beside: Beside = at_once,
        distrusted: Distrusted = nothing_distrusted,
    ) -> None:
        self.store = store
        self.clock = clock
        self.cluster_state = cluster_state
        self.actuator = actuator
        self.catalog_source = catalog_source
        self.pdb_source = pdb_source
        self.facts = facts
        self.settings = settings
        self.options = options
        self.execution = execution or ExecutionSettings()
        self.intervals = intervals or Intervals()
        self.duties = duties or Duties()
        self.beside = beside
        self.distrusted = distrusted
        self.observers: list[DecisionObserver] = []
        self.session: Session | None = None
        self.passes = 0
        self._turns = 0
        store.pods.watch(self._pod)
        store.claims.watch(self._claim)
        store.nodes.watch(self._node)
        store.pools.watch(self._pool)
        store.pdbs.watch(self._budget)
        store.pauses.watch(self._pause)
        store.resource_slices.watch(self._resource_slice)

    @property
    def running(self) -> bool:
        """Whether a session runs."""
        return self.session is not None

    @property
    def turns(self) -> int:
        """How often disruption has had its turn, whether or not there was anything to decide."""
        return self._turns + (self._disruption.turns if self.session is not None else 0)

    def start(self) -> None:
        """Start with nothing in memory."""
        if self.session is not None:
            return
        self.session = session = Session(
            store=self.store,
            clock=self.clock,
            cluster_state=self.cluster_state,
            actuator=self.actuator,
            catalog_source=self.catalog_source,
            pdb_source=self.pdb_source,
            settings=self.settings,
            options=self.options,
            execution=replace(
                self.execution,
                failures_forgotten_after=self.settings.brakes.failures_forgotten_after,
                pacing=self.settings.brakes.pacing,
                awaits_devices=not self.options.ignore_dra_requests,
            ),
            intervals=self.intervals,
            facts=self.facts,
            beside=self.beside,
            distrusted=self.distrusted,
            observers=self.observers,
        )
        self._lifecycle = LifecycleController(session, manages_lifecycle=self.duties.manages_lifecycle)
        self._provisioning = ProvisioningController(session, self._lifecycle)
        self._static = StaticController(session, self._lifecycle.workloads.owned)
        self._disruption = DisruptionController(session, self._lifecycle)
        self._lifecycle.start()
        if self.duties.provisions:
            self._provisioning.start()
            self._static.start()
        if self.duties.disrupts:
            self._disruption.start()
            HarmController(session, self._lifecycle.workloads.owned).start()
            LegacyRepairController(session).start()
            DeletionCostController(session, self._disruption.policies).start()

    def stop(self) -> None:
        """Stop; what was in memory is gone."""
        if self.session is not None:
            self.session.alive = False
            self.session = None
            self.passes += self._disruption.passes
            self._turns += self._disruption.turns

    def resync(self) -> None:
        """Reconcile everything as after a start, because an action failed."""
        if self.session is not None:
            self._lifecycle.start()

    def refused(self, action: Action, message: str, *, final: bool) -> None:
        """Note an action that the API server refused; `final`: it certainly did not do it."""
        if self.session is not None:
            self._lifecycle.refused(action, message, final=final)

    # -- changes -------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if self.session is not None:
            self._lifecycle.pod(old, new)
            if self.duties.provisions:
                self._provisioning.pod(old, new)

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if self.session is not None:
            self._lifecycle.claim(old, new)
            if self.duties.provisions:
                self._static.claim(old, new)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if self.session is not None:
            self._lifecycle.node(old, new)

    def _resource_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if self.session is not None:
            self._lifecycle.resource_slice(old, new)

    def _pool(self, old: NodePool | None, new: NodePool | None) -> None:
        if self.session is not None:
            self._lifecycle.pool(old, new)
            if self.duties.provisions:
                self._static.pool(new)
            self._lifecycle.brakes_changed()

    def _pause(self, _old: ConfigMap | None, _new: ConfigMap | None) -> None:
        if self.session is not None:
            self._lifecycle.brakes_changed()

    def _budget(self, _old: PodDisruptionBudget | None, _new: PodDisruptionBudget | None) -> None:
        if self.session is not None:
            self._lifecycle.budget()
