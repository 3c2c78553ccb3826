"""The scenario of the fault tests: three Deployments, each in a pool of its own, that grow and shrink."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from tests.live.invariants import RuleMonitor, expect_nothing_left_behind, in_pool, wait_until_settled
from tests.live.trial import Trial, budget, deployment, pool

from karpool.model.labels import INSTANCE_TYPE, NODEPOOL

NAMES = ("one", "two", "three")
ONE_EACH = dict.fromkeys(NAMES, 1)
MANY, FEW = 6, 2
SMALL = "c-4x-amd64-linux"
SECONDS = 150.0
"""Kubernetes lets an eviction that was cut short count against its budget for two minutes."""


async def prepare(trial: Trial, *names: str) -> None:
    """Pools that lose one node at a time, and Deployments that lose one pod at a time, while no controller runs."""
    for name in names:
        await trial.make(pool(name, disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]}))
        await trial.make(deployment(name, MANY, **in_pool(name)), budget(name, minAvailable=1))

    async def all_wait() -> bool:
        pods_by_app = Counter(pod.metadata.labels["app"] for pod in await trial.pods() if pod.provisionable)
        return all(pods_by_app[name] == MANY for name in names)

    # A controller that provisions for some of the pods would make two nodes where one is enough.
    await trial.until("all pods wait for nodes", all_wait)


@contextlib.asynccontextmanager
async def grown(trial: Trial, **options: Any) -> AsyncIterator[RuleMonitor]:
    """A controller, with these options, that has a node for each Deployment; a monitor checks that rules hold."""
    await prepare(trial, *NAMES)
    trial.start(**options)
    async with RuleMonitor(trial, healthy=ONE_EACH, leaving=ONE_EACH) as monitor:
        await wait_until_settled(trial, ONE_EACH)
        yield monitor


async def shrink(trial: Trial, *names: str) -> None:
    """Leave few pods of some Deployments, or of all: their nodes are too large now."""
    for name in names or NAMES:
        await trial.scale(name, FEW)


async def command_begins(trial: Trial, name: str) -> None:
    """Wait until a node of a pool is tainted."""

    async def tainted() -> bool:
        return any(node.spec.taints for node in await trial.nodes() if node.metadata.labels[NODEPOOL] == name)

    await trial.until(f"a command is about a node of {name}", tainted)


async def replaced(trial: Trial, *names: str, seconds: float = SECONDS) -> None:
    """Wait until the nodes of some pools, or of all, are replaced by smaller ones."""
    expected = sorted((name, SMALL) for name in names or NAMES)

    async def holds() -> bool:
        all_labels = [node.metadata.labels for node in await trial.nodes()]
        nodes = [(labels[NODEPOOL], labels[INSTANCE_TYPE]) for labels in all_labels]
        return sorted(node for node in nodes if not names or node[0] in names) == expected

    await trial.until(f"smaller nodes for {', '.join(names or NAMES)}", holds, seconds)


async def expect_replaced_and_clean(trial: Trial, monitor: RuleMonitor) -> None:
    """All nodes are replaced, and nothing is left behind."""
    await replaced(trial)
    await expect_nothing_left_behind(trial, monitor, ONE_EACH)
