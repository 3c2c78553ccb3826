"""What is wrong with a scenario is found before it is run, and the field is named."""

from typing import Any

import pytest
from tests.virtual.worlds import CATALOG, POOL, scenario

from karpool.virtual.curves import ScenarioPart
from karpool.virtual.duration_limits import Delay, Interval, Limits, Stretch, limits_of
from karpool.virtual.policy_checks import pool_flaws
from karpool.virtual.scenario_checks import flaws, instance_type_flaws, names_instance_types
from karpool.wire.duration import Duration, parse_duration


def messages(text: str, *, pools: str = POOL) -> list[str]:
    return [f"{flaw.field}: {flaw.message}" for flaw in flaws((pools + text).encode())]


def web(fields: str) -> str:
    return f"workloads: [{{name: web, {fields}}}]"


def parts(of: type[Any] = ScenarioPart) -> list[type[Any]]:
    return [kind for below in of.__subclasses__() for kind in (below, *parts(below))]


# -- durations -----------------------------------------------------------------------------------------------------


def test_every_duration_of_a_scenario_has_limits() -> None:
    fields = {f"{kind.__name__}.{name}": hint for kind in parts() for name, hint in kind.__annotations__.items()}
    durations = {name: limits_of(hint) for name, hint in fields.items() if "Duration" in str(hint)}
    assert len(durations) > 25
    assert all(isinstance(limits, Limits) for limits in durations.values())


@pytest.mark.parametrize(
    ("kind", "allowed", "refused"),
    [
        (Interval, ("1s", "24h"), ("0s", "1ns", "-1h", "Never")),
        (Delay, ("0s", "24h"), ("-1ns", "Never")),
        (Stretch, ("1s", "Never"), ("0s", "-1h")),
    ],
)
def test_limits_of_durations(kind: Any, allowed: tuple[str, ...], refused: tuple[str, ...]) -> None:
    limits = limits_of(kind)
    assert limits is not None

    def allows(texts: tuple[str, ...]) -> list[bool]:
        lengths: list[Duration] = [parse_duration(text) for text in texts]
        return [limits.allow(length) for length in lengths]

    assert all(allows(allowed))
    assert not any(allows(refused))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (web("replicas: {bursts: {every: 0m, length: 5m, height: 3}}"), "workloads[0].replicas.bursts.every: 0s"),
        (web("replicas: {bursts: {every: Never, length: 5m, height: 3}}"), "workloads[0].replicas.bursts.every: Never"),
        (web("replicas: {bursts: {every: 5m, length: -5m, height: 3}}"), "workloads[0].replicas.bursts.length: -5m"),
        (web("replicas: {noise: {share: 1, every: 0m}}"), "workloads[0].replicas.noise.every: 0s"),
        (web("replicas: {every: 1ns}"), "workloads[0].replicas.every: 1ns"),
        (web("deploys: [1h, -2h]"), "workloads[0].deploys[1]: -2h"),
        (web("startTime: -1s"), "workloads[0].startTime: -1s"),
        ("faults: [{kind: outage, start: -5m, length: 3m}]", "faults[0].start: -5m"),
        ("faults: [{kind: outage, start: 5m, length: -3m}]", "faults[0].length: -3m"),
        ("faults: [{kind: interruptions, every: 0s}]", "faults[0].every: 0s"),
        ("timings: {launch: -5s}", "timings.launch: -5s"),
        ("timings: {poll: 0s}", "timings.poll: 0s"),
        ("autoscaler: {scanInterval: 0s}", "autoscaler.scanInterval: 0s"),
        ("warmUp: Never", "warmUp: Never"),
        ("length: 0s", "length: 0s"),
    ],
)
def test_a_duration_out_of_its_limits_is_named(text: str, named: str) -> None:
    (message,) = messages(text)
    assert message.startswith(f"{named} is not allowed here; write ")


def test_what_never_ends_may_say_so() -> None:
    faults = "faults: [{kind: outage, start: 0s, length: Never}, {kind: shortage, start: 0s, length: Never}]\n"
    assert messages(faults + web("kind: Job, runs: Never")) == []


