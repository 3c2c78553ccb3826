"""Static pools on a real cluster: nodes without pods, scaled and limited, and replaced when they drift."""

from tests.live.control_plane import ControlPlane
from tests.live.trial import Trial, machines, play, pool


def test_a_static_pool_follows_its_replicas_within_its_limit_and_replaces_drifted_nodes(
    running_cluster: ControlPlane,
) -> None:
    async def scenario(trial: Trial) -> None:
        trial.start()
        requirements = {"template": {"spec": {"requirements": machines("c-2x")}}}
        await trial.make(pool("fixed", replicas=2, limits={"nodes": "3"}, **requirements))
        await trial.until_nodes(2)
        await trial.change("NodePool", "fixed", {"spec": {"replicas": 5}})
        await trial.until_nodes(3)
        await trial.until_initialized()
        await trial.change("NodePool", "fixed", {"spec": {"replicas": 2}})
        kept = {node.name for node in await trial.until_nodes(2)}
        await trial.until_initialized()
        template = {"metadata": {"labels": {"generation": "2"}}}
        await trial.change("NodePool", "fixed", {"spec": {"template": template}})
        most = 0

        async def replaced() -> bool:
            nonlocal most
            claims = await trial.claims()
            most = max(most, len(claims))
            names = {node.name for node in await trial.nodes()}
            return len(claims) == 2 and not names & kept

        await trial.until("both are replaced", replaced, 60)
        assert most == 3
        await trial.delete("NodePool", "fixed")
        await trial.until_nodes(0)

    play(running_cluster, scenario)
