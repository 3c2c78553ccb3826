"""Each kind of action is dropped in turn: the cluster shows it, and a sound controller repairs it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import prepare, replaced, shrink
from tests.live.invariants import RuleMonitor, expect_nothing_left_behind, wait_until_settled
from tests.live.trial import Trial, play

from karpool.execution import actions as a
from karpool.operator.actuator import ApiActuator

SPOILED = (a.CreateClaim, a.DeleteClaim, a.EvictPod, a.RemoveTaint, a.SetClaimCondition)
LONG_ENOUGH = 5.0
"""A sound controller replaces a node in about half of this."""


def test_a_spoiled_action_shows_and_a_sound_controller_mends_it(
    running_cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(trial: Trial) -> None:
        names = {kind: kind.__name__.lower() for kind in SPOILED}
        limits = dict.fromkeys(names.values(), 1)
        await prepare(trial, *limits)
        sound = trial.start()
        async with RuleMonitor(trial, healthy=limits, leaving=limits) as monitor:
            await wait_until_settled(trial, limits)
            await trial.stop(sound)
            for kind, name in names.items():
                with monkeypatch.context() as patch:
                    patch.setattr(ApiActuator, "execute", _without(kind))
                    await _gets_nowhere(trial, name)
            trial.start()
            await replaced(trial, *limits)
            await expect_nothing_left_behind(trial, monitor, limits)

    play(running_cluster, scenario)


def _without(kind: type) -> Any:
    sound = ApiActuator.execute

    def spoiled(actuator: ApiActuator, actions: Sequence[a.Action], **options: Any) -> None:
        sound(actuator, [action for action in actions if type(action) is not kind], **options)

    return spoiled


async def _gets_nowhere(trial: Trial, name: str) -> None:
    """A Deployment shrinks, and nothing good comes of it."""
    spoiled = trial.start()
    await shrink(trial, name)
    await asyncio.sleep(LONG_ENOUGH)
    with pytest.raises(AssertionError, match="not yet"):
        await replaced(trial, name, seconds=0)
    await trial.stop(spoiled)