# -- workloads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("replicas: {hours: []}", "replicas.hours: is empty; list at least one, or leave it out"),
        (
            "replicas: {hours: [{at: '10:00', value: 1}, {at: '10:00', value: 2}]}",
            "replicas.hours[1].at: 10:00 is there twice; keep one of them",
        ),
        (
            "replicas: {hours: [{at: '12:00', value: 1}, {at: '10:00', value: 2}]}",
            "replicas.hours[1].at: 10:00 comes after 12:00; list the earlier one first",
        ),
        (
            "replicas: {hours: [{at: '00:00', value: 1}, {at: '24:00', value: 2}]}",
            "replicas.hours[1].at: 24:00 is 00:00 of the next day; keep one of them",
        ),
        (
            "replicas: {hours: [{at: '24:30', value: 1}]}",
            "replicas.hours[0].at: expected a time of day from 00:00 to 24:00, such as 08:30",
        ),
        (
            "replicas: {steps: [{after: 2h, value: 1}, {after: 1h, value: 2}]}",
            "replicas.steps[1].after: 1h comes after 2h; list the earlier one first",
        ),
        ("replicas: -1", "replicas: is out of range; write 0 or more"),
        ("protection: {maxUnavailable: 250%}", "protection.maxUnavailable: 250% is more than all; write 0% to 100%"),
        (
            "protection: {minAvailable: some}",
            "protection.minAvailable: 'some' is not a number of pods; write 0 or more, or a percentage such as 50%",
        ),
        ("spec: {nodeSelectr: {a: b}}", "spec.nodeSelectr: is not a known field; did you mean nodeSelector?"),
        (
            "spec: {containers: [{resurces: {}}]}",
            "spec.containers[0].resurces: is not a known field; did you mean resources?",
        ),
        (
            "spec: {tolerations: [{kei: a}]}",
            "spec.tolerations[0].kei: is not a known field; did you mean key?",
        ),
    ],
)
def test_what_is_wrong_with_a_workload_is_named(fields: str, expected: str) -> None:
    assert messages(web(fields)) == [f"workloads[0].{expected}"]


@pytest.mark.parametrize(
    "fields",
    [
        "replicas: {hours: [{at: '08:00', value: 1}, {at: '24:00', value: 2}]}",
        "protection: {maxUnavailable: 100%}",
        "spec: {hostNetwork: true, containers: [{image: a, env: [], ports: [{name: http}]}]}",
        "spec: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}], volumes: [{name: a, configMap: {}}]}",
    ],
)
def test_what_kubernetes_knows_is_allowed(fields: str) -> None:
    assert messages(web(fields)) == []


@pytest.mark.parametrize("name", ["Not Valid!", "-web", "", "a_b", "a..b", "a" * 254])
def test_names_are_those_of_objects(name: str) -> None:
    (message,) = messages(f"workloads: [{{name: '{name}'}}]")
    assert message.startswith("workloads[0].name: ")
    assert "is no name of an object" in message


def test_a_name_may_have_dots() -> None:
    assert messages("workloads: [{name: web.v2}]") == []


# -- faults --------------------------------------------------------------------------------------------------------


def test_kinds_of_faults_are_listed() -> None:
    expected = "faults[0].kind: 'meteor' is not allowed; use one of shortage, interruptions, outage, breakdown"
    assert messages("faults: [{kind: meteor}]") == [expected]


def test_a_shortage_of_machines_that_nobody_has_is_named() -> None:
    made = scenario(
        "faults: [{kind: shortage, start: 0s, length: 1h, instanceTypes: [c-2x-amd64-linx], zones: [moon]}]"
    )
    assert names_instance_types(made)
    assert [f"{flaw.field}: {flaw.message}" for flaw in instance_type_flaws(made, CATALOG)] == [
        "faults[0].instanceTypes[0]: the catalogue has no type c-2x-amd64-linx; did you mean c-2x-amd64-linux?",
        "faults[0].zones[0]: the catalogue has no zone moon",
    ]


