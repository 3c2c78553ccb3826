"""Calls of a provider are measured, and their errors are told by kind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.factories import node_claim

from karpool.model.nodepool import NodeClaim
from karpool.operator.instances.measured_instances import measured
from karpool.operator.providers.protocol import (
    Instances,
    InsufficientCapacityError,
    LaunchedInstance,
    RebootError,
    Reboots,
)

INSTANCE = LaunchedInstance("x://1", {}, {}, {})
CLAIM = node_claim("c")


class Failing:
    """Instances of which every call fails, if there is an error to fail with."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        del claim
        self._fail()
        return INSTANCE

    async def terminate(self, claim: NodeClaim) -> bool:
        del claim
        self._fail()
        return True

    async def list(self) -> dict[str, str]:
        self._fail()
        return {"x://1": "c"}

    async def terminate_orphan(self, provider_id: str) -> None:
        del provider_id
        self._fail()


class FailingReboots(Failing):
    async def reboot(self, claim: NodeClaim, operation: str) -> None:
        del claim, operation
        self._fail()


CALLS: list[tuple[str, Callable[[Any], Awaitable[object]]]] = [
    ("Create", lambda instances: instances.launch(CLAIM)),
    ("Delete", lambda instances: instances.terminate(CLAIM)),
    ("List", lambda instances: instances.list()),
    ("Delete", lambda instances: instances.terminate_orphan("x://1")),
    ("Reboot", lambda instances: instances.reboot(CLAIM, "1")),
]


def told_of(inner: Instances, call: Callable[[Any], Awaitable[object]]) -> tuple[object, list[tuple[str, str]]]:
    """What a call came to, and what was told of it."""
    told: list[tuple[str, str]] = []
    made = measured(inner, lambda method, _seconds, error: told.append((method, error)))

    async def whole() -> object:
        return await call(made)

    try:
        return asyncio.run(whole()), told
    except (InsufficientCapacityError, RebootError, OSError) as error:
        return error, told


@pytest.mark.parametrize(("method", "call"), CALLS)
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, ""),
        (InsufficientCapacityError("none left"), "InsufficientCapacityError"),
        (RebootError("never"), "RebootError"),
        (OSError("no network"), "unknown"),
    ],
)
def test_each_call_is_told_with_the_kind_of_its_error(
    method: str, call: Callable[[Any], Awaitable[object]], error: Exception | None, kind: str
) -> None:
    outcome, told = told_of(FailingReboots(error), call)
    assert told == [(method, kind)]
    assert outcome is error if error is not None else not isinstance(outcome, Exception)


def test_what_cannot_be_rebooted_still_cannot_be() -> None:
    assert isinstance(measured(FailingReboots(), lambda *_told: None), Reboots)
    assert not isinstance(measured(Failing(), lambda *_told: None), Reboots)
