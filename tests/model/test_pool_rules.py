"""Each rule of NodePools and NodeClaims, broken once."""

import io
import json
from typing import Any

import pytest

from karpool.model.duration import NEVER, parse_duration
from karpool.model.loading import Loaded, load, read
from karpool.model.nodepool import NodePool, grace_period
from karpool.model.problems import InputError
from karpool.model.validation import validate

CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
TEMPLATE = "spec.template.spec"
DISRUPTION = "spec.disruption"


def manifest(
    *,
    claim: dict[str, Any] | None = None,
    disruption: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> bytes:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"nodeClassRef": CLASS, "requirements": [], **(claim or {})},
    }
    written = {"template": template, "disruption": disruption or {}, **spec}
    metadata = {"name": "p", "annotations": annotations or {}}
    return json.dumps(
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": written}
    ).encode()


def read_pool(**parts: Any) -> Loaded:
    return read(["-"], stdin=io.BytesIO(manifest(**parts)))


def pool(**parts: Any) -> NodePool:
    return load(["-"], stdin=io.BytesIO(manifest(**parts))).objects.node_pools[0]


def wanting(operator: str, *values: str, key: str = "k", **more: Any) -> dict[str, Any]:
    return {"claim": {"requirements": [{"key": key, "operator": operator, "values": list(values), **more}]}}


def budget(**fields: Any) -> dict[str, Any]:
    return {"disruption": {"budgets": [fields]}}


def test_a_pool_with_nothing_in_it_has_the_defaults() -> None:
    spec = pool().spec
    assert str(spec.disruption.consolidate_after) == "0s"
    assert spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert [entry.nodes for entry in spec.disruption.budgets] == ["10%"]
    assert spec.template.spec.expire_after == parse_duration("720h")
    assert spec.template.spec.termination_grace_period is None
    assert pool().weight == 0


