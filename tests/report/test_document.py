import json

import msgspec
import pytest
from tests.report import samples

from karpool.report.plans.document import ExplanationDocument, PlacementPart, PlanDocument, TotalsPart, Unblock, to_json
from karpool.wire.objects import decode_value

CONTRACT = {
    "": {
        "apiVersion",
        "kind",
        "time",
        "before",
        "after",
        "savings",
        "commands",
        "nodes",
        "unschedulable",
        "lowerBound",
        "curve",
    },
    "before": {"nodes", "pods", "pricePerHour"},
    "after": {"nodes", "pods", "pricePerHour"},
    "savings": {"pricePerHour", "percent"},
    "commands.1": {
        "step",
        "method",
        "reason",
        "decision",
        "nodes",
        "replacements",
        "placements",
        "savingsPerHour",
        "disruptionCost",
    },
    "commands.1.replacements.0": {"name", "nodePool", "capacityType", "zones", "instanceTypes", "pricePerHour"},
    "commands.1.placements.0": {"pod", "from", "to"},
    "nodes.0": {"name", "nodePool", "instanceType", "pricePerHour", "pods", "verdict", "step", "reasons"},
    "nodes.0.reasons.0": {"code", "message", "object"},
    "unschedulable.0": {"pod", "reasons"},
    "curve.0": {"step", "evictions", "pricePerHour"},
}


def _at(document: object, path: str) -> object:
    for key in filter(None, path.split(".")):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


@pytest.mark.parametrize(("path", "fields"), CONTRACT.items())
def test_a_plan_has_every_field_of_the_contract(path: str, fields: set[str]) -> None:
    plan, _ = samples.small()
    assert fields <= set(_at(json.loads(to_json(plan)), path))


def test_a_lower_bound_has_every_field_of_the_contract() -> None:
    bound = json.loads(to_json(samples.several()[0]))["lowerBound"]
    assert set(bound) == {"pricePerHour", "method", "distancePercent", "blockers"}
    assert bound["blockers"][0] == {"code": "PodDisruptionBudget", "pricePerHour": 0.1, "nodes": 2}


def test_each_move_of_a_step_with_several_replacements_names_one_of_them() -> None:
    (command,) = json.loads(to_json(samples.several()[0]))["commands"]
    assert [new["name"] for new in command["replacements"]] == ["new-1", "new-2"]
    assert {move["to"] for move in command["placements"]} == {"new-1", "new-2"}


def test_a_plan_says_what_it_is() -> None:
    document = json.loads(to_json(samples.small()[0]))
    assert (document["apiVersion"], document["kind"]) == ("karpool.sh/v1", "Plan")
    assert document["time"] == "2026-03-02T09:30:00Z"


def test_a_plan_comes_back_as_it_was_written() -> None:
    plan, _ = samples.small()
    assert msgspec.json.decode(to_json(plan), type=PlanDocument, dec_hook=decode_value) == plan


def test_an_explanation_comes_back_as_it_was_written() -> None:
    explanation = samples.explanation()
    assert msgspec.json.decode(to_json(explanation), type=ExplanationDocument, dec_hook=decode_value) == explanation


def test_an_explanation_names_its_fields_as_promised() -> None:
    document = json.loads(to_json(samples.explanation()))
    assert document["kind"] == "Explanation"
    assert document["utilisation"]["cpu"] == {"requested": "1570m", "allocatable": "3920m", "ratio": 0.4}
    assert document["rules"][1]["passed"] is False
    assert [pod["to"] for pod in document["pods"]] == [None, "ip-10-0-1-24", "new-1"]
    assert document["unblock"] == [{"if": "Pod shop/cart-0 were not marked do-not-disrupt", "savingsPerHour": 0.19}]


def test_an_explanation_lists_every_replacement_and_the_first_alone() -> None:
    document = json.loads(to_json(samples.explanation_with_several()))
    assert [new["name"] for new in document["replacements"]] == ["new-1", "new-2"]
    assert document["alternative"] == document["replacements"][0]


def test_unknown_prices_are_null_and_known_ones_are_not_rounded() -> None:
    assert b'"pricePerHour":null' in msgspec.json.encode(TotalsPart(nodes=1, pods=0, price_per_hour=None))
    assert b"0.1234567890123" in msgspec.json.encode(Unblock(condition="x", savings_per_hour=0.1234567890123))


def test_a_pending_pod_comes_from_null() -> None:
    assert (
        msgspec.json.encode(PlacementPart(pod="a/b", source=None, target="n")) == b'{"pod":"a/b","from":null,"to":"n"}'
    )


def test_a_node_that_stays_has_no_step() -> None:
    nodes = json.loads(to_json(samples.small()[0]))["nodes"]
    assert {node["verdict"]: node["step"] for node in nodes} == {"keep": None, "delete": 3, "replace": 2}
