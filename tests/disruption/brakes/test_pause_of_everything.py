"""One ConfigMap pauses everything."""

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, Scenario, node, pool_of

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.disruption.plan import plan
from karpool.model.labels import PAUSED
from karpool.model.objects import Objects
from karpool.model.workloads import ConfigMap
from karpool.wire.objects import Metadata


def config_map(name: str = "karpool-pause", namespace: str = "karpool", reason: str | None = None) -> ConfigMap:
    return ConfigMap(
        metadata=Metadata(name=name, namespace=namespace), data={} if reason is None else {"reason": reason}
    )


@pytest.mark.parametrize(
    ("reason", "message"),
    [(None, "pauses everything"), ("", "pauses everything"), ("incident 42", "pauses everything: incident 42")],
)
def test_it_stops_all_pools_and_says_why(reason: str | None, message: str) -> None:
    objects = Objects(pauses=(config_map(reason=reason),), node_pools=(pool_of("a", annotations={PAUSED: "too"}),))
    stop = stops_of(objects, BrakeSettings(), NOW).of("a")
    assert stop is not None
    assert (stop.code, stop.message, stop.object) == ("Paused", message, "ConfigMap karpool/karpool-pause")
    assert stop.pool is None
    assert stop.halts


@pytest.mark.parametrize("other", [config_map("karpool"), config_map(namespace="default")], ids=["name", "namespace"])
def test_another_config_map_says_nothing(other: ConfigMap) -> None:
    assert not stops_of(Objects(pauses=(other,)), BrakeSettings(), NOW)
    assert stops_of(Objects(pauses=(config_map(namespace="own"),)), BrakeSettings(pause_namespace="own"), NOW)


def test_a_plan_of_a_paused_cluster_has_no_steps_and_every_node_says_why() -> None:
    scenario = Scenario("paused", nodes=[node("a"), node("b", pods=[{"cpu": 1}])])
    paused = plan(replace(scenario.objects, pauses=(config_map(),)), scenario.catalog, now=NOW)
    assert paused.steps == ()
    assert {reason.code for fate in paused.fates for reason in fate.reasons} == {"Paused"}