def test_a_price_of_a_machine_that_nobody_has_is_named() -> None:
    made = scenario("prices: {x-9: 1, 'c-2x-amd64-linux:sport': 1, 'c-2x-amd64-linux:spot': 1}")
    assert names_instance_types(made)
    assert [f"{flaw.field}: {flaw.message}" for flaw in instance_type_flaws(made, CATALOG)] == [
        "prices.x-9: the catalogue has no type x-9",
        "prices[c-2x-amd64-linux:sport]: 'sport' is not a capacity type; use one of reserved, spot, on-demand",
    ]


# -- policies ------------------------------------------------------------------------------------------------------


def test_a_patch_that_no_pool_can_have_is_named_with_its_pool() -> None:
    (message,) = messages("policies: {a: {pools: {general: {spec: {disruption: {consolidateAfter: soon}}}}}}")
    assert message.startswith("policies.a.pools.general.spec.disruption.consolidateAfter: 'soon' is not a duration")
    (message,) = messages("policies: {a: {pools: {general: {spec: {limits: {memory: 1Gi, cpu: lots}}}}}}")
    assert message.startswith("policies.a.pools.general.spec.limits.cpu: 'lots' is not a quantity")
    (message,) = messages("policies: {a: {pools: {'*': {spec: {weight: 500}}}}}")
    assert message.startswith("policies.a.pools[*].spec.weight: 500 is out of range")


def test_a_patch_is_not_blamed_for_what_was_wrong_before() -> None:
    made = scenario("policies: {a: {pools: {general: {spec: {limits: {cpu: 5}}}}}}", pools=POOL + "    weight: 500\n")
    assert list(pool_flaws(made)) == []


def test_what_the_compactor_would_refuse_is_named() -> None:
    (message,) = messages("policies: {a: {compactor: {x: 1}}}")
    assert message == "policies.a.compactor.x: is not a known field; there are nodePools"
    (message,) = messages("policies: {a: {compactor: {nodePools: {g: {enabled: true}}}}}")
    assert message.startswith("policies.a.compactor.nodePools.g.scaleDownCPURequestRatioLimit: is missing")


# -- fields that nobody knows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lenght: 4h", "lenght: is not a known field; did you mean length?"),
        (web("replica: 3"), "workloads[0].replica: is not a known field; did you mean replicas?"),
        (web("replicas: {hour: []}"), "workloads[0].replicas.hour: is not a known field; did you mean hours?"),
        ("policies: {a: {decision: {}}}", "policies.a.decision: is not a known field; did you mean decisions?"),
        (
            "policies: {a: {decisions: {effrot: 1}}}",
            "policies.a.decisions.effrot: is not a known field; did you mean effort?",
        ),
        ("faults: [{kind: outage, begin: 1h}]", "faults[0]: has no field begin"),
    ],
)
def test_a_misspelt_field_of_a_scenario_is_named_with_the_one_that_was_meant(text: str, expected: str) -> None:
    assert messages(text) == [expected]


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ("search: prefxi", "policies.a.decisions.search: 'prefxi' is not allowed"),
        ("search: prefxi", "did you mean prefix?"),
        ("effort: 4", "policies.a.decisions.effort: is out of range; write 3 or less"),
        ("effort: -1", "policies.a.decisions.effort: is out of range; write 0 or more"),
        ("evictionPrice: -0.1", "policies.a.decisions.evictionPrice: -0.1 is out of range"),
        ("evictionPrice: .nan", "policies.a.decisions.evictionPrice: expected a number"),
        ("evictionPrice: .inf", "policies.a.decisions.evictionPrice: expected a number"),
        ("evictionPrice: 2000000", "write $/h from 0 to 1,000,000"),
        ("weights: never", "policies.a.decisions.weights: 'never' is not allowed; use one of prefer, strict"),
    ],
)
def test_options_of_the_search_are_checked(decisions: str, message: str) -> None:
    (flaw,) = messages(f"policies: {{a: {{decisions: {{{decisions}}}}}}}")
    assert message in flaw


def test_a_seed_has_at_most_18_digits() -> None:
    (flaw,) = messages(f"seed: {'9' * 19}")
    assert flaw.startswith("seed: is out of range")
