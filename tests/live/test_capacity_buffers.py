"""CapacityBuffers on a real cluster: nodes for pods that are not there yet, and a status that says so."""

from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.trial import Trial, buffer, deployment, machines, play, pool

from karpool.live import resources as r
from karpool.model.capacity_buffer import CapacityBuffer
from karpool.wire.objects import condition

SMALL = {"template": {"spec": {"requirements": machines("c-2x")}}}


async def told(trial: Trial, name: str, kind: str, reason: str, *, generation: int = 0) -> CapacityBuffer:
    """The buffer, when a condition has this reason, for a template that is later than a generation."""
    found: list[CapacityBuffer] = []

    async def says() -> bool:
        found[:] = [await trial.client.get(r.CAPACITY_BUFFERS, name, namespace="default")]
        status = found[0].status
        entry = condition(status.conditions, kind)
        return entry is not None and entry.reason == reason and (status.pod_template_generation or 1) > generation

    await trial.until(f"{name} says {reason}", says, seconds=60)
    return found[0]


def test_a_buffer_gets_nodes_before_its_pods_come_and_loses_them_when_it_goes(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pool(**SMALL), buffer("spare", replicas=3))
        trial.start()
        await told(trial, "spare", "ReadyForProvisioning", "ScalableRefNotFound")
        # One pod and room for three more: each node of 2 CPUs holds one of them.
        await trial.make(deployment("web", 1, cpu="1"))
        buffered = await told(trial, "spare", "Provisioning", "FitsExistingCapacity")
        assert buffered.status.replicas == 3
        nodes = {node.name for node in await trial.until_nodes(4)}
        await trial.until_initialized()
        # The room is used at once; more comes, and what ran before was not disturbed.
        await trial.scale("web", 3)
        pods = await trial.until_running(3)
        assert {pod.spec.node_name for pod in pods} <= nodes
        await trial.until_nodes(6)
        assert nodes <= {node.name for node in await trial.nodes()}
        await trial.delete("CapacityBuffer", "spare")
        await trial.until_nodes(3)
        assert {pod.metadata.uid for pod in await trial.running()} == {pod.metadata.uid for pod in pods}

    play(running_cluster, scenario)


def test_a_template_that_changes_is_followed(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pool(**SMALL), _template("1500m"), buffer("spare", kind="PodTemplate", of="chunk", replicas=2))
        trial.start()
        before = await told(trial, "spare", "Provisioning", "FitsExistingCapacity")
        assert len(await trial.until_nodes(2)) == before.status.replicas
        await trial.change("PodTemplate", "chunk", _template("500m"))
        await trial.until_nodes(1)
        generation = before.status.pod_template_generation or 0
        await told(trial, "spare", "Provisioning", "FitsExistingCapacity", generation=generation)

    play(running_cluster, scenario)


def _template(cpu: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "kind": "PodTemplate",
        "metadata": {"name": "chunk", "namespace": "default"},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
    }
