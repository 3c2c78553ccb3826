"""Karpenter itself, with its KWOK provider, beside Karpool: it launches and terminates nodes, and Karpool disrupts."""

import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conformance.deployment import karpenter
from tests.live.control_plane import ControlPlane
from tests.live.invariants import left_behind
from tests.live.programs import Program, free_port
from tests.live.service_account import AsServiceAccount
from tests.live.trial import SETTINGS, Trial, pool

from karpool.catalog.instance_types import Catalog
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.operator.providers.karpenter import TAINT
from karpool.operator.settings import RunSettings

NOBODY = [{"nodes": "0"}]
EVERYBODY = [{"nodes": "100%"}]
ASKS = {names.BUDGETS: '[{"nodes": "100%"}]'}
QUICK = {"BATCH_IDLE_DURATION": "200ms", "BATCH_MAX_DURATION": "1s"}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
BESIDE = replace(SETTINGS, provider="karpenter")


class Karpenter:
    """One process, which may be killed and started again."""

    def __init__(self, executable: Path, plane: ControlPlane, settings: dict[str, str]) -> None:
        self._health = free_port()
        # One that was killed would keep its lease for a while, and nobody else is there to take it.
        own = {"DISABLE_LEADER_ELECTION": "true", **settings}
        log = plane.folder / "karpenter.log"
        self._program: Program = karpenter(executable)(plane.kubeconfig(), own, free_port(), self._health, log)

    def start(self) -> None:
        """Start it, and wait until it works."""
        self._program.start()
        self._program.wait_until_healthy(f"http://127.0.0.1:{self._health}/readyz")

    def kill(self) -> None:
        """End it as a signal does that cannot be caught."""
        self._program.stop(signal.SIGKILL)


@asynccontextmanager
async def beside_karpenter(
    executable: Path, plane: ControlPlane, settings: RunSettings = BESIDE, *, quick: dict[str, str] | None = None
) -> AsyncIterator[tuple[Trial, Karpenter]]:
    """A trial with Karpenter, and with Karpool as the service account of the shipped roles and policies."""
    other = Karpenter(executable, plane, QUICK if quick is None else quick)
    async with AsServiceAccount(plane, settings, ("rbac.yaml", "policy.yaml")) as trial:
        # Its own definition of node classes has this as a default; nobody else says so with this provider.
        await trial.change("KWOKNodeClass", "default", {"status": {"conditions": [READY]}}, subresource="status")
        other.start()
        try:
            yield trial, other
        finally:
            other.kill()


def shared_pool(name: str = "default", *, karpenters: Iterable[dict[str, str]] = NOBODY, **spec: Any) -> dict[str, Any]:
    """A pool that Karpool may disrupt, and Karpenter too if its budgets say so."""
    made = pool(name, disruption={"consolidateAfter": "1s", "budgets": list(karpenters)}, **spec)
    made["metadata"]["annotations"] = ASKS
    return made


def price(nodes: Iterable[Node], catalog: Catalog) -> float:
    """What nodes cost an hour."""
    return sum(_price(node.metadata.labels, catalog) for node in nodes)


def _price(labels: dict[str, str], catalog: Catalog) -> float:
    sold = catalog.by_name[labels[names.INSTANCE_TYPE]].offerings
    place = (labels[names.ZONE], labels[names.CAPACITY_TYPE])
    (found,) = [offering for offering in sold if (offering.zone, offering.capacity_type) == place]
    return catalog.price(found) or 0.0


async def rests_cheaper(
    trial: Trial, before: float, wanted: Callable[[tuple[Node, ...]], bool] = lambda _nodes: True
) -> None:
    """Wait until nothing is under way or left behind and the nodes cost less than before."""
    complaints: list[str] = []

    async def holds() -> bool:
        nodes = await trial.nodes()
        marked = [node.name for node in nodes for taint in node.spec.taints if taint.key == TAINT]
        complaints[:] = [*await left_behind(trial), *(f"node {name} has the taint {TAINT}" for name in marked)]
        if not wanted(nodes):
            complaints.append("other nodes are wanted")
        if (now := price(nodes, trial.catalog)) >= before:
            complaints.append(f"{now:.4f} $/h is no less than {before:.4f} $/h")
        return not complaints

    try:
        await trial.until("everything is at rest and cheaper", holds, 60)
    except AssertionError as error:
        raise AssertionError("; ".join(complaints) + f"\n{error}") from None