@pytest.mark.parametrize(
    "parts",
    [
        {"weight": 1},
        {"weight": 100},
        {"replicas": 0, "limits": {"nodes": 5}},
        {"disruption": {"consolidateAfter": "Never", "consolidationPolicy": "Balanced"}},
        {"disruption": {"consolidateAfter": "1h30m10s", "consolidationGracePeriod": "10m"}},
        {"disruption": {"budgets": []}},
        budget(nodes="0", reasons=["Empty", "Drifted", "Underutilized"]),
        budget(nodes="100%", schedule="@daily", duration="8h0m0s"),
        budget(nodes=3, schedule="0 9 * * mon-fri", duration="90m"),
        {"claim": {"expireAfter": "Never", "terminationGracePeriod": "30m"}},
        wanting("In", "spot", "on-demand", key="karpenter.sh/capacity-type", minValues=2),
        wanting("Gte", "0", key="karpenter.k8s.aws/instance-cpu"),
        wanting("NotIn", "a"),
        wanting("Exists", minValues=50),
        {"annotations": {"karpool.sh/balanced-k": "1.5", "karpool.sh/minimum-savings": "5%"}},
        {"annotations": {"karpool.sh/minimum-savings": "0.05", "karpool.sh/budgets": '[{"nodes": "5"}]'}},
    ],
)
def test_what_is_allowed_is_no_problem(parts: dict[str, Any]) -> None:
    assert validate(read_pool(**parts)) == ()


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"weight": 0}, "spec.weight", "0 is out of range; write 1 to 100, or leave it out"),
    ({"weight": 101}, "spec.weight", "101 is out of range; write 1 to 100, or leave it out"),
    ({"weight": "50"}, "spec.weight", "expected a whole number, got text"),
    ({"replicas": -1}, "spec.replicas", "-1 is negative; write 0 or more"),
    ({"replicas": 1, "weight": 5}, "spec.weight", "is not allowed together with replicas; remove one of the two"),
    (
        {"replicas": 1, "limits": {"cpu": 5}},
        "spec.limits.cpu",
        "is not allowed together with replicas; a static pool can only limit nodes",
    ),
    ({"limits": {"cpu": "-5"}}, "spec.limits.cpu", "'-5' is negative; write zero or more"),
    (
        wanting("Near", "a"),
        f"{TEMPLATE}.requirements[0].operator",
        "'Near' is not an operator; use one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte",
    ),
    (wanting("In"), f"{TEMPLATE}.requirements[0].values", "In needs at least one value"),
    (
        wanting("Gt", "1", "2"),
        f"{TEMPLATE}.requirements[0].values",
        "Gt needs exactly one value, a whole number of 0 or more; 2 are given",
    ),
    (
        wanting("Lte", "-1"),
        f"{TEMPLATE}.requirements[0].values[0]",
        "Lte needs a whole number of 0 or more, not '-1'",
    ),
    (
        wanting("In", "a", "b", minValues=3),
        f"{TEMPLATE}.requirements[0].minValues",
        "3 is more than the number of values (2); lower it or list more values",
    ),
    (wanting("Exists", minValues=0), f"{TEMPLATE}.requirements[0].minValues", "0 is out of range; write 1 to 50"),
    (wanting("Exists", minValues=51), f"{TEMPLATE}.requirements[0].minValues", "51 is out of range; write 1 to 50"),
    (wanting("Exists", key=""), f"{TEMPLATE}.requirements[0].key", "is empty; name a label key"),
    (
        {"claim": {"requirements": [{"key": f"k{n}", "operator": "Exists"} for n in range(101)]}},
        f"{TEMPLATE}.requirements",
        "101 requirements are too many; at most 100 are allowed",
    ),
    (
        {"claim": {"requirements": [{"key": "k"}]}},
        f"{TEMPLATE}.requirements[0].operator",
        "is missing; it is required here",
    ),
    (
        {"claim": {"taints": [{"key": "k", "effect": "Never"}]}},
        f"{TEMPLATE}.taints[0].effect",
        "'Never' is not allowed; use one of NoSchedule, PreferNoSchedule, NoExecute",
    ),
    (
        {"claim": {"expireAfter": "1.5h"}},
        f"{TEMPLATE}.expireAfter",
        "'1.5h' is not allowed; write whole h, m and s such as 30s or 1h30m, or Never",
    ),
    (
        {"claim": {"terminationGracePeriod": "Never"}},
        f"{TEMPLATE}.terminationGracePeriod",
        "Never is not allowed here; write a duration such as 30m, or leave the field out",
    ),
    (
        {"disruption": {"consolidateAfter": "5x"}},
        f"{DISRUPTION}.consolidateAfter",
        "'5x' is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never",
    ),
    (
        {"disruption": {"consolidateAfter": "-5s"}},
        f"{DISRUPTION}.consolidateAfter",
        "'-5s' is not allowed; write whole h, m and s such as 30s or 1h30m, or Never",
    ),
    (
        {"disruption": {"consolidateAfter": 30}},
        f"{DISRUPTION}.consolidateAfter",
        "expected a duration such as 30s, 1h30m or Never",
    ),
    (
        {"disruption": {"consolidationGracePeriod": "soon"}},
        f"{DISRUPTION}.consolidationGracePeriod",
        "'soon' is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never",
    ),
    (
        {"disruption": {"consolidationPolicy": "whenEmpty"}},
        f"{DISRUPTION}.consolidationPolicy",
        "'whenEmpty' is not a policy; use one of WhenEmpty, WhenEmptyOrUnderutilized, Balanced",
    ),
    (
        budget(nodes="120%"),
        f"{DISRUPTION}.budgets[0].nodes",
        "'120%' is not a number of nodes; write 0 or more, or 0% to 100%",
    ),
    (
        budget(nodes=-1),
        f"{DISRUPTION}.budgets[0].nodes",
        "'-1' is not a number of nodes; write 0 or more, or 0% to 100%",
    ),
    (
        budget(reasons=["Bored"]),
        f"{DISRUPTION}.budgets[0].reasons[0]",
        "'Bored' is not a reason; use one of Underutilized, Empty, Drifted",
    ),
    (
        budget(schedule="@daily"),
        f"{DISRUPTION}.budgets[0].duration",
        "is missing; a schedule needs a duration such as 8h",
    ),
    (
        budget(duration="8h"),
        f"{DISRUPTION}.budgets[0].schedule",
        "is missing; a duration needs a schedule such as '0 9 * * mon-fri'",
    ),
    (
        budget(schedule="now", duration="8h"),
        f"{DISRUPTION}.budgets[0].schedule",
        "'now' is not a schedule; write five cron fields, or @daily and the like",
    ),
    (
        budget(schedule="@daily", duration="30s"),
        f"{DISRUPTION}.budgets[0].duration",
        "'30s' is not allowed; write whole hours and minutes such as 8h or 1h30m",
    ),
    (
        {"disruption": {"budgets": [{"nodes": "1"}] * 51}},
        f"{DISRUPTION}.budgets",
        "51 budgets are too many; at most 50 are allowed",
    ),
    (
        {"annotations": {"karpool.sh/consolidation-grace-period": "5x"}},
        "metadata.annotations[karpool.sh/consolidation-grace-period]",
        "'5x' is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never",
    ),
    (
        {"annotations": {"karpool.sh/balanced-k": "0"}},
        "metadata.annotations[karpool.sh/balanced-k]",
        "'0' is not allowed; write a number above 0 such as 2",
    ),
    (
        {"annotations": {"karpool.sh/minimum-savings": "lots"}},
        "metadata.annotations[karpool.sh/minimum-savings]",
        "'lots' is not allowed; write dollars an hour such as 0.05, or a percentage of at most 100 such as 5%",
    ),
    (
        {"annotations": {"karpool.sh/budgets": '[{"nodes": "120%"}]'}},
        "metadata.annotations[karpool.sh/budgets][0].nodes",
        "'120%' is not a number of nodes; write 0 or more, or 0% to 100%",
    ),
]


