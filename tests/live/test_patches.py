"""Actions as merge patches: only what changes is written, and fields that Karpool does not know survive."""

from datetime import UTC, datetime
from typing import Any

import pytest

from karpool.execution import actions as a
from karpool.live.patches import merge_patch, target
from karpool.model.scheduling import Taint

NOW = datetime(2026, 11, 15, 12, 0, 0, 500_000, tzinfo=UTC)
DISRUPTED = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
OTHER = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-11-15T11:00:00Z"}
WRITTEN = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-11-15T10:00:00Z",
    "observedGeneration": 3,
}


@pytest.mark.parametrize(
    ("current", "edit", "patch"),
    [
        ({}, a.AddTaint("n", DISRUPTED), {"spec": {"taints": [WRITTEN]}}),
        ({"spec": {"taints": [OTHER]}}, a.AddTaint("n", DISRUPTED), {"spec": {"taints": [OTHER, WRITTEN]}}),
        ({"spec": {"taints": [{**WRITTEN, "value": "x"}]}}, a.AddTaint("n", DISRUPTED), {}),
        ({"spec": {"taints": [OTHER, WRITTEN]}}, a.RemoveTaint("n", DISRUPTED), {"spec": {"taints": [OTHER]}}),
        ({"spec": {"taints": [OTHER]}}, a.RemoveTaint("n", DISRUPTED), {}),
        ({}, a.SetLabel("Node", "n", "k", "v"), {"metadata": {"labels": {"k": "v"}}}),
        ({"metadata": {"labels": {"k": "v"}}}, a.SetLabel("Node", "n", "k", "v"), {}),
        (
            {"metadata": {"labels": {"k": "v"}}},
            a.SetLabel("Node", "n", "k", None),
            {"metadata": {"labels": {"k": None}}},
        ),
        ({}, a.Annotate("NodeClaim", "c", "k", None), {}),
        ({}, a.AddFinalizer("Node", "n", "f"), {"metadata": {"finalizers": ["f"]}}),
        (
            {"metadata": {"finalizers": ["g", "f"]}},
            a.RemoveFinalizer("Node", "n", "f"),
            {"metadata": {"finalizers": ["g"]}},
        ),
        ({}, a.SetClaimNode("c", "n"), {"status": {"nodeName": "n"}}),
        ({}, a.SetPodEventTime("c", NOW), {"status": {"lastPodEventTime": "2026-11-15T12:00:00Z"}}),
    ],
)
def test_an_edit_writes_what_changes_and_nothing_else(
    current: dict[str, Any], edit: a.Edit, patch: dict[str, Any]
) -> None:
    assert merge_patch(current, [edit], NOW) == patch


def test_a_condition_keeps_its_time_while_its_status_stays_and_fields_that_nobody_knows() -> None:
    current = {"status": {"conditions": [READY]}}
    condition = a.SetClaimCondition("c", "Ready", "True", "Other", "why")
    patch = merge_patch(current, [condition], NOW)
    assert patch == {"status": {"conditions": [{**READY, "reason": "Other", "message": "why"}]}}


def test_a_condition_gets_a_new_time_with_a_new_status() -> None:
    current = {"status": {"conditions": [READY]}}
    patch = merge_patch(current, [a.SetClaimCondition("c", "Ready", "False", "Other")], NOW)
    assert patch["status"]["conditions"][0]["lastTransitionTime"] == "2026-11-15T12:00:00Z"


def test_a_condition_that_says_so_already_is_not_written() -> None:
    current = {"status": {"conditions": [READY]}}
    assert merge_patch(current, [a.SetClaimCondition("c", "Ready", "True", "Ready")], NOW) == {}


def test_a_condition_is_cleared_without_touching_the_others() -> None:
    current = {"status": {"conditions": [READY, {"type": "Drifted", "status": "True"}]}}
    assert merge_patch(current, [a.ClearClaimCondition("c", "Drifted")], NOW) == {"status": {"conditions": [READY]}}


def test_several_edits_of_one_list_become_one_list() -> None:
    edits = [
        a.SetClaimCondition("c", "Launched", "True", "Launched"),
        a.SetClaimCondition("c", "Registered", "True", "Registered"),
        a.ClearClaimCondition("c", "Ready"),
    ]
    patch = merge_patch({"status": {"conditions": [READY]}}, edits, NOW)
    assert [condition["type"] for condition in patch["status"]["conditions"]] == ["Launched", "Registered"]


def test_the_last_of_several_values_counts() -> None:
    edits = [a.Annotate("Node", "n", "k", "first"), a.Annotate("Node", "n", "k", "last")]
    current = {"metadata": {"annotations": {"k": "last"}}}
    assert merge_patch(current, edits, NOW) == {"metadata": {"annotations": {"k": "last"}}}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (a.AddTaint("n", DISRUPTED), ("Node", "n", "")),
        (a.Annotate("NodePool", "p", "k", "v"), ("NodePool", "p", "")),
        (a.SetClaimNode("c", "n"), ("NodeClaim", "c", "status")),
        (a.ClearClaimCondition("c", "Drifted"), ("NodeClaim", "c", "status")),
    ],
)
def test_an_edit_knows_its_object_and_the_part_that_takes_it(edit: a.Edit, expected: tuple[str, str, str]) -> None:
    assert target(edit) == expected
