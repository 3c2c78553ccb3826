"""However many mistakes an object has, all are found at once, and nothing that only follows from another one."""

import io
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.tables import row, table

from karpool.cli.main import cli
from karpool.model.reading.loading import read
from karpool.model.validation import validate
from karpool.wire.problems import Problem

Json = dict[str, Any]
POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {}},
    "spec": {
        "template": {
            "metadata": {"labels": {"team": "web"}},
            "spec": {
                "requirements": [
                    {"key": "a", "operator": "In", "values": ["x"]},
                    {"key": "b", "operator": "In", "values": ["x", "y"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                ],
                "taints": [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
                "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
                "expireAfter": "720h",
            },
        },
        "disruption": {
            "consolidateAfter": "30s",
            "consolidationPolicy": "WhenEmpty",
            "budgets": [{"nodes": "1"}, {"nodes": "10%", "schedule": "@daily", "duration": "8h"}],
        },
        "limits": {"cpu": "100", "memory": "100Gi"},
        "weight": 10,
    },
}
TEMPLATE = "spec.template.spec"
Mistake = tuple[str, Any, str]
"""Where a value is written, the value (`...` takes it away), and the field that is said to be wrong."""
MISTAKES: tuple[Mistake, ...] = (
    # What no decoder can read.
    ("spec.disruption.consolidateAfter", "30x", "spec.disruption.consolidateAfter"),
    ("spec.limits.cpu", "many", "spec.limits.cpu"),
    ("metadata.labels.a", 5, "metadata.labels.a"),
    (f"{TEMPLATE}.taints.0.value", ("web",), f"{TEMPLATE}.taints[0].value"),
    # What an API server refuses.
    ("spec.weight", 0, "spec.weight"),
    (f"{TEMPLATE}.requirements.0.operator", "Inn", f"{TEMPLATE}.requirements[0].operator"),
    (f"{TEMPLATE}.requirements.1.minValues", 3, f"{TEMPLATE}.requirements[1].minValues"),
    (f"{TEMPLATE}.expireAfter", "1.5h", f"{TEMPLATE}.expireAfter"),
    ("spec.disruption.consolidationPolicy", "Never", "spec.disruption.consolidationPolicy"),
    ("spec.disruption.budgets.0.nodes", "120%", "spec.disruption.budgets[0].nodes"),
    ("metadata.annotations.karpool!sh/balanced-k", "x", "metadata.annotations[karpool.sh/balanced-k]"),
    # What it requires, or refuses for how it is written.
    (f"{TEMPLATE}.nodeClassRef.kind", ..., f"{TEMPLATE}.nodeClassRef.kind"),
    ("spec.limits.memory", 1.5, "spec.limits.memory"),
    # What only a controller refuses.
    ("spec.template.metadata.labels.team", "a b", "spec.template.metadata.labels[team]"),
    (f"{TEMPLATE}.taints.0.key", "a b", f"{TEMPLATE}.taints[0].key"),
    ("spec.disruption.budgets.1.schedule", "0 0 31 2 *", "spec.disruption.budgets[1].schedule"),
    (f"{TEMPLATE}.requirements.2.values.0", "cheap", f"{TEMPLATE}.requirements[2].values"),
)


def with_mistakes(*mistakes: Mistake) -> Json:
    pool = deepcopy(POOL)
    for path, value, _ in mistakes:
        place: Any = pool
        *way, last = (int(part) if part.isdigit() else part.replace("!", ".") for part in path.split("."))
        for part in way:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return pool


def problems_of(*objects: Json) -> tuple[Problem, ...]:
    return validate(read(["-"], stdin=io.BytesIO(json.dumps(objects).encode())))


def fields_of(pool: Json) -> list[str]:
    return [problem.field for problem in problems_of(pool)]


def test_the_pool_is_sound_without_them() -> None:
    assert fields_of(POOL) == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_each_mistake_alone_is_found_once(mistake: Mistake) -> None:
    assert fields_of(with_mistakes(mistake)) == [mistake[2]]


@examples(100)
@given(st.sets(st.sampled_from(MISTAKES), min_size=2))
def test_any_number_of_mistakes_is_found_at_once(mistakes: set[Mistake]) -> None:
    assert sorted(fields_of(with_mistakes(*mistakes))) == sorted(field for _, _, field in mistakes)


def test_all_mistakes_are_in_every_format() -> None:
    text = json.dumps(with_mistakes(*MISTAKES))
    counted: dict[str, Callable[[str], int]] = {
        "json": lambda out: len(json.loads(out)["problems"]),
        "sarif": lambda out: len(json.loads(out)["runs"][0]["results"]),
        "junit": lambda out: out.count("<failure "),
        "table": lambda out: out.count("NodePool p: "),
    }
    for output, count in counted.items():
        result = CliRunner().invoke(cli, ["validate", "-f", "-", "-o", output], input=text)
        assert result.exit_code == 2
        assert count(result.stdout) == len(MISTAKES), output


@table(
    row("a list that is none", path=f"{TEMPLATE}.requirements.1", value={"key": "b", "operator": "In", "values": "x",
        "minValues": 2}, fields=[f"{TEMPLATE}.requirements[1].values"]),
    row("what must be there", path=f"{TEMPLATE}.requirements.0", value={"operator": "In"},
        fields=[f"{TEMPLATE}.requirements[0].key"]),
    row("an item that is no mapping", path=f"{TEMPLATE}.requirements.0", value="x",
        fields=[f"{TEMPLATE}.requirements[0]"]),
    row("two taints of which keys cannot be read", path=f"{TEMPLATE}.taints", value=[
        {"key": 1, "effect": "NoSchedule"}, {"key": 2, "effect": "NoSchedule"}],
        fields=[f"{TEMPLATE}.taints[0].key", f"{TEMPLATE}.taints[1].key"]),
    row("a schedule without its duration", path="spec.disruption.budgets.1.duration", value="8x",
        fields=["spec.disruption.budgets[1].duration"]),
    row("no list of budgets", path="spec.disruption.budgets", value={}, fields=["spec.disruption.budgets"]),
    row("no template", path="spec.template", value=[], fields=["spec.template"]),
    row("no spec", path="spec", value="x", fields=["spec"]),
    row("no name", path="metadata.name", value=5, fields=["metadata.name"]),
    row("a reference", path=f"{TEMPLATE}.nodeClassRef", value="default", fields=[f"{TEMPLATE}.nodeClassRef"]),
)  # fmt: skip
def test_what_follows_from_a_mistake_is_not_said(path: str, value: Any, fields: list[str]) -> None:
    assert fields_of(with_mistakes((path, value, ""))) == fields


def test_mistakes_are_told_in_the_order_in_which_they_are_written() -> None:
    wrong = with_mistakes(*MISTAKES[:1], *MISTAKES[4:7])
    assert fields_of(wrong) == [field for _, _, field in (*MISTAKES[5:7], MISTAKES[0], MISTAKES[4])]


def test_a_pod_has_all_its_mistakes_and_its_node_is_looked_for() -> None:
    container = {"resources": {"requests": {"cpu": "x", "memory": "-1"}}}
    spec = {"nodeName": "ghost", "containers": [container], "priority": "high"}
    found = problems_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
    requests = "spec.containers[0].resources.requests"
    assert [problem.field for problem in found] == [
        f"{requests}.cpu", f"{requests}.memory", "spec.priority", "spec.nodeName",
    ]  # fmt: skip


def test_a_broken_object_is_known_by_its_name() -> None:
    broken = with_mistakes(MISTAKES[0])
    assert [problem.rule for problem in problems_of(broken, POOL)] == ["InvalidValue", "DuplicateName"]


def test_an_object_whose_namespace_cannot_be_read_takes_the_name_of_no_other() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}}
    broken = {**pod, "metadata": {"name": "web", "namespace": 3}}
    assert [problem.field for problem in problems_of(broken, pod)] == ["metadata.namespace"]
