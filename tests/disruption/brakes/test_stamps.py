"""Annotations of brakes about a moment that is still to come."""

import pytest
from tests.disruption.scenarios import NOW, cluster, node, pool_of

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.labels import DISRUPTIONS, FAILED_COMMAND, FAILED_LAUNCH, HARM

FAR = ("9999-12-31T23:59:59Z", "2030-01-01T00:00:00Z")
ON_CLAIM = {
    FAILED_COMMAND: '{"command":"abc","cause":"TimedOut","at":"%s"}',
    FAILED_LAUNCH: '{"claim":"abc","at":"%s"}',
}
ON_POOL = {
    HARM: '{"command":"abc","pods":1,"at":"%s"}',
    DISRUPTIONS: '[{"command":"abc","method":"Drift","since":"%s","at":"%s","nodes":2}]',
}


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("annotation", [*ON_CLAIM, *ON_POOL])
def test_a_moment_that_is_still_to_come_is_told_and_breaks_nothing_else(annotation: str, far: str) -> None:
    text = {**ON_CLAIM, **ON_POOL}[annotation]
    written = {annotation: text.replace("%s", far)}
    pool = pool_of(annotations=written if annotation in ON_POOL else {})
    spoiled = node("a", claim={"annotations": written} if annotation in ON_CLAIM else {})
    objects = cluster([spoiled, node("b")], pools=[pool, pool_of("other")])
    stops = list(stops_of(objects, BrakeSettings(), NOW))
    (stop,) = [stop for stop in stops if "still to come" in stop.message]
    assert far[:4] in stop.message
    assert annotation in stop.message
    assert stop.until is None
    assert stop.pool == "default"
