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


def test_all_that_is_wrong_is_told_on_one_line() -> None:
    text = config(
        f"maxSkew: 0, {ZONE}, matchLabelKeys: [a]", "maxSkew: 1, topologyKey: ''", f"maxSkew: 0, {ZONE}, skew: 3"
    )
    with pytest.raises(InputError) as refused:
        read_scheduler_config(text, "x")
    told = str(refused.value)
    at = "podTopologySpread.defaultConstraints"
    for words in (
        f"{at}[0]: maxSkew is 0",
        f"{at}[0]: has matchLabelKeys",
        f"{at}[1]: topologyKey is missing",
        f"{at}[2]: there are two",
        f"{at}[2].skew: ",
    ):
        assert words in told
    assert "\n" not in told


def test_an_unknown_field_is_told_beside_a_value_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match=r"skew: .*; .*maxSkew: "):
        read_scheduler_config(config(f"maxSkew: many, {ZONE}, skew: 3"), "x")
