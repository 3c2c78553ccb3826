"""The controller is killed at each API call of a command, and the next one finishes the command or rolls it back."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta

from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import prepare, replaced, shrink
from tests.live.invariants import RuleMonitor, expect_nothing_left_behind, wait_until_settled
from tests.live.kill_switch import KillSwitch
from tests.live.trial import SETTINGS, Trial, play

from karpool.operator.settings import LeaseSettings

EVERY = "KARPOOL_EVERY_KILL"
"""Set it to kill before and after each call; otherwise some are chosen."""
STRIDE = 3
ALONE = replace(
    SETTINGS,
    lease=LeaseSettings(name=None),
    execution=replace(SETTINGS.execution, missing_after=timedelta(seconds=1)),
)


def _kills(writes: int) -> list[tuple[int, bool]]:
    """When to die: at which write, and whether it was carried out."""
    if os.environ.get(EVERY):
        return [(write, sent) for write in range(1, writes + 1) for sent in (False, True)]
    return [(write, write % 2 == 0) for write in range(1, writes + 1, STRIDE)]


class _Lives:
    """One operator after the other, each with a kill switch."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    async def start(self, *names: str) -> None:
        """Begin with a node for each Deployment."""
        await prepare(self._trial, *names)
        self._begin()
        await wait_until_settled(self._trial, dict.fromkeys(names, 1), 120)
        self.kill_switch.arm(0, sent=False)

    async def end(self) -> None:
        await self._trial.kill(self._task)

    def _begin(self) -> None:
        self.kill_switch = KillSwitch()
        self._task = self._trial.start(ALONE, make_client=self.kill_switch.client)

    async def die_during(self, name: str) -> bool:
        """Play a whole command, start another operator when this one is killed; returns whether it was."""
        command = asyncio.create_task(_command(self._trial, name))
        end = asyncio.create_task(self.kill_switch.killed.wait())
        await asyncio.wait((end, command), return_when=asyncio.FIRST_COMPLETED)
        self.kill_switch.arm(0, sent=False)
        died = end.done()
        if died:
            await self.end()
            self._begin()
        end.cancel()
        await command
        return died


async def _command(trial: Trial, name: str) -> None:
    """A Deployment shrinks, and its node is replaced by a smaller one."""
    await shrink(trial, name)
    await replaced(trial, name)
    await wait_until_settled(trial, {name: 1})


async def _count_writes(trial: Trial, lives: _Lives) -> int:
    """How many writes a command takes that nothing disturbs."""
    await lives.start("undisturbed")
    await _command(trial, "undisturbed")
    await lives.end()
    return len(lives.kill_switch.writes)


def test_killed_at_each_call_of_a_command_the_next_controller_leaves_nothing_behind(
    running_cluster: ControlPlane,
) -> None:
    async def scenario(trial: Trial) -> None:
        lives = _Lives(trial)
        kills = _kills(await _count_writes(trial, lives))
        assert len(kills) > 2
        names = [f"killed-{write}-{'after' if sent else 'before'}" for write, sent in kills]
        limits = dict.fromkeys(names, 1)
        await lives.start(*names)
        async with RuleMonitor(trial, healthy=limits, leaving=limits) as monitor:
            died = []
            for name, (write, sent) in zip(names, kills, strict=True):
                lives.kill_switch.arm(write, sent=sent)
                died.append(await lives.die_during(name))
            # The last calls of a command come in no fixed number.
            assert all(died[: -max(1, len(died) // 8)]), died
            await expect_nothing_left_behind(trial, monitor, limits)

    play(running_cluster, scenario, ALONE)
