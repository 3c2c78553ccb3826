"""A pool is left alone for a while after it grew, and after a launch of it failed."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, ago
from tests.factories import node_claim

from karpool.disruption.brakes.launch_failures import claims_to_tell, launch_failure, remembered_launch
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stops
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.labels import FAILED_LAUNCH, LAUNCHED_FOR
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Condition

GROWTH = BrakeSettings(after_scale_up=timedelta(minutes=1))
OFF = BrakeSettings(after_scale_up=timedelta(0), after_failed_launch=timedelta(0))


def stops(*claims: NodeClaim, now: datetime = NOW, settings: BrakeSettings | None = None) -> Stops:
    return stops_of(Objects(node_claims=claims), settings or BrakeSettings(), now)


def test_a_pool_that_grew_waits_and_says_for_which_node() -> None:
    claims = (node_claim("old"), node_claim("new", created=ago(seconds=20)), node_claim("b", pool="other"))
    stop = stops(*claims, settings=GROWTH).of("default")
    assert stop is not None
    assert (stop.code, stop.message) == ("CoolingDown", "cools down until 12:00:40 UTC: it grew by NodeClaim new")
    assert stop.until == NOW + timedelta(seconds=40)
    assert not stop.halts
    assert stops(*claims, settings=GROWTH).of("other") is None
    assert not stops(*claims, now=NOW + timedelta(seconds=40), settings=GROWTH)
    assert not stops(*claims, settings=OFF)


def test_a_replacement_of_a_command_is_no_growth() -> None:
    assert not stops(node_claim("new", created=NOW, annotations={LAUNCHED_FOR: "c1"}), settings=GROWTH)


def _remembers(at: datetime) -> dict[str, str]:
    return {FAILED_LAUNCH: remembered_launch("lost", "no capacity", at).written()}


def test_a_pool_waits_after_a_failed_launch_and_says_which() -> None:
    claims = (node_claim("a", annotations=_remembers(ago(minutes=5))), node_claim("b", annotations=_remembers(NOW)))
    stop = stops(*claims).of("default")
    assert stop is not None
    assert stop.message == "cools down until 12:03 UTC: the launch of NodeClaim lost failed (no capacity)"
    assert not stops(*claims, now=NOW + timedelta(minutes=3))
    assert not stops(*claims, settings=OFF)


def test_a_memory_that_cannot_be_read_stops_the_pool_and_says_so() -> None:
    stop = stops(node_claim("a", annotations={FAILED_LAUNCH: "?"})).of("default")
    assert stop is not None
    assert stop.object == "NodeClaim a"
    assert "left alone until the annotation is removed" in stop.message


def _with(claim: NodeClaim, reason: str, message: str = "") -> NodeClaim:
    launched = Condition(type="Launched", status="Unknown", reason=reason, message=message)
    return replace(claim, status=replace(claim.status, conditions=(launched,)))


PENDING = node_claim("a", launched=False)
FAILING = _with(PENDING, "LaunchFailed", "bad subnet")
DELETED = replace(PENDING, metadata=replace(PENDING.metadata, deletion_timestamp=NOW))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (None, PENDING, None),
        (PENDING, None, "it was deleted before it was launched"),
        (PENDING, DELETED, "it was deleted before it was launched"),
        (FAILING, DELETED, "bad subnet"),
        (DELETED, None, None),
        (PENDING, FAILING, "bad subnet"),
        (FAILING, FAILING, None),
        (PENDING, _with(PENDING, "AwaitingReconciliation"), None),
        (node_claim("a"), None, "it was deleted before it had a node"),
        (node_claim("a", registered=True), None, None),
    ],
)
def test_what_shows_that_a_launch_failed(old: NodeClaim | None, new: NodeClaim | None, told: str | None) -> None:
    assert launch_failure(old, new) == told


def test_the_oldest_claims_remember_it_and_not_more_often_than_every_half_minute() -> None:
    pool = [node_claim(name, created=ago(hours=hours)) for name, hours in zip("abcde", (1, 5, 2, 4, 3), strict=True)]
    assert claims_to_tell(pool, "b", NOW) == ["d", "e", "c"]
    knows = replace(pool[0], metadata=replace(pool[0].metadata, annotations=_remembers(ago(seconds=29))))
    assert claims_to_tell([knows, *pool[1:]], "b", NOW) == ()
    assert claims_to_tell([knows, *pool[1:]], "b", NOW + timedelta(seconds=1)) == ["d", "e", "c"]
    assert claims_to_tell([DELETED], "b", NOW) == []
