"""Every brake on a real API server: what it keeps, and the reason that a person sees."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.trial import SETTINGS, Trial, machines, play, pool

from karpool.cli.main import cli
from karpool.disruption.brakes.failures import failed_command
from karpool.execution.tickets import COMMAND, REPLACES, Ticket
from karpool.kube.errors import InvalidError, NotFoundError
from karpool.live.resources import PLAIN_CONFIG_MAPS
from karpool.model import labels as names
from karpool.model.labels import PAUSE_MAP
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.operator.providers.karpenter import TAINT
from karpool.operator.settings import RunSettings

pytestmark = pytest.mark.kubernetes
BESIDE_KARPENTER = replace(SETTINGS, provider="karpenter")
ASKS = {names.BUDGETS: '[{"nodes": "100%"}]'}
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
REPLACEMENTS = f"has(object.metadata.annotations) && '{REPLACES}' in object.metadata.annotations"
QUOTA = "the quota of machines is used up"


def braked(**settings: Any) -> RunSettings:
    """Settings with other brakes than the others of the trial."""
    decisions = BESIDE_KARPENTER.decisions
    return replace(BESIDE_KARPENTER, decisions=replace(decisions, brakes=replace(decisions.brakes, **settings)))


def pools(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A pool whose nodes Karpenter does not disrupt; Karpool may, unless its annotations say otherwise."""
    made = pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]})
    made["metadata"]["annotations"] = ASKS if annotations is None else annotations
    return made


async def machine(trial: Trial, name: str, size: str = "c-2x", *, ready: bool = True, pods: int = 0) -> None:
    """A node that Karpenter made, with its NodeClaim, and pods that run there."""
    kind = f"{size}-amd64-linux"
    entry = next(entry for entry in trial.catalog.types if entry.name == kind)
    labels = {
        names.NODEPOOL: "default",
        names.INSTANCE_TYPE: kind,
        names.CAPACITY_TYPE: "on-demand",
        names.ZONE: "test-zone-a",
        names.ARCH: "amd64",
        names.OS: "linux",
    }
    room = {key: str(amount) for key, amount in entry.allocatable.items()}
    provider = f"kwok://{name}"
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    await trial.make(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeClassRef": ref, "requirements": machines(size)},
        },
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {**labels, names.HOSTNAME: name, names.REGISTERED: "true", names.INITIALIZED: "true"},
            },
            "spec": {"providerID": provider},
            "status": {"capacity": room, "allocatable": room, "conditions": [_ready(ready=ready)]},
        },
    )
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": _now()}
        for kind in ("Launched", "Registered", "Initialized", "Ready")
    ]
    status = {"providerID": provider, "nodeName": name, "capacity": room, "allocatable": room, "conditions": conditions}
    await trial.change("NodeClaim", name, {"status": status}, subresource="status")
    for number in range(pods):
        await running_pod(trial, f"{name}-{number}", name)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ready(*, ready: bool) -> dict[str, str]:
    return {"type": "Ready", "status": "True" if ready else "False"}


