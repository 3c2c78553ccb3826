"""The virtual cluster: all parts put together, with a clock to run."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from karpool.catalog.instance_types import Catalog
from karpool.cluster.node_groups import GroupOptions
from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.ports import Duties, Intervals
from karpool.controller.store import ClusterStore
from karpool.disruption.brakes.readiness import Pacing
from karpool.disruption.repair.policies import RepairPolicies
from karpool.disruption.settings import DisruptionSettings, Scoring
from karpool.model.objects import Objects
from karpool.packing.options import Options
from karpool.provisioning.inflight import as_launched
from karpool.virtual.actuator import VirtualActuator
from karpool.virtual.autoscaler import Autoscaler
from karpool.virtual.breakdowns import Breakdowns
from karpool.virtual.changes import with_metadata
from karpool.virtual.cloud import VirtualCloud
from karpool.virtual.compactor import VirtualCompactor
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.controller_manager import ControllerManager, budget_of
from karpool.virtual.control_plane.device_drivers import DeviceDrivers
from karpool.virtual.control_plane.kubelet import Kubelets
from karpool.virtual.control_plane.pdb_controller import PdbController
from karpool.virtual.control_plane.scheduler import Scheduler
from karpool.virtual.curves import seconds
from karpool.virtual.event_queue import EventQueue
from karpool.virtual.facts import VirtualFacts
from karpool.virtual.initial_cluster import load_nodes_and_pods, load_static_objects
from karpool.virtual.market import SpotMarket, SpotPrices
from karpool.virtual.recorder import RunRecorder
from karpool.virtual.replays.demand import Demand
from karpool.virtual.replays.replay import Replay
from karpool.virtual.scenario import Outage, Policy, Scenario, Timings, patched
from karpool.virtual.world import VirtualWorld


class VirtualCluster:
    """The cluster of a scenario under one policy; `run` advances its clock, `recorder` has the results.

    `initial` is the real cluster that `with_cluster` took into the scenario, if there is one, and `demand` what a
    recording says that it asked for from then on; `spot` are prices of spot markets over time. Without `starts` its
    controller never starts, and whoever made the cluster brings another one.
    """

    def __init__(
        self,
        scenario: Scenario,
        catalog: Catalog,
        *,
        policy: Policy | None = None,
        seed: int | None = None,
        initial: Objects | None = None,
        demand: Demand | None = None,
        spot: SpotPrices | None = None,
        starts: bool = True,
    ) -> None:
        self.scenario = scenario
        self.policy = policy = policy or Policy()
        seed = scenario.seed if seed is None else seed
        self.queue = EventQueue(scenario.start)
        self.store = ClusterStore()
        world = self.world = VirtualWorld(self.store, self.queue, seed, scenario.timings)
        for pool in patched(scenario.pools, policy):
            self.store.pools.put(pool)
        if initial is not None:
            load_static_objects(self.store, initial)
        for entry in scenario.device_classes:
            self.store.device_classes.put(entry)
        for template in scenario.claim_templates:
            named = with_metadata(template, namespace=template.metadata.namespace or "default")
            self.store.resource_claim_templates.put(named)
        manager = self.controller_manager = ControllerManager(world, scenario.workloads)
        self._put_budgets()
        for buffer in scenario.buffers:
            self.store.buffers.put(with_metadata(buffer, namespace=buffer.metadata.namespace or "default"))
        self.pdb_controller = PdbController(self.store, manager.scale_target, manager.desired_replicas)
        self.api = Api(world, self.pdb_controller)
        manager.install(self.api)
        self.replay = None if demand is None else Replay(world, self.api, manager, demand, policy)
        ignores_claims = policy.decisions.ignore_dra_requests
        self.cluster_state = ClusterState(
            self.store, lambda claim: as_launched(claim, self.cloud.catalog), ignore_dra_requests=ignores_claims
        )
        self.cloud = VirtualCloud(world, self.api, catalog, scenario.faults)
        self.market = None if spot is None else SpotMarket(world, self.cloud, spot)
        drivers = DeviceDrivers(world, lambda: self.cloud.catalog)
        self.breakdowns = Breakdowns(world, self.cloud, scenario.faults)
        self.scheduler = Scheduler(world, self.cluster_state, policy.scheduler or scenario.scheduler, drivers)
        facts = VirtualFacts(self.store)
        Kubelets(world, self.cluster_state, manager.workload_of, facts.pods_on)
        self.actuator = VirtualActuator(world, self.api, self.cloud)
        self.recorder = RunRecorder(world, self.api, self.cloud)
        self.actuator.observers.append(self.recorder.action)
        self.controller = Controller(
            self.store,
            self.queue,
            self.cluster_state,
            self.actuator,
            catalog_source=self.cloud,
            pdb_source=self.pdb_controller,
            facts=facts,
            settings=_settings(policy, seed, policy.scheduler or scenario.scheduler),
            options=Options(seed=seed, ignore_dra_requests=ignores_claims),
            intervals=_intervals(scenario.timings, policy.decisions.effort),
            duties=Duties(disrupts=policy.disruption),
        )
        self.actuator.on_refused = lambda action, why: self.controller.refused(action, why, final=True)
        groups = scenario.node_groups if policy.node_groups else ()
        self.autoscaler = Autoscaler(world, self.cluster_state, self.cloud, groups, scenario.autoscaler)
        self._schedule_start(controller=starts)
        if initial is not None:
            load_nodes_and_pods(self.cloud, manager, initial, GroupOptions(scenario.pool_label or None))
            if self.replay is not None and demand is not None:
                self.replay.load(demand)
            self.recorder.begin()  # nodes of the initial cluster do not count as launched

    def _put_budgets(self) -> None:
        budgets = (budget_of(workload) for workload in self.scenario.workloads)
        for budget in (*self.scenario.budgets, *(budget for budget in budgets if budget is not None)):
            self.store.pdbs.put(budget)

    def _schedule_start(self, *, controller: bool) -> None:
        self.queue.at(0.0, self.controller_manager.start)
        if self.replay is not None:
            self.queue.at(0.0, self.replay.start)
        if controller:
            self.queue.at(0.0, self.controller.start)
        if self.autoscaler.groups:
            self.queue.at(0.0, self.autoscaler.start)
        if self.policy.compactor is not None:
            VirtualCompactor(self.world, self.api, self.policy.compactor).start()
        for fault in self.scenario.faults:
            if controller and isinstance(fault, Outage):
                self.queue.at(seconds(fault.start), self.controller.stop)
                self.queue.at(seconds(fault.start) + seconds(fault.length), self.controller.start)
        if seconds(self.scenario.warm_up):
            self.queue.at(seconds(self.scenario.warm_up), self.recorder.begin)

    @property
    def now(self) -> datetime:
        return self.queue.moment

    def run(self, until: float) -> None:
        self.queue.run(until)


def _settings(policy: Policy, seed: int, scheduler: str) -> DisruptionSettings:
    """The decisions of a policy; what is foreseen is the scheduler that there is."""
    decisions = msgspec.convert(policy.decisions, DisruptionSettings, from_attributes=True)
    repair = RepairPolicies.checked(policy.repair_policies) if policy.repair_policies else None
    pace = policy.pace
    pacing = Pacing(
        workload_percent=pace.workload_percent,
        pods_percent=pace.pods_percent,
        ready_within=timedelta(seconds=seconds(pace.ready_within)),
    )
    foreseen = Scoring(scheduler) if policy.decisions.foresees_scheduler else Scoring.ANY
    brakes = replace(decisions.brakes, pacing=pacing)
    return replace(decisions, seed=seed, repair=repair, scheduler=foreseen, brakes=brakes)


_REFRESH: Final = 300.0
"""Less often than a real controller, because a simulation runs for days."""
_SEARCH: Final = (60.0, 120.0, 300.0, 600.0)
"""By effort: how long after a global search the next one may begin. Time stands still while it searches."""


def _intervals(timings: Timings, effort: int) -> Intervals:
    names = ("poll", "patience", "validation", "batch_idle", "batch_most")
    lengths = {name: seconds(getattr(timings, name)) for name in names}
    return Intervals(refresh=_REFRESH, search=_SEARCH[effort], **lengths)
