"""NodeClaims without a NodePool on a real cluster, made by somebody else: from launch to termination."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.trial import NODE_CLASS, Trial, machines, play, pool

from karpool.live.resources import NODE_POOLS
from karpool.model.labels import TERMINATION_FINALIZER
from karpool.operator.kwok_node_class import KWOK_NODE_CLASSES
from karpool.wire.objects import condition

_LONG_AGO = "2026-01-01T00:00:00Z"
TAINT = {"key": "mine", "value": "yes", "effect": "NoSchedule"}


def claim(name: str, node_class: str = "default", **spec: Any) -> dict[str, Any]:
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": node_class}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"requirements": machines("c-16x"), "nodeClassRef": ref, **spec},
    }


def test_a_claim_without_a_pool_gets_a_node_and_goes_with_it(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        trial.start()
        await trial.make(claim("alone", taints=[TAINT], resources={"requests": {"cpu": "3", "memory": "16Gi"}}))
        (node,) = await trial.until_nodes(1)
        await trial.until_initialized()
        (node,), (made,) = await trial.nodes(), await trial.claims()
        assert TERMINATION_FINALIZER in made.metadata.finalizers
        assert node.metadata.labels["team"] == "a"
        assert node.metadata.annotations["note"] == "b"
        assert "mine" in {taint.key for taint in node.spec.taints}
        (owner,) = node.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("NodeClaim", "alone", made.metadata.uid)
        (launcher,) = [operator.provider.instances for operator, _ in trial.operators.values()]
        assert launcher is not None
        assert list(await launcher.list()) == ["kwok://alone"]
        await trial.delete("Node", node.name)
        await trial.until_nodes(0)
        await trial.make(claim("again"))
        await trial.until_nodes(1)
        await trial.until_initialized()
        await trial.delete("NodeClaim", "again")
        await trial.until_nodes(0)

    play(running_cluster, scenario)


def test_a_node_class_that_is_missing_or_not_ready_is_noticed_at_once(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        trial.start()
        ref = {"template": {"spec": {"nodeClassRef": {"name": "missing"}}}}
        await trial.make(pool("default", **ref), claim("alone", "missing"))

        async def gone() -> bool:
            return not await trial.claims()

        async def pool_says_so() -> bool:
            (made,) = (await trial.client.list(NODE_POOLS)).items
            conditions = [condition(made.status.conditions, kind) for kind in ("NodeClassReady", "Ready")]
            says = [entry and (entry.status, entry.reason) for entry in conditions]
            return says == [("False", "NodeClassNotFound")] * 2

        async def is_ready() -> bool:
            made = await trial.client.get(KWOK_NODE_CLASSES, "missing")
            ready = condition(made.status.conditions, "Ready")
            return ready is not None and ready.status == "True"

        await trial.until("the claim is given up", gone, 10)
        assert await trial.events("NodeClassNotReady", "alone")
        await trial.until("the pool says so", pool_says_so, 10)
        await trial.make(NODE_CLASS | {"metadata": {"name": "missing"}})
        await trial.until("the node class is ready", is_ready, 5)
        fault = {
            "type": "Ready",
            "status": "False",
            "reason": "NoImage",
            "message": "",
            "lastTransitionTime": _LONG_AGO,
        }
        await trial.change("KWOKNodeClass", "missing", {"status": {"conditions": [fault]}}, subresource="status")
        await trial.until("the class is not ready", lambda: _not(is_ready), 5)
        await trial.make(claim("another", "missing"))
        await trial.until("the claim is given up", gone, 10)

    play(running_cluster, scenario)


async def _not(holds: Callable[[], Awaitable[bool]]) -> bool:
    return not await holds()