async def running_pod(trial: Trial, name: str, node: str) -> None:
    """A pod of a ReplicaSet that runs on a node."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    await trial.make(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i", "resources": resources}]},
        }
    )
    running = {"phase": "Running", "conditions": [_ready(ready=True)]}
    await trial.change("Pod", name, {"status": running}, subresource="status")


async def told(trial: Trial, reason: str, about: str, said: str = "") -> None:
    """Wait for an Event about an object that says something; those of earlier tests may still be there."""

    async def there() -> bool:
        return any(said in event.message for event in await trial.events(reason, about))

    await trial.until(f"{about} is told {reason}: {said}", there, 20)


async def kept_for(trial: Trial, node: str, code: str, said: str = "") -> None:
    """Wait until a node says that it stays for this reason."""

    async def there() -> bool:
        messages = [event.message for event in await trial.events("Unconsolidatable", node)]
        return any(message.startswith(f"{code}: ") and said in message for message in messages)

    await trial.until(f"{node} stays because of {code}: {said}", there, 20)


async def claim_goes(trial: Trial, name: str) -> None:
    """Wait until a NodeClaim is deleted."""

    async def gone() -> bool:
        return name not in {claim.name for claim in await _staying(trial)}

    await trial.until(f"NodeClaim {name} is deleted", gone, 20)


def brakes_of(trial: Trial) -> dict[tuple[str, str], float]:
    """The brakes that hold, as `/metrics` has them."""
    ((operator, _),) = trial.operators.values()
    return {
        (sample.labels["brake"], sample.labels["nodepool"]): sample.value
        for metric in operator.metrics.registry.collect()
        if metric.name == "karpool_brakes"
        for sample in metric.samples
    }


async def holds(trial: Trial, code: str, pool_name: str = "default") -> None:
    """Wait until a brake is in the metrics."""

    async def shown() -> bool:
        return brakes_of(trial).get((code, pool_name)) == 1

    await trial.until(f"metrics show {code}", shown, 20)


def story(plane: ControlPlane, scenario: Callable[[Trial], Awaitable[None]], settings: RunSettings) -> None:
    """Play a story, and take the pause away afterwards."""

    async def whole(trial: Trial) -> None:
        try:
            await scenario(trial)
        finally:
            with suppress(NotFoundError):
                await trial.client.delete(PLAIN_CONFIG_MAPS, PAUSE_MAP, namespace="karpool")

    play(plane, whole, settings)


def test_a_paused_pool_keeps_its_nodes_until_the_annotation_is_gone(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools({**ASKS, names.PAUSED: "upgrade of the database"}))
        await machine(trial, "empty")
        trial.start()
        said = "is paused by its annotation karpool.sh/paused: upgrade of the database"
        await told(trial, "Paused", "default", said)
        await kept_for(trial, "empty", "Paused", f"NodePool default {said}")
        await holds(trial, "Paused")
        assert [claim.terminating for claim in await trial.claims()] == [False]
        await trial.change("NodePool", "default", {"metadata": {"annotations": {names.PAUSED: None}}})
        await claim_goes(trial, "empty")
        await told(trial, "PausedEnded", "default")
        assert brakes_of(trial) == {}

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_one_config_map_pauses_everything_and_takes_back_what_has_begun(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools())
        await machine(trial, "large", "c-16x", pods=1)
        trial.start()

        async def begun() -> bool:
            return len(await _staying(trial)) == 2 and TAINT in _taints(await trial.nodes())

        await trial.until("a replacement is asked for", begun, 20)
        pause = {"metadata": {"name": PAUSE_MAP}, "data": {"reason": "incident 42"}}
        await trial.client.create(PLAIN_CONFIG_MAPS, pause, namespace="karpool")

        async def taken_back() -> bool:
            claims = await _staying(trial)
            return [claim.name for claim in claims] == ["large"] and COMMAND not in claims[0].metadata.annotations

        await trial.until("the command is taken back", taken_back, 20)
        assert TAINT not in _taints(await trial.nodes())
        said = "ConfigMap karpool/karpool-pause: pauses everything: incident 42"
        await told(trial, "Paused", "default", said)
        said = "Paused: ConfigMap karpool/karpool-pause pauses everything: incident 42"
        await told(trial, "DisruptionRolledBack", "large", said)
        await holds(trial, "Paused", "")
        await asyncio.sleep(2)
        assert [claim.name for claim in await _staying(trial)] == ["large"]
        await trial.client.delete(PLAIN_CONFIG_MAPS, PAUSE_MAP, namespace="karpool")
        await trial.until("it goes on", begun, 20)

    story(control_plane, scenario, BESIDE_KARPENTER)


async def committed(trial: Trial, *nodes: str, replacement: str | None = None) -> None:
    """Write on nodes what a command writes that has committed and not deleted anything yet."""
    replacements = () if replacement is None else (replacement,)
    ticket = Ticket("c1", datetime.now(UTC), "MultiNodeConsolidation", "Underutilized", nodes, replacements)
    written = msgspec.json.encode(msgspec.structs.replace(ticket, committed=True)).decode()
    for node in nodes:
        await trial.change("NodeClaim", node, {"metadata": {"annotations": {COMMAND: written}}})
        await trial.change("Node", node, {"spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]}})
    if replacement is not None:
        await trial.change("NodeClaim", replacement, {"metadata": {"annotations": {REPLACES: "c1"}}})


def test_a_pause_takes_back_a_command_that_has_committed_and_deleted_nothing(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools({**ASKS, names.PAUSED: "upgrade"}))
        for name in ("first", "second"):
            await machine(trial, name, pods=1)
        await machine(trial, "new")
        await committed(trial, "first", "second", replacement="new")
        trial.start()

        async def taken_back() -> bool:
            claims = await _staying(trial)
            marks = [claim for claim in claims if COMMAND in claim.metadata.annotations]
            return sorted(claim.name for claim in claims) == ["first", "second"] and not marks

        await trial.until("the command is taken back", taken_back, 20)
        assert TAINT not in _taints(await trial.nodes())
        for name in ("first", "second"):
            await told(trial, "DisruptionRolledBack", name, "Paused: NodePool default is paused by its annotation")

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_a_pause_lets_a_command_finish_that_has_deleted_a_node(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools({**ASKS, names.PAUSED: "upgrade"}))
        for name in ("first", "second"):
            await machine(trial, name, pods=1)
        await committed(trial, "first", "second")
        kept: dict[str, Any] = {"metadata": {"finalizers": ["tests.karpool.sh/kept"]}}
        await trial.change("NodeClaim", "first", kept)
        await trial.delete("NodeClaim", "first")
        try:
            trial.start()
            await claim_goes(trial, "second")
            assert [claim.name for claim in await trial.claims() if claim.terminating] == ["first"]
        finally:
            await trial.change("NodeClaim", "first", {"metadata": {"finalizers": None}})

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_plan_and_explain_show_a_pause(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools())
        await machine(trial, "empty")
        await trial.client.create(PLAIN_CONFIG_MAPS, {"metadata": {"name": PAUSE_MAP}}, namespace="karpool")
        kubeconfig = ["--kubeconfig", str(trial.plane.kubeconfig()), "--catalog", "kwok", "--annotated-budgets"]
        shown = await asyncio.to_thread(CliRunner().invoke, cli, ["plan", "-o", "json", *kubeconfig])
        plan = json.loads(shown.stdout)
        assert plan["commands"] == []
        (told,) = [reason["code"] for node in plan["nodes"] for reason in node["reasons"]]
        assert told == "Paused"
        explained = await asyncio.to_thread(CliRunner().invoke, cli, ["explain", "empty", *kubeconfig])
        assert "pauses everything" in explained.stdout
        assert "if ConfigMap karpool/karpool-pause were not there" in explained.stdout
        elsewhere = ["plan", "-o", "json", "--pause-namespace", "default", *kubeconfig]
        free = await asyncio.to_thread(CliRunner().invoke, cli, elsewhere)
        assert [command["nodes"] for command in json.loads(free.stdout)["commands"]] == [["empty"]]

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_beside_karpenter_a_pool_that_does_not_ask_is_left_alone(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools({}))
        await machine(trial, "empty")
        trial.start()
        said = "has no annotation karpool.sh/budgets, so Karpool leaves it alone"
        await told(trial, "NotOptedIn", "default", said)
        await kept_for(trial, "empty", "NotOptedIn", f"NodePool default {said}")
        await holds(trial, "NotOptedIn")
        await trial.change("NodePool", "default", {"metadata": {"annotations": ASKS}})
        await claim_goes(trial, "empty")
        assert await trial.claims() == ()

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_nothing_goes_while_too_many_nodes_are_not_ready(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools())
        for number in range(4):
            await machine(trial, f"lost-{number}", ready=False, pods=1)
        await machine(trial, "empty")
        trial.start()
        said = "4 of 5 nodes are not ready, more than 45% and more than 3"
        await told(trial, "ClusterUnhealthy", "default", said)
        await kept_for(trial, "empty", "ClusterUnhealthy", said)
        await holds(trial, "ClusterUnhealthy", "")
        for number in range(4):
            status = {"status": {"conditions": [_ready(ready=True)]}}
            await trial.change("Node", f"lost-{number}", status, subresource="status")
        await claim_goes(trial, "empty")
        assert {f"lost-{number}" for number in range(4)} <= {claim.name for claim in await _staying(trial)}

    story(control_plane, scenario, BESIDE_KARPENTER)


def test_what_the_api_server_refuses_is_told_once_and_the_pool_cools_down(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await _refuse_replacements(trial)
        try:
            await trial.make(pools())
            await machine(trial, "large", "c-16x", pods=1)
            trial.start()
            await told(trial, "CoolingDown", "default", "a command failed (ReplacementRefused)")
            await told(trial, "CoolingDown", "default", QUOTA)
            await told(trial, "DisruptionRolledBack", "large", QUOTA)
            await kept_for(trial, "large", "CoolingDown", QUOTA)
            await holds(trial, "CoolingDown")
            await asyncio.sleep(3)
            ((operator, _),) = trial.operators.values()
            labels = {"decision": "replace", "reason": "underutilized", "consolidation_type": "single"}
            name = "karpool_voluntary_disruption_queue_failures_total"
            assert operator.metrics.registry.get_sample_value(name, labels) == 1
            assert TAINT not in _taints(await trial.nodes())
            (claim,) = await trial.claims()
            known = failed_command(claim)
            assert known is not None
            assert (known.cause, known.tries) == ("ReplacementRefused", 1)
        finally:
            await _refuse_nothing(trial)

    story(control_plane, scenario, braked(after_failure=timedelta(hours=1)))


def test_a_pool_cools_down_after_a_failed_launch_and_only_its_empty_nodes_go(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools({**ASKS, names.PAUSED: ""}))
        await machine(trial, "large", "c-16x", pods=1)
        await machine(trial, "empty")
        ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
        lost = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "lost", "labels": {names.NODEPOOL: "default"}},
            "spec": {"nodeClassRef": ref, "requirements": machines("c-2x")},
        }
        await trial.make(lost)
        trial.start()
        await holds(trial, "Paused")
        failed = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "bad subnet"}
        status = {"status": {"conditions": [{**failed, "lastTransitionTime": _now()}]}}
        await trial.change("NodeClaim", "lost", status, subresource="status")
        said = "the launch of NodeClaim lost failed (bad subnet)"
        await told(trial, "CoolingDown", "default", said)
        await trial.delete("NodeClaim", "lost")
        await trial.change("NodePool", "default", {"metadata": {"annotations": {names.PAUSED: None}}})
        await claim_goes(trial, "empty")
        await kept_for(trial, "large", "CoolingDown", said)
        assert [claim.name for claim in await _staying(trial)] == ["large"]

    story(control_plane, scenario, braked(after_failed_launch=timedelta(hours=1)))


def test_a_pool_cools_down_after_it_grew(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools())
        await machine(trial, "empty")
        trial.start()
        await told(trial, "CoolingDown", "default", "it grew by NodeClaim empty")
        await kept_for(trial, "empty", "CoolingDown", "it grew by NodeClaim empty")
        await holds(trial, "CoolingDown")
        assert [claim.terminating for claim in await trial.claims()] == [False]

    story(control_plane, scenario, braked(after_scale_up=timedelta(hours=1)))


def test_no_command_needs_a_replacement_while_nobody_plays_karpenter(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pools())
        await machine(trial, "large", "c-16x", pods=1)
        await machine(trial, "larger", "c-32x", pods=1)
        await machine(trial, "empty")

        async def protect(value: str | None) -> None:
            for name in ("larger", "empty"):
                await trial.change("Node", name, {"metadata": {"annotations": {names.DO_NOT_DISRUPT: value}}})

        await protect("true")
        trial.start()
        said = "and nobody answers for it: only empty nodes go until somebody does"
        await told(trial, "NobodyAnswers", "default", said)
        await protect(None)
        await claim_goes(trial, "empty")
        await kept_for(trial, "larger", "NobodyAnswers", said)
        await holds(trial, "NobodyAnswers")

        async def begun() -> bool:
            return any(
                claim.name == "larger" and COMMAND in claim.metadata.annotations for claim in await trial.claims()
            )

        assert not await begun()
        async with karpenter(trial):
            await told(trial, "NobodyAnswersEnded", "default")
            await trial.until("the next command begins", begun, 20)

    story(control_plane, scenario, braked(answered_within=timedelta(seconds=2)))


async def _refuse_replacements(trial: Trial) -> None:
    """Have the API server refuse every NodeClaim of a command, as a quota or a webhook would."""
    rule = {"apiGroups": ["karpenter.sh"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nodeclaims"]}
    policy = {
        "metadata": {"name": "quota"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"!({REPLACEMENTS})", "message": QUOTA}],
        },
    }
    binding = {"metadata": {"name": "quota"}, "spec": {"policyName": "quota", "validationActions": ["Deny"]}}
    for path, document in ((POLICIES, policy), (f"{POLICIES[:-3]}ybindings", binding)):
        await trial.client.raw("POST", path, body=json.dumps(document).encode())
    await trial.until("the policy is in force", lambda: _refuses(trial), 30)


async def _refuses(trial: Trial) -> bool:
    """Whether the API server would refuse a replacement."""
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "probe", "annotations": {REPLACES: "x"}},
        "spec": {"nodeClassRef": ref, "requirements": machines("c-2x")},
    }
    try:
        await trial.make(claim)
    except InvalidError as error:
        return QUOTA in str(error)
    await trial.delete("NodeClaim", "probe")
    return False


async def _refuse_nothing(trial: Trial) -> None:
    for path in (f"{POLICIES[:-3]}ybindings/quota", f"{POLICIES}/quota"):
        await trial.client.raw("DELETE", path)


async def _staying(trial: Trial) -> list[NodeClaim]:
    """The claims that nobody has deleted; nobody plays Karpenter, who would let go of the others."""
    return [claim for claim in await trial.claims() if not claim.terminating]


def _taints(nodes: tuple[Node, ...]) -> set[str]:
    return {taint.key for node in nodes for taint in node.spec.taints}
