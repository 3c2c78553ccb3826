import io
import json
from pathlib import Path
from typing import Any

import pytest

from karpool.model.reading.loading import load, read
from karpool.model.validation import validate
from karpool.wire.problems import Problem


def problems_of(*objects: dict[str, Any]) -> tuple[Problem, ...]:
    return validate(read(["-"], stdin=io.BytesIO(json.dumps(objects).encode())))


def pod(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"nodeName": "n"}, **more}


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
CLAIM = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "c", "labels": {"karpenter.sh/nodepool": "p"}},
    "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
}
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "p"},
    "spec": {"template": {"spec": CLAIM["spec"]}},
}


def test_a_pod_on_a_node_that_does_not_exist_is_a_problem() -> None:
    (problem,) = problems_of(pod())
    assert str(problem).startswith("standard input: Pod default/web: spec.nodeName: there is no Node 'n' in the input")
    assert problems_of(pod(), NODE) == ()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_may_outlive_its_node(phase: str) -> None:
    assert problems_of(pod(status={"phase": phase})) == ()


def test_a_claim_of_a_pool_that_does_not_exist_is_a_problem() -> None:
    (problem,) = problems_of(CLAIM)
    assert (problem.object, problem.field, problem.rule) == (
        "NodeClaim c",
        "metadata.labels[karpenter.sh/nodepool]",
        "UnknownNodePool",
    )
    assert problems_of(CLAIM, POOL) == ()


def test_a_claim_without_a_pool_stands_alone() -> None:
    assert problems_of({**CLAIM, "metadata": {"name": "c"}}) == ()


def test_a_broken_object_is_reported_once_and_counts_as_there() -> None:
    broken_pool = {**POOL, "spec": {"template": {"spec": CLAIM["spec"]}, "weight": "much"}}
    broken_node = {**NODE, "status": {"capacity": {"cpu": "x"}}}
    problems = problems_of(broken_pool, CLAIM, broken_node, pod())
    assert [problem.object for problem in problems] == ["NodePool p", "Node n"]


def test_the_examples_are_sound() -> None:
    loaded = load([str(Path(__file__).parents[2] / "examples")], stdin=io.BytesIO())
    assert validate(loaded) == ()
    assert loaded.warnings == ()
    assert (len(loaded.objects.nodes), len(loaded.objects.node_pools), len(loaded.objects.node_claims)) == (12, 2, 12)
    assert len(loaded.objects.pods) == 59


@pytest.mark.parametrize(("value", "broken"), [("20", False), ("0", False), ("twenty", True), ("-1", True)])
def test_a_rate_of_evictions_is_a_whole_number(*, value: str, broken: bool) -> None:
    annotations = {"karpool.sh/max-evictions-per-hour": value}
    found = problems_of(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "annotations": annotations}}
    )
    assert [str(problem).partition(" is not ")[2] for problem in found] == (
        ["allowed; write a whole number such as 10, or 0 to evict no pod"] if broken else []
    )
