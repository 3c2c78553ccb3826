import pytest

from karpool.model.scheduler_config import read_scheduler_config
from karpool.model.scheduling import SpreadConstraint
from karpool.wire.problems import InputError

ZONE = "topologyKey: topology.kubernetes.io/zone"


def config(*constraints: str) -> str:
    return "podTopologySpread:\n  defaultConstraints:\n" + "".join(f"  - {{{line}}}\n" for line in constraints)


def test_constraints_are_read_from_yaml_and_from_json() -> None:
    expected = (
        SpreadConstraint(max_skew=1, topology_key="topology.kubernetes.io/zone"),
        SpreadConstraint(max_skew=2, topology_key="rack", when_unsatisfiable="ScheduleAnyway"),
    )
    yaml = config(
        f"maxSkew: 1, {ZONE}, whenUnsatisfiable: DoNotSchedule",
        "maxSkew: 2, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway",
    )
    json = (
        '{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"},'
        ' {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}]}}'
    )
    for text in (yaml, json):
        assert read_scheduler_config(text, "x").pod_topology_spread.default_constraints == expected


def test_no_text_is_no_constraint() -> None:
    assert read_scheduler_config(" \n", "x").pod_topology_spread.default_constraints == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (config(f"maxSkew: 0, {ZONE}"), "maxSkew is 0"),
        (config("maxSkew: 1, topologyKey: ''"), "topologyKey is missing"),
        (config(f"maxSkew: 1, {ZONE}, labelSelector: {{matchLabels: {{a: b}}}}"), "has a labelSelector"),
        (config(f"maxSkew: 1, {ZONE}, matchLabelKeys: [a]"), "has matchLabelKeys"),
        (config(f"maxSkew: 1, {ZONE}", f"maxSkew: 2, {ZONE}"), "there are two for topology.kubernetes.io/zone"),
        (config(f"maxSkew: 1, {ZONE}, whenUnsatisfiable: Maybe"), "whenUnsatisfiable"),
        (config(f"maxSkew: 1, {ZONE}, skew: 3"), "skew"),
        ("podTopologySpreads: {}", "podTopologySpread"),
        ("[]", "expected one document"),
        ("a: b: c", "x"),
    ],
)
def test_a_configuration_that_the_scheduler_would_refuse_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_scheduler_config(text, "x")
