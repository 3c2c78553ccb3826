"""How much dearer a plan ends if a scheduler places the pods as it likes, instead of where the plan has them.

    python benchmarks/applied.py --clusters 5 --nodes 60 --json

On a virtual cluster the commands of a plan are carried out one by one: replacements are launched, nodes are drained,
and the scheduler binds the pods that come back, to the emptiest node (`LeastAllocated`, as Kubernetes does) or to the
fullest (`MostAllocated`). Pods that find no room get new nodes. Nothing is consolidated on the way.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from clusters import catalog, generate
from outcomes import evictions, planned

from karpool.catalog.instance_types import Catalog
from karpool.disruption.command import Command, Move
from karpool.disruption.plan import Plan, PlanStep
from karpool.disruption.settings import GLOBAL, DisruptionSettings
from karpool.execution.actions import AddTaint
from karpool.execution.start import start_command
from karpool.model.labels import STEERING_TAINT
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.scenario import Policy, Scenario
from karpool.virtual.scheduler import MOST_ALLOCATED
from karpool.wire.objects import condition

STEERING: Final = Taint(key=STEERING_TAINT, effect="PreferNoSchedule")
LEAST_ALLOCATED: Final = "LeastAllocated"
SETTLING: Final = 5.0
LONGEST: Final = 3 * 3600.0
"""Seconds that a command may take."""


class NotSettledError(Exception):
    """Nodes of a command are still there, or pods still wait."""


class AppliedPlan:
    """A virtual cluster on which the commands of a plan are carried out."""

    def __init__(self, world: Objects, machines: Catalog, scheduler: str) -> None:
        scenario = with_cluster(Scenario(scheduler=scheduler), world)
        self.cluster = VirtualCluster(scenario, machines, policy=Policy(disruption=False), initial=world)
        self._names: dict[str, str] = {}
        self._settle(())

    @property
    def price(self) -> float:
        """$/h of all machines that run."""
        return sum(instance.price for instance in self.cluster.cloud.instances.values())

    @property
    def waiting(self) -> list[str]:
        """Pods that do not run."""
        pods = (pod for pod in self.cluster.store.pods if not pod.terminal)
        return [pod.key for pod in pods if not pod.bound or not _ready(pod)]

    def apply(self, made: Plan) -> None:
        """Carry out all commands."""
        for step in made.steps:
            self._steer({name for later in made.steps[step.number :] for name in later.command.nodes})
            self._start(step)

    def _steer(self, later: set[str]) -> None:
        """Ask pods to stay away from nodes that go in later steps."""
        session, leaving = self.cluster.controller.session, {self._names.get(name, name) for name in later}
        nodes = {node.name for node in self.cluster.store.nodes if node.name in leaving}
        session.execute([AddTaint(name, STEERING) for name in sorted(nodes)], in_order=True)

    def _start(self, step: PlanStep) -> None:
        session = self.cluster.controller.session
        before = {claim.name for claim in self.cluster.store.claims}
        command = self._as_it_is(step.command)
        objects = self._around(command)
        now, daemons = self.cluster.now, session.cluster_state.snapshot.daemons
        session.execute(start_command(command, objects, now, session.execution, daemons), in_order=True)
        created = [claim.name for claim in self.cluster.store.claims if claim.name not in before]
        self._settle(command.nodes)
        nodes = {claim.name: claim.status.node_name for claim in self.cluster.store.claims}
        for planned_name, claim in zip(step.replacement_names, created, strict=True):
            self._names[planned_name] = nodes[claim]

    def _as_it_is(self, command: Command) -> Command:
        """The command with today's names, and with the pods that the scheduler has put on its nodes."""
        nodes = tuple(self._names.get(name, name) for name in command.nodes)
        moves = tuple(Move(pod.key, name, "") for name in nodes for pod in self._pods_on(name) if pod.reschedulable)
        return replace(command, nodes=nodes, moves=moves)

    def _pods_on(self, node: str) -> Iterator[Pod]:
        return (pod for pod in self.cluster.store.pods if pod.spec.node_name == node)

    def _around(self, command: Command) -> Objects:
        store = self.cluster.store
        everything = store.but_pods()
        pods = tuple(pod for name in command.nodes for pod in self._pods_on(name))
        return msgspec.structs.replace(everything, pods=pods)

    def _settle(self, leaving: tuple[str, ...]) -> None:
        """Run until nodes are gone and every pod runs."""
        queue, nodes = self.cluster.queue, self.cluster.store.nodes
        limit = queue.time + LONGEST
        self.cluster.run(queue.time + SETTLING)
        while any(name in nodes for name in leaving) or self.waiting:
            if queue.time > limit:
                left = [name for name in leaving if name in nodes]
                raise NotSettledError(f"nodes that should be gone: {left}; pods that do not run: {self.waiting}")
            self.cluster.run(queue.time + SETTLING)


def _ready(pod: Pod) -> bool:
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"


@dataclass(frozen=True)
class Applied:
    """A plan and what it came to."""

    planned: Plan
    price: float
    evictions: int
    launched: int


def applied(world: Objects, machines: Catalog, settings: DisruptionSettings, scheduler: str) -> Applied:
    """Plan a cluster, and carry the plan out."""
    made = planned(world, machines, settings)
    run = AppliedPlan(world, machines, scheduler)
    run.apply(made)
    summary = run.cluster.recorder.summary()
    return Applied(made, run.price, summary.evictions, summary.nodes_launched)


def measure(searches: Sequence[str], count: int, nodes: int, first: int) -> Iterator[dict[str, Any]]:
    """Sums over clusters, for each strategy and each way to schedule."""
    machines = catalog()
    worlds = [generate(nodes, seed) for seed in range(first, first + count)]
    for search in searches:
        settings = DisruptionSettings(search=search, complete_catalog=True)
        for scheduler in (LEAST_ALLOCATED, MOST_ALLOCATED):
            results = [applied(world, machines, settings, scheduler) for world in worlds]
            before, expected = (
                sum(getattr(result.planned, when).price for result in results) for when in ("before", "after")
            )
            price = sum(result.price for result in results)
            yield {
                "search": search,
                "scheduler": scheduler,
                "priceBefore": round(before, 4),
                "pricePlanned": round(expected, 4),
                "priceReached": round(price, 4),
                "dearerPercent": round(100 * (price - expected) / expected, 2),
                "evictionsPlanned": sum(evictions(result.planned) for result in results),
                "evictions": sum(result.evictions for result in results),
                "launchesPlanned": sum(
                    len(step.command.replacements) for result in results for step in result.planned.steps
                ),
                "launches": sum(result.launched for result in results),
            }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the seed of the first cluster")
    parser.add_argument("--search", nargs="+", default=["prefix", GLOBAL])
    parser.add_argument("--json", action="store_true", help="print one JSON object for each way")
    given = parser.parse_args()
    for row in measure(given.search, given.clusters, given.nodes, given.first):
        if given.json:
            print(msgspec.json.encode(row).decode(), flush=True)
        else:
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
