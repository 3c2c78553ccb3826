"""Reboots that a provider is asked for: what becomes of them is written on the NodeClaim."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.factories import node_claim

from karpool.controller.store import ClusterStore
from karpool.execution import actions as a
from karpool.live.writer import Writer
from karpool.model.labels import REBOOT_ISSUED, REBOOT_REFUSED
from karpool.operator.instances.instance_reboots import InstanceReboots
from karpool.operator.providers.protocol import Instances, LaunchError, RebootError

ASK = a.RebootInstance("n1", "claim-n1", "op-1")


class Rebooting:
    """Instances that answer reboots in turn: None takes one on."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.operations: list[str] = []

    async def reboot(self, claim: Any, operation: str) -> None:
        del claim
        self.operations.append(operation)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer


class Edits:
    """What would be written."""

    def __init__(self) -> None:
        self.made: list[a.Edit] = []

    async def edit(self, edits: list[a.Edit]) -> None:
        self.made += edits


def outcome(instances: object) -> tuple[Edits, datetime]:
    """What is written after one request, and when it ended."""
    clock, edits, store = [datetime(2026, 6, 15, tzinfo=UTC)], Edits(), ClusterStore()
    store.claims.put(node_claim("n1"))

    async def sleep(seconds: float) -> None:
        clock[0] += timedelta(seconds=seconds)

    async def play() -> None:
        reboots = InstanceReboots(
            cast("Instances", instances),
            store,
            cast("Writer", edits),
            clock=lambda: clock[0],
            alive=lambda: True,
            on_unexpected=lambda _where: None,
            sleep=sleep,
        )
        reboots.ask(ASK)
        reboots.ask(ASK)  # it is being asked already
        await asyncio.gather(*reboots._tasks.values())

    asyncio.run(play())
    return edits, clock[0]


def keys(edits: Edits) -> list[str]:
    return [edit.key if isinstance(edit, a.Annotate) else type(edit).__name__ for edit in edits.made]


def test_a_reboot_that_is_taken_on_is_written_with_its_time() -> None:
    instances = Rebooting(None)
    edits, _ = outcome(instances)
    assert keys(edits) == [REBOOT_ISSUED, "SetClaimCondition"]
    assert instances.operations == ["op-1"]


def test_a_provider_that_fails_is_asked_again_for_the_same_reboot() -> None:
    instances = Rebooting(LaunchError("busy"), RuntimeError("odd"), None)
    edits, _ = outcome(instances)
    assert keys(edits) == [REBOOT_ISSUED, "SetClaimCondition"]
    assert instances.operations == ["op-1"] * 3


@pytest.mark.parametrize("instances", [Rebooting(RebootError("no such instance")), object()])
def test_a_reboot_that_will_never_be_is_refused(instances: object) -> None:
    edits, _ = outcome(instances)
    assert keys(edits) == [REBOOT_REFUSED]


def test_a_provider_that_never_answers_well_is_given_up_after_five_minutes() -> None:
    edits, ended = outcome(Rebooting(LaunchError("busy")))
    assert keys(edits) == [REBOOT_REFUSED]
    waited = ended - datetime(2026, 6, 15, tzinfo=UTC)
    assert timedelta(minutes=5) < waited < timedelta(minutes=6)
