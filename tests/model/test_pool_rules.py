"""Each rule of NodePools and NodeClaims, broken once."""

import io
import json
from typing import Any

import pytest
from tests.samples_nodepools import ALLOWED, CLASS, CONTROLLER, REFUSED, pool_manifest

from karpool.cli.validate import warnings_about
from karpool.model.annotations import grace_period
from karpool.model.nodepool import NodePool
from karpool.model.reading.loading import Loaded, load, read
from karpool.model.validation import validate
from karpool.wire.duration import NEVER, parse_duration
from karpool.wire.problems import InputError


def read_pool(**parts: Any) -> Loaded:
    return read(["-"], stdin=io.BytesIO(json.dumps(pool_manifest(**parts)).encode()))


def pool(**parts: Any) -> NodePool:
    return load(["-"], stdin=io.BytesIO(json.dumps(pool_manifest(**parts)).encode())).objects.node_pools[0]


def test_a_pool_with_nothing_in_it_has_the_defaults() -> None:
    spec = pool().spec
    assert str(spec.disruption.consolidate_after) == "0s"
    assert spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert [entry.nodes for entry in spec.disruption.budgets] == ["10%"]
    assert spec.template.spec.expire_after == parse_duration("720h")
    assert spec.template.spec.termination_grace_period is None
    assert pool().weight == 0


@pytest.mark.parametrize("parts", ALLOWED)
def test_what_is_allowed_is_no_problem(parts: dict[str, Any]) -> None:
    assert validate(read_pool(**parts)) == ()


@pytest.mark.parametrize(("parts", "field", "message"), REFUSED)
def test_what_an_api_server_refuses_is_refused_by_every_command(
    parts: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        pool(**parts)
    assert str(caught.value) == f"standard input: NodePool p: {field}: {message}"


@pytest.mark.parametrize("text", ["", "{", "10%", "0", "null", "[1]", '["10%"]', '{"nodes": "1"}'])
def test_what_is_no_list_of_budgets_is_told_what_one_looks_like(text: str) -> None:
    with pytest.raises(InputError) as caught:
        pool(annotations={"karpool.sh/budgets": text})
    assert str(caught.value) == (
        f"standard input: NodePool p: metadata.annotations[karpool.sh/budgets]: {text!r} is not allowed; "
        'write a list of budgets such as [{"nodes": "10%"}]'
    )
    assert pool(annotations={"karpool.sh/budgets": '[{"nodes": "10%"}]'})


def test_a_wrong_value_in_a_list_of_budgets_is_named_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        pool(annotations={"karpool.sh/budgets": '[{"nodes": "1"}, {"reasons": "Empty"}]'})
    assert str(caught.value).endswith("annotations[karpool.sh/budgets][1].reasons: expected a list, got text")


@pytest.mark.parametrize(("text", "warned"), [("false", True), (" No", True), ("true", False), ("", False)])
def test_a_pause_that_was_hardly_meant_is_a_warning(*, text: str, warned: bool) -> None:
    found = warnings_about(read_pool(annotations={"karpool.sh/paused": text}))
    assert [(problem.rule, problem.field) for problem in found] == (
        [("PausedAllTheSame", "metadata.annotations[karpool.sh/paused]")] if warned else []
    )


@pytest.mark.parametrize(("length", "warned"), [(63, False), (64, True)])
def test_a_name_that_no_node_can_carry_as_a_label_is_a_warning(*, length: int, warned: bool) -> None:
    manifest = pool_manifest()
    manifest["metadata"]["name"] = "p" * length
    loaded = read(["-"], stdin=io.BytesIO(json.dumps(manifest).encode()))
    assert validate(loaded) == ()
    found = [(problem.rule, problem.field) for problem in warnings_about(loaded)]
    assert found == ([("NameTooLong", "metadata.name")] if warned else [])


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
    with pytest.raises(InputError, match=r"NodeClaim c: spec.requirements\[0\].operator: 'Near' is not an operator"):
        load(["-"], stdin=io.BytesIO(json.dumps(claim).encode()))
    claim["spec"] = {"requirements": [{"key": "k", "operator": "Near"}]}
    problems = validate(read(["-"], stdin=io.BytesIO(json.dumps(claim).encode())))
    assert [problem.rule for problem in problems] == ["UnknownOperator", "NodeClassRef"]