@pytest.mark.parametrize(("parts", "field", "message"), REFUSED)
def test_what_an_api_server_refuses_is_refused_by_every_command(
    parts: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        pool(**parts)
    assert str(caught.value) == f"standard input: NodePool p: {field}: {message}"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"nodes": "1"}'])
def test_annotated_budgets_must_be_a_json_list_of_budgets(text: str) -> None:
    with pytest.raises(InputError, match=r"NodePool p: metadata.annotations\[karpool.sh/budgets\]: "):
        pool(annotations={"karpool.sh/budgets": text})


CONTROLLER: list[tuple[dict[str, Any], str, str]] = [
    ({"claim": {"nodeClassRef": None}}, f"{TEMPLATE}.nodeClassRef", "NodeClassRef"),
    ({"claim": {"nodeClassRef": {**CLASS, "name": ""}}}, f"{TEMPLATE}.nodeClassRef.name", "NodeClassRef"),
    ({"claim": {"requirements": None}}, f"{TEMPLATE}.requirements", "MissingField"),
    (wanting("Exists", key="not a key"), f"{TEMPLATE}.requirements[0].key", "LabelKey"),
    (wanting("Exists", key="UPPER.example/x"), f"{TEMPLATE}.requirements[0].key", "LabelKey"),
    (wanting("In", "x" * 64), f"{TEMPLATE}.requirements[0].values[0]", "LabelValue"),
    (wanting("Exists", key="karpenter.sh/nodepool"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    (wanting("Exists", key="kubernetes.io/hostname"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    (wanting("Exists", key="sub.karpenter.sh/x"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    (wanting("In", "free", key="karpenter.sh/capacity-type"), f"{TEMPLATE}.requirements[0].values", "CapacityType"),
    (
        wanting("In", "spot", "free", key="karpenter.sh/capacity-type", minValues=2),
        f"{TEMPLATE}.requirements[0].minValues",
        "MinValuesTooMany",
    ),
    ({"labels": {"karpenter.sh/custom": "x"}}, "spec.template.metadata.labels[karpenter.sh/custom]", "RestrictedLabel"),
    ({"labels": {"k": "not a value"}}, "spec.template.metadata.labels[k]", "LabelValue"),
    ({"labels": {f"k{n}": "v" for n in range(101)}}, "spec.template.metadata.labels", "TooManyLabels"),
    (
        {
            "claim": {
                "taints": [{"key": "k", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            }
        },
        f"{TEMPLATE}.startupTaints[0]",
        "DuplicateTaint",
    ),
    (budget(schedule="0 0 31 2 *", duration="8h"), f"{DISRUPTION}.budgets[0].schedule", "Schedule"),
    (budget(schedule="61 * * * *", duration="8h"), f"{DISRUPTION}.budgets[0].schedule", "Schedule"),
]


@pytest.mark.parametrize(("parts", "field", "rule"), CONTROLLER)
def test_what_only_the_controller_trips_over_is_found_by_validate_alone(
    parts: dict[str, Any], field: str, rule: str
) -> None:
    loaded = read_pool(**parts)
    assert loaded.problems == ()
    assert [(problem.object, problem.field, problem.rule) for problem in validate(loaded)] == [
        ("NodePool p", field, rule)
    ]


def test_an_unknown_field_is_a_warning_with_a_suggestion() -> None:
    (warning,) = read_pool(disruption={"consolidateAftr": "5m"}).warnings
    assert str(warning) == (
        "standard input: NodePool p: spec.disruption.consolidateAftr: "
        "is not a known field and is ignored; did you mean consolidateAfter?"
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "Never"),
        ({"disruption": {"consolidationGracePeriod": "10m"}}, "10m"),
        ({"disruption": {"consolidationGracePeriod": "Never"}}, "Never"),
        ({"annotations": {"karpool.sh/consolidation-grace-period": "5m"}}, "5m"),
        (
            {
                "disruption": {"consolidationGracePeriod": "10m"},
                "annotations": {"karpool.sh/consolidation-grace-period": "5m"},
            },
            "10m",
        ),
    ],
)
def test_the_grace_period_is_a_field_or_an_annotation(parts: dict[str, Any], expected: str) -> None:
    assert grace_period(pool(**parts)) == (NEVER if expected == "Never" else parse_duration(expected))


def test_node_claims_keep_the_same_rules() -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "c"},
        "spec": {"requirements": [{"key": "k", "operator": "Near"}], "expireAfter": "5d", "nodeClassRef": CLASS},
    }
    with pytest.raises(InputError, match=r"NodeClaim c: spec.expireAfter: '5d' is not a duration"):
        load(["-"], stdin=io.BytesIO(json.dumps(claim).encode()))
    claim["spec"] = {"requirements": [{"key": "k", "operator": "Near"}]}
    found = validate(read(["-"], stdin=io.BytesIO(json.dumps(claim).encode())))
    assert [problem.rule for problem in found] == ["UnknownOperator", "NodeClassRef"]
