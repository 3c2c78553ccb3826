"""The end of nodes on a real cluster: drift, expiry, deadlines, and manual deletion."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.live.control_plane import ControlPlane
from tests.live.invariants import RuleMonitor, wait_until_settled
from tests.live.trial import Trial, budget, deployment, machines, play, pool

from karpool.model.labels import TERMINATION_TIMESTAMP
from karpool.model.nodepool import NodeClaim

SMALL = machines("c-2x")
HASH = "karpenter.sh/nodepool-hash"


def test_nodes_of_an_old_template_are_replaced_one_by_one(running_cluster: ControlPlane) -> None:
    """A new label in the template changes the pool's hash; every node is drifted and gives way to a new one."""

    async def scenario(trial: Trial) -> None:
        disruption = {"budgets": [{"nodes": "1"}], "consolidateAfter": "Never"}
        await trial.make(pool(template={"spec": {"requirements": SMALL}}, disruption=disruption))
        await trial.make(budget("web", minAvailable=1))
        trial.start()
        await trial.make(deployment("web", 2))
        await trial.until_running(2)
        old = {claim.name: claim.metadata.annotations[HASH] for claim in await trial.claims()}
        async with RuleMonitor(trial, healthy={"web": 1}, leaving={"default": 1}) as monitor:
            labels = {"metadata": {"labels": {"generation": "two"}}}
            await trial.change("NodePool", "default", {"spec": {"template": labels}})

            async def renewed() -> bool:
                return not any(claim.name in old for claim in await trial.claims())

            await trial.until("all nodes are new", renewed)
            await wait_until_settled(trial, {"default": 2})
        assert not monitor.broken
        assert {node.metadata.labels["generation"] for node in await trial.nodes()} == {"two"}
        assert not {claim.metadata.annotations[HASH] for claim in await trial.claims()} & set(old.values())

    play(running_cluster, scenario)


def test_a_node_that_is_too_old_goes_and_its_pods_move(running_cluster: ControlPlane) -> None:
    """No budget protects a node from its age; its pods get another one."""

    async def scenario(trial: Trial) -> None:
        disruption = {"budgets": [{"nodes": "0"}]}
        await trial.make(pool(template={"spec": {"expireAfter": "6s"}}, disruption=disruption))
        trial.start()
        await trial.make(deployment("web", 1))
        await trial.until_running(1)
        (first,) = await trial.claims()
        created = first.metadata.creation_timestamp
        assert created is not None
        await trial.change("NodePool", "default", {"spec": {"template": {"spec": {"expireAfter": "Never"}}}})
        await trial.until("the old node is gone", lambda: _gone(trial, first.name))
        assert datetime.now(UTC) - created >= timedelta(seconds=6)
        await trial.until_running(1)
        await trial.until_nodes(1)

    play(running_cluster, scenario)


def test_pods_that_stay_are_deleted_when_the_termination_grace_period_ends(running_cluster: ControlPlane) -> None:
    """Neither a budget nor do-not-disrupt outlasts it; until then both are respected."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(template={"spec": {"terminationGracePeriod": "5s"}}))
        await trial.make(budget("guarded", minAvailable=1), _undisturbed(deployment("precious", 1)))
        await trial.make(deployment("guarded", 1))
        trial.start()
        before = {pod.name for pod in await trial.until_running(2)}
        (claim,) = await trial.claims()
        async with RuleMonitor(trial, healthy={"guarded": 1}, leaving={}) as monitor:
            await trial.delete("NodeClaim", claim.name)
            deleted = datetime.now(UTC)

            async def half_way() -> bool:
                return datetime.now(UTC) > deleted + timedelta(seconds=2.5)

            await trial.until("half of the time is over", half_way)
            assert before <= {pod.name for pod in await trial.running()}
            assert not monitor.broken
        ends = datetime.fromisoformat(await _deadline(trial, claim))
        assert abs(ends - deleted - timedelta(seconds=5)) <= timedelta(seconds=1.5)
        await trial.until("the node is gone", lambda: _gone(trial, claim.name))
        assert {pod.name for pod in await trial.until_running(2)}.isdisjoint(before)

    play(running_cluster, scenario)


def test_what_people_delete_takes_its_counterpart_along(running_cluster: ControlPlane) -> None:
    """A node deleted by hand takes its claim along, a claim its node; pods are drained and get another place."""

    async def scenario(trial: Trial) -> None:
        await trial.make(pool(template={"spec": {"requirements": SMALL}}), budget("web", minAvailable=1))
        trial.start()
        await trial.make(deployment("web", 2))
        await trial.until_running(2)
        first, second = await trial.until_nodes(2)
        async with RuleMonitor(trial, healthy={"web": 1}, leaving={}) as monitor:
            await trial.delete("Node", first.name)
            await trial.until("the first node is gone", lambda: _gone(trial, first.name))
            await wait_until_settled(trial, {"default": 2})
            await trial.delete("NodeClaim", second.name)
            await trial.until("the second node is gone", lambda: _gone(trial, second.name))
            await wait_until_settled(trial, {"default": 2})
        assert not monitor.broken

    play(running_cluster, scenario)


def _undisturbed(manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    return manifest


async def _deadline(trial: Trial, claim: NodeClaim) -> str:
    (current,) = [entry for entry in await trial.claims() if entry.name == claim.name]
    return current.metadata.annotations[TERMINATION_TIMESTAMP]


async def _gone(trial: Trial, name: str) -> bool:
    return not any(thing.name == name for thing in (*await trial.nodes(), *await trial.claims()))
