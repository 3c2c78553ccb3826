"""The virtual cluster: all parts put together, with a clock to run."""

from datetime import datetime
from typing import Final

from karpool.catalog.instance_types import Catalog
from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.ports import Duties, Intervals
from karpool.controller.store import ClusterStore
from karpool.disruption.settings import DisruptionSettings, Order, Partition
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.packing.question import Options
from karpool.provisioning.launching import foresee
from karpool.virtual.actuator import VirtualActuator
from karpool.virtual.api import Api
from karpool.virtual.autoscaler import Autoscaler
from karpool.virtual.cloud import VirtualCloud
from karpool.virtual.compactor import VirtualCompactor
from karpool.virtual.curves import seconds
from karpool.virtual.event_queue import EventQueue
from karpool.virtual.initial_cluster import furnish, settle
from karpool.virtual.kubelet import Kubelets
from karpool.virtual.ledger import Ledger
from karpool.virtual.pdb_controller import PdbController
from karpool.virtual.scenario import (
    Decisions,
    Interruptions,
    Outage,
    Policy,
    Scenario,
    Shortage,
    Timings,
    patched,
)
from karpool.virtual.scheduler import Scheduler
from karpool.virtual.workloads import Workloads, budget_of
from karpool.virtual.world import VirtualWorld


class VirtualCluster:
    """The cluster of a scenario under one policy; `run` lets time pass, `ledger` says what it cost.

    `begins_with` is the real cluster, if there is one, that `with_cluster` made the scenario from.
    """

    def __init__(
        self,
        scenario: Scenario,
        catalog: Catalog,
        *,
        policy: Policy | None = None,
        seed: int | None = None,
        begins_with: Objects | None = None,
    ) -> None:
        self.scenario = scenario
        self.policy = policy = policy or Policy()
        seed = scenario.seed if seed is None else seed
        self.queue = EventQueue(scenario.start)
        self.store = ClusterStore()
        world = self.world = VirtualWorld(self.store, self.queue, seed, scenario.timings)
        for pool in patched(scenario.pools, policy):
            self.store.pools.put(pool)
        if begins_with is not None:
            furnish(self.store, begins_with)
        self.workloads = Workloads(world, scenario.workloads)
        self._put_budgets()
        self.watchman = PdbController(self.store, self.workloads.controller_of, self.workloads.scale)
        self.api = Api(world, self.watchman)
        self.workloads.install(self.api)
        self.cluster_state = ClusterState(self.store, self._foreseen)
        self.cloud = VirtualCloud(
            world,
            self.api,
            catalog,
            shortages=[fault for fault in scenario.faults if isinstance(fault, Shortage)],
            interruptions=[fault for fault in scenario.faults if isinstance(fault, Interruptions)],
        )
        self.scheduler = Scheduler(world, self.cluster_state, policy.scheduler or scenario.scheduler)
        self.kubelets = Kubelets(
            world,
            self.cluster_state,
            start_time=self.workloads.start_time,
            stop_time=self.workloads.stop_time,
            run_time=self.workloads.run_time,
        )
        self.actuator = VirtualActuator(world, self.api, self.cloud)
        self.ledger = Ledger(world, self.api, self.cloud)
        self.actuator.observers.append(self.ledger.action)
        self.controller = Controller(
            self.store,
            self.queue,
            self.cluster_state,
            self.actuator,
            offers=self.cloud,
            pdb_source=self.watchman,
            settings=decision_settings(policy.decisions),
            options=Options(seed=seed),
            intervals=intervals(scenario.timings),
            duties=Duties(disrupts=policy.disruption),
        )
        groups = scenario.node_groups if policy.node_groups else ()
        self.autoscaler = Autoscaler(
            world, self.cluster_state, self.cloud, groups, settings=scenario.autoscaler, catalog=catalog
        )
        self._begin()
        if begins_with is not None:
            settle(self.cloud, self.workloads, begins_with)
            self.ledger.begin()  # nodes that were there are not launched

    def _put_budgets(self) -> None:
        asked = (budget_of(workload) for workload in self.workloads.described)
        for budget in (*self.scenario.budgets, *(budget for budget in asked if budget is not None)):
            self.store.pdbs.put(budget)

    def _begin(self) -> None:
        self.queue.at(0.0, self.workloads.start)
        self.queue.at(0.0, self.controller.start)
        if self.autoscaler.groups:
            self.queue.at(0.0, self.autoscaler.start)
        if self.policy.compactor is not None:
            VirtualCompactor(self.world, self.api, self.policy.compactor).start()
        for fault in self.scenario.faults:
            if isinstance(fault, Outage):
                self.queue.at(seconds(fault.start), self.controller.stop)
                self.queue.at(seconds(fault.start) + seconds(fault.length), self.controller.start)
        if seconds(self.scenario.warm_up):
            self.queue.at(seconds(self.scenario.warm_up), self.ledger.begin)

    def _foreseen(self, claim: NodeClaim) -> NodeClaim:
        return foresee(Objects(node_claims=(claim,)), self.cloud.catalog).node_claims[0]

    @property
    def now(self) -> datetime:
        """The cluster's own time."""
        return self.queue.moment

    def run(self, until: float) -> None:
        """Let time pass until so many seconds after the start."""
        self.queue.run(until)


_REFRESH: Final = 300.0
"""The simulator looks less often than a real controller for what only time changes: it has whole days to run."""


def intervals(timings: Timings) -> Intervals:
    """A scenario's timings as the controller takes them."""
    return Intervals(
        poll=seconds(timings.poll),
        patience=seconds(timings.patience),
        refresh=_REFRESH,
        validation=seconds(timings.validation),
        batch_idle=seconds(timings.batch_idle),
        batch_most=seconds(timings.batch_most),
    )


def decision_settings(decisions: Decisions) -> DisruptionSettings:
    """A scenario's choices as decisions take them."""
    return DisruptionSettings(
        order=Order(decisions.order),
        partition=Partition(decisions.partition),
        spot_to_spot=decisions.spot_to_spot,
        spot_floor=decisions.spot_floor,
        ignore_budgets=decisions.ignore_budgets,
    )
