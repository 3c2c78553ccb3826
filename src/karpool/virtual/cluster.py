"""The virtual cluster: all parts put together, with a clock to run."""

from datetime import datetime
from typing import Final

from karpool.catalog.instance_types import Catalog
from karpool.controller.controller import Controller
from karpool.controller.ground import Duties, Pace
from karpool.controller.mirror import Mirror
from karpool.controller.store import Store
from karpool.disruption.settings import Order, Partition, Settings
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.packing.question import Options
from karpool.provisioning.launching import foresee
from karpool.virtual.agenda import Agenda
from karpool.virtual.api import Api
from karpool.virtual.autoscaler import Autoscaler
from karpool.virtual.cloud import Cloud
from karpool.virtual.compactor import Compactor
from karpool.virtual.curves import seconds
from karpool.virtual.hands import Hands
from karpool.virtual.kubelet import Kubelets
from karpool.virtual.ledger import Ledger
from karpool.virtual.pdbs import Watchman
from karpool.virtual.resuming import furnish, settle
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
from karpool.virtual.world import World


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
        self.agenda = Agenda(scenario.start)
        self.store = Store()
        world = self.world = World(self.store, self.agenda, seed, scenario.timings)
        for pool in patched(scenario.pools, policy):
            self.store.pools.put(pool)
        if begins_with is not None:
            furnish(self.store, begins_with)
        self.workloads = Workloads(world, scenario.workloads)
        self._put_budgets()
        self.watchman = Watchman(self.store, self.workloads.controller_of, self.workloads.scale)
        self.api = Api(world, self.watchman)
        self.workloads.install(self.api)
        self.mirror = Mirror(self.store, self._foreseen)
        self.cloud = Cloud(
            world,
            self.api,
            catalog,
            shortages=[fault for fault in scenario.faults if isinstance(fault, Shortage)],
            interruptions=[fault for fault in scenario.faults if isinstance(fault, Interruptions)],
        )
        self.scheduler = Scheduler(world, self.mirror, policy.scheduler or scenario.scheduler)
        self.kubelets = Kubelets(
            world,
            self.mirror,
            start_time=self.workloads.start_time,
            stop_time=self.workloads.stop_time,
            run_time=self.workloads.run_time,
        )
        self.hands = Hands(world, self.api, self.cloud)
        self.ledger = Ledger(world, self.api, self.cloud)
        self.hands.observers.append(self.ledger.action)
        self.controller = Controller(
            self.store,
            self.agenda,
            self.mirror,
            self.hands,
            offers=self.cloud,
            guard=self.watchman,
            settings=decision_settings(policy.decisions),
            options=Options(seed=seed),
            pace=pace(scenario.timings),
            duties=Duties(disrupts=policy.disruption),
        )
        groups = scenario.node_groups if policy.node_groups else ()
        self.autoscaler = Autoscaler(
            world, self.mirror, self.cloud, groups, settings=scenario.autoscaler, catalog=catalog
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
        self.agenda.at(0.0, self.workloads.start)
        self.agenda.at(0.0, self.controller.start)
        if self.autoscaler.groups:
            self.agenda.at(0.0, self.autoscaler.start)
        if self.policy.compactor is not None:
            Compactor(self.world, self.api, self.policy.compactor).start()
        for fault in self.scenario.faults:
            if isinstance(fault, Outage):
                self.agenda.at(seconds(fault.start), self.controller.stop)
                self.agenda.at(seconds(fault.start) + seconds(fault.length), self.controller.start)
        if seconds(self.scenario.warm_up):
            self.agenda.at(seconds(self.scenario.warm_up), self.ledger.begin)

    def _foreseen(self, claim: NodeClaim) -> NodeClaim:
        return foresee(Objects(node_claims=(claim,)), self.cloud.catalog).node_claims[0]

    @property
    def now(self) -> datetime:
        """The cluster's own time."""
        return self.agenda.moment

    def run(self, until: float) -> None:
        """Let time pass until so many seconds after the start."""
        self.agenda.run(until)


_REFRESH: Final = 300.0
"""The simulator looks less often than a real controller for what only time changes: it has whole days to run."""


def pace(timings: Timings) -> Pace:
    """A scenario's timings as the controller takes them."""
    return Pace(
        poll=seconds(timings.poll),
        patience=seconds(timings.patience),
        refresh=_REFRESH,
        validation=seconds(timings.validation),
        batch_idle=seconds(timings.batch_idle),
        batch_most=seconds(timings.batch_most),
    )


def decision_settings(decisions: Decisions) -> Settings:
    """A scenario's choices as decisions take them."""
    return Settings(
        order=Order(decisions.order),
        partition=Partition(decisions.partition),
        spot_to_spot=decisions.spot_to_spot,
        spot_floor=decisions.spot_floor,
        ignore_budgets=decisions.ignore_budgets,
    )
