"""The pace of drains on a real cluster: pods without a budget leave one after the other, as their replacements run."""

from pathlib import Path

from tests.live.control_plane import ControlPlane
from tests.live.invariants import RuleMonitor, wait_until_settled
from tests.live.trial import Trial, fill_three_nodes, journal, play, with_journal


def test_one_pod_of_six_is_away_at_a_time_though_no_budget_says_so(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    """Three nodes with two pods left on each become one, whose pods come from two nodes that go together."""

    async def scenario(trial: Trial) -> None:
        await fill_three_nodes(trial, 6, cpu="600m")
        async with RuleMonitor(trial, healthy={"web": 5}, leaving={}) as monitor:
            await trial.change("NodePool", "default", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
            await wait_until_settled(trial, {"default": 1})
            await trial.until_running(6)
        assert not monitor.broken
        (begun,) = journal(tmp_path / "journal", "Begun")
        assert len(begun["nodes"]) == 2
        assert journal(tmp_path / "journal", "WaitOver") == []
        waiting = [event for name in begun["nodes"] for event in await trial.events("DrainWaiting", name)]
        assert waiting
        assert all("of 6 pods of its controller are away" in (event.message or "") for event in waiting)

    play(running_cluster, scenario, with_journal(tmp_path / "journal"))
