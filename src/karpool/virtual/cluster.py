"""The virtual cluster: all parts put together, with a clock to run."""

from collections.abc import Iterable
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.controller.controller import Controller
from karpool.controller.ground import Duties, Pace
from karpool.controller.mirror import Mirror
from karpool.controller.store import Store
from karpool.disruption.settings import Order, Partition, Settings
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.packing.question import Options
from karpool.provisioning.launching import foresee
from karpool.virtual.agenda import Agenda
from karpool.virtual.api import Api
from karpool.virtual.autoscaler import Autoscaler
from karpool.virtual.cloud import Cloud
from karpool.virtual.curves import seconds
from karpool.virtual.hands import Hands
from karpool.virtual.kubelet import Kubelets
from karpool.virtual.ledger import Ledger
from karpool.virtual.pdbs import Watchman
from karpool.virtual.scenario import (
    Decisions,
    Interruptions,
    Outage,
    Policy,
    Scenario,
    Shortage,
    Timings,
    Workload,
    patched,
)
from karpool.virtual.scheduler import Scheduler
from karpool.virtual.workloads import Workloads, budget_of
from karpool.virtual.world import World


class VirtualCluster:
    """A cluster in memory; `run` lets time pass, `ledger` says what it cost."""

    def __init__(
        self,
        pools: Iterable[NodePool],
        workloads: Iterable[Workload],
        catalog: Catalog,
        *,
        scenario: Scenario | None = None,
        policy: Policy | None = None,
        seed: int = 0,
    ) -> None:
        self.scenario = scenario = scenario or Scenario()
        self.policy = policy = policy or Policy()
        self.agenda = Agenda(scenario.start)
        self.store = Store()
        world = self.world = World(self.store, self.agenda, seed, scenario.timings)
        for pool in patched(tuple(pools), policy):
            self.store.pools.put(pool)
        self.workloads = Workloads(world, workloads)
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
        self.autoscaler = Autoscaler(
            world, self.mirror, self.cloud, scenario.node_groups, settings=scenario.autoscaler, catalog=catalog
        )
        self._begin()

    @classmethod
    def of(
        cls, scenario: Scenario, catalog: Catalog, *, policy: Policy | None = None, seed: int | None = None
    ) -> "VirtualCluster":
        """The cluster of a scenario under one policy."""
        chosen = scenario.seed if seed is None else seed
        return cls(scenario.pools, scenario.workloads, catalog, scenario=scenario, policy=policy, seed=chosen)

    def _put_budgets(self) -> None:
        asked = (budget_of(workload) for workload in self.workloads.described)
        for budget in (*self.scenario.budgets, *(budget for budget in asked if budget is not None)):
            self.store.pdbs.put(budget)

    def _begin(self) -> None:
        self.agenda.at(0.0, self.workloads.start)
        self.agenda.at(0.0, self.controller.start)
        if self.scenario.node_groups:
            self.agenda.at(0.0, self.autoscaler.start)
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


def pace(timings: Timings) -> Pace:
    """A scenario's timings as the controller takes them."""
    return Pace(
        poll=seconds(timings.poll),
        patience=seconds(timings.patience),
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
