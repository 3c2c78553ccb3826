"""Repair on a real cluster: a broken node is replaced before it goes, a hanging one is rebooted and keeps its place."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.trial import SETTINGS, Trial, deployment, machines, play, pool

from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy
from karpool.model.labels import INITIALIZED, REBOOTING_TAINT
from karpool.model.nodepool import REBOOTING
from karpool.wire.duration import parse_duration
from karpool.wire.objects import condition


def policy(kind: str, status: str, regex: str, action: str = "ReplaceNode") -> RepairPolicy:
    return RepairPolicy(
        condition_type=kind,
        condition_status=status,
        reason_regex=regex,
        toleration_duration=parse_duration("2s"),
        termination_grace_period=parse_duration("20s"),
        action=action,
    )


POLICIES = RepairPolicies.checked(
    [policy("Ready", "False", ""), policy("Broken", "True", ".*"), policy("Hanging", "True", ".*", "RebootNode")]
)
REPAIRS = replace(SETTINGS, decisions=replace(SETTINGS.decisions, repair=POLICIES), own_repair_policies=True)
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


async def three_nodes(trial: Trial) -> str:
    """Three nodes with a pod each; the name of the first."""
    template = {"spec": {"requirements": machines("c-2x")}}
    await trial.make(pool(template=template, disruption={"consolidateAfter": "Never"}))
    trial.start()
    await trial.make(deployment("web", 3, affinity=APART))
    await trial.until_running(3)
    nodes = await trial.until_nodes(3)
    await trial.until_initialized()
    return min(node.name for node in nodes)


async def breaks(trial: Trial, name: str, kind: str, status: str = "True") -> None:
    """Give a node a condition, beside those that it has."""
    (node,) = [node for node in await trial.nodes() if node.name == name]
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    others = [
        {"type": entry.type, "status": entry.status, "reason": entry.reason, "lastTransitionTime": now}
        for entry in node.status.conditions
        if entry.type != kind
    ]
    told: dict[str, Any] = {"type": kind, "status": status, "reason": "Test", "lastTransitionTime": now}
    await trial.change("Node", name, {"status": {"conditions": [*others, told]}}, subresource="status")


def test_a_broken_node_is_replaced_and_two_at_once_are_left_alone(running_cluster: ControlPlane) -> None:
    """Its replacement is there before it goes; while two of three are broken, nothing happens."""

    async def scenario(trial: Trial) -> None:
        first = await three_nodes(trial)
        second = sorted(node.name for node in await trial.nodes())[1]
        await breaks(trial, first, "Broken")
        await breaks(trial, second, "Broken")

        async def blocked() -> bool:
            return bool(await trial.events("NodeRepairBlocked", first))

        await trial.until("the breaker is told", blocked)
        assert {first, second} <= {node.name for node in await trial.nodes()}
        assert len(await trial.claims()) == 3
        await breaks(trial, second, "Broken", "False")
        most = 0

        async def gone() -> bool:
            nonlocal most
            most = max(most, len(await trial.claims()))
            return first not in {node.name for node in await trial.nodes()}

        await trial.until("the broken node is gone", gone)
        assert most == 4
        assert second in {node.name for node in await trial.until_nodes(3)}
        await trial.until_running(3)

    play(running_cluster, scenario, REPAIRS)


def test_a_hanging_node_is_rebooted_and_keeps_its_claim(running_cluster: ControlPlane) -> None:
    """The node is fenced, has another boot id, and is initialized anew; nothing is launched meanwhile."""

    async def scenario(trial: Trial) -> None:
        name = await three_nodes(trial)
        uids = {claim.metadata.uid for claim in await trial.claims()}
        (before,) = [node for node in await trial.nodes() if node.name == name]
        await breaks(trial, name, "Hanging")

        async def booted() -> bool:
            assert {claim.metadata.uid for claim in await trial.claims()} <= uids
            (node,) = [node for node in await trial.nodes() if node.name == name]
            return node.status.node_info.boot_id != before.status.node_info.boot_id

        await trial.until("the node has booted", booted)
        await breaks(trial, name, "Hanging", "False")

        async def back() -> bool:
            (claim,) = [claim for claim in await trial.claims() if claim.status.node_name == name]
            (node,) = [node for node in await trial.nodes() if node.name == name]
            ended = condition(claim.status.conditions, REBOOTING)
            fenced = any(taint.key == REBOOTING_TAINT for taint in node.spec.taints)
            return (
                ended is not None
                and ended.reason == "RebootSucceeded"
                and claim.is_true("Initialized")
                and node.metadata.labels.get(INITIALIZED) == "true"
                and not fenced
            )

        await trial.until("the node is back", back)
        assert {claim.metadata.uid for claim in await trial.claims()} == uids
        await trial.until_running(3)
        assert await trial.events("RebootObserved", name)

    play(running_cluster, scenario, REPAIRS)
