"""A real ReplicaSet that is scaled down loses the pods of nodes that are to go, with the shipped rights."""

import asyncio
from collections import Counter
from dataclasses import replace

from tests.live import audit
from tests.live.control_plane import ControlPlane
from tests.live.service_account import USER, AsServiceAccount
from tests.live.trial import QUICK, SETTINGS, deployment, machines, pool

from karpool.model.deletion_cost import has_own_cost
from karpool.model.labels import OWN_DELETION_COST, POD_DELETION_COST
from karpool.model.pod import Pod

MANAGED = replace(
    SETTINGS,
    decisions=replace(SETTINGS.decisions, pod_deletion_costs=True),
    intervals=replace(QUICK, deletion_costs=0.3),
)
ROLES = ("rbac.yaml", "rbac-kwok.yaml", "rbac-pod-deletion-cost.yaml", "policy-kwok.yaml")
THEIRS = "2147483647"


def costs(pods: list[Pod]) -> dict[str, int]:
    """By node: the deletion cost of its pods."""
    return {pod.spec.node_name: int(pod.metadata.annotations[POD_DELETION_COST]) for pod in pods}


def test_a_scale_down_takes_the_pods_of_the_nodes_that_are_to_go_and_nothing_is_left_when_it_is_switched_off(
    audited_cluster: ControlPlane,
) -> None:
    async def scenario() -> None:
        async with AsServiceAccount(audited_cluster, MANAGED, ROLES) as trial:
            began = (audited_cluster.folder / "audit.log").stat().st_size
            # Two pods fill a node. That they are to stay for now leaves the scale-down to the ReplicaSet.
            await trial.make(
                pool(template={"spec": {"requirements": machines("c-4x")}}, disruption={"consolidateAfter": "1h"})
            )
            task = trial.start()
            await trial.make(deployment("web", 6, cpu="1700m"))
            pods = await trial.until_running(6)
            assert Counter(Counter(pod.spec.node_name for pod in pods).values()) == {2: 3}

            async def ranked() -> bool:
                now = await trial.running()
                marked = all(has_own_cost(pod.metadata.annotations) for pod in now)
                return marked and sorted(costs(now).values()) == [-3, -2, -1]

            await trial.until("all pods have the cost of their node", ranked)
            kept = max(costs(await trial.running()).items(), key=lambda entry: entry[1])[0]
            await trial.scale("web", 2)
            left = await trial.until_running(2)
            assert {pod.spec.node_name for pod in left} == {kept}
            # What somebody else says stays, and the rest goes with the feature.
            await trial.change("Pod", left[0].name, {"metadata": {"annotations": {POD_DELETION_COST: THEIRS}}})
            await trial.stop(task)
            trial.start(replace(MANAGED, decisions=replace(MANAGED.decisions, pod_deletion_costs=False)))

            async def clean() -> bool:
                now = {pod.name: pod.metadata.annotations for pod in await trial.running()}
                theirs = now.pop(left[0].name)
                nothing = not any({POD_DELETION_COST, OWN_DELETION_COST} & notes.keys() for notes in now.values())
                return nothing and theirs.get(POD_DELETION_COST) == THEIRS and OWN_DELETION_COST not in theirs

            await trial.until("only what somebody else wrote is there", clean)
            requests = list(audit.requests_by(USER, audited_cluster.folder, began))
            on_pods = [request for request in requests if (request.verb, request.resource) == ("patch", "pods")]
            assert on_pods
            assert {request.status for request in on_pods} <= {200, 409}

    asyncio.run(scenario())
