"""Devices on a real cluster: kube-scheduler gives them to pods, and Karpool moves pods only where there are some."""

import asyncio
from dataclasses import replace
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.trial import SETTINGS, Trial, deployment, machines, play, pool
from tests.live.watched import Watched

from karpool.live import resources as r
from karpool.model.devices import Device, DeviceAttribute, ResourceClaim, SliceTemplate, TypeDevices
from karpool.model.labels import INSTANCE_TYPE, REQUESTED_DRIVERS
from karpool.packing.options import Options
from karpool.wire.objects import condition

DRIVER = "gpu.example.com"
LOOKS_AT_CLAIMS = replace(SETTINGS, options=Options(ignore_dra_requests=False))
SELECTOR = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "a100"'


def device_class() -> dict[str, Any]:
    return {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": SELECTOR}}]},
    }


def one_gpu() -> dict[str, Any]:
    """A template of claims on one device."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def gpus(node: str, count: int, *, generation: int = 1, model: str = "a100") -> dict[str, Any]:
    """What the driver of a node would publish."""
    devices = [{"name": f"gpu-{at}", "attributes": {"model": {"string": model}}} for at in range(count)]
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
        "devices": devices,
    }
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


async def holders(trial: Trial) -> dict[str, str]:
    """By claim the pool, and so the node, of the device that it was given."""
    claims: tuple[ResourceClaim, ...] = (await trial.client.list(r.RESOURCE_CLAIMS, namespace="default")).items
    given = {claim.name: claim.status.allocation for claim in claims if claim.metadata.deletion_timestamp is None}
    return {name: entry.devices.results[0].pool for name, entry in given.items() if entry is not None}


def test_pods_move_only_to_devices_that_are_free_and_every_right_is_used(audited_cluster: ControlPlane) -> None:
    """Of two nodes with a pod on a device each, one goes while a third has one device free, both when it has two."""

    async def scenario() -> None:
        roles = ("rbac.yaml", "rbac-kwok.yaml", "rbac-dra.yaml", "policy-kwok.yaml")
        async with Watched(audited_cluster, LOOKS_AT_CLAIMS, roles) as trial:
            template = {"spec": {"requirements": machines("c-4x")}}
            await trial.make(
                pool(template=template, disruption={"consolidateAfter": "Never"}), device_class(), one_gpu()
            )
            task = trial.start()
            await trial.make(deployment("filler", 3, cpu="2400m"))
            await trial.until_running(3)
            first, second, third = sorted(node.name for node in await trial.until_nodes(3))
            # Two nodes with a device each, and a pod on each of them; then one with a device that nobody has.
            await trial.make(gpus(first, 1), gpus(second, 1))
            claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
            await trial.make(deployment("learner", 2, cpu="200m", resourceClaims=claims))
            stays = {"kubernetes.io/hostname": third}
            await trial.make(deployment("web", 1, cpu="200m", nodeSelector=stays))
            await trial.until_running(6)
            assert sorted((await holders(trial)).values()) == [first, second]
            await trial.make(gpus(third, 1))
            await trial.scale("filler", 0)
            await trial.until_running(3)
            await asyncio.sleep(SETTINGS.execution.nomination.total_seconds() + 0.5)
            await trial.change("NodePool", "default", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
            left = {node.name for node in await trial.until_nodes(2)}
            assert third in left
            await trial.until_running(3)
            assert set((await holders(trial)).values()) == left
            # The other stays as long as there is no second device.
            await asyncio.sleep(2.0)
            assert {node.name for node in await trial.nodes()} == left
            await trial.change("ResourceSlice", f"{third}-gpus", gpus(third, 2, generation=2))
            assert [node.name for node in await trial.until_nodes(1)] == [third]
            await trial.until_running(3)
            assert list((await holders(trial)).values()) == [third, third]
            assert trial.refused() == set()
            devices = {right for right in trial.unused() if right.resource.endswith("resource.k8s.io")}
            assert devices == set(), "the role allows what is never done"
            await trial.stop(task)

    asyncio.run(scenario())


def test_a_pod_that_waits_gets_a_node_of_a_type_with_its_devices_which_waits_for_their_driver(
    running_cluster: ControlPlane,
) -> None:
    async def scenario(trial: Trial) -> None:
        equipped = "c-4x-amd64-linux"
        given = TypeDevices(
            (SliceTemplate(DRIVER, "any", devices=(Device("gpu-0", {"model": DeviceAttribute("a100")}),)),)
        )
        types = (replace(entry, devices=given) if entry.name == equipped else entry for entry in trial.catalog.types)
        trial.catalog = replace(trial.catalog, types=tuple(types))
        await trial.make(pool(), device_class(), one_gpu())
        trial.start()
        claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
        await trial.make(deployment("learner", 1, cpu="200m", resourceClaims=claims))
        (launched,) = await trial.until_nodes(1)
        assert launched.metadata.labels[INSTANCE_TYPE] == equipped

        async def waits() -> bool:
            (node_claim,) = await trial.claims()
            entry = condition(node_claim.status.conditions, "Initialized")
            return entry is not None and entry.reason == "DRADriverPoolsNotPublished"

        await trial.until("the node waits for its devices", waits)
        (node_claim,) = await trial.claims()
        assert node_claim.metadata.annotations[REQUESTED_DRIVERS] == DRIVER
        await trial.make(gpus(launched.name, 1))
        await trial.until_initialized()
        (running,) = await trial.until_running(1)
        assert running.spec.node_name == launched.name
        assert list((await holders(trial)).values()) == [launched.name]

    play(running_cluster, scenario, LOOKS_AT_CLAIMS)
