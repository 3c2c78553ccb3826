"""Which sets of repair policies can be followed."""

from typing import Any

import pytest
from tests.disruption.repair.policies import BROKEN, FALLBACK, policy

from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy, RepairPolicyError


def test_one_policy_without_an_expression_is_enough() -> None:
    assert RepairPolicies.checked([FALLBACK]).listed == (FALLBACK,)


@pytest.mark.parametrize(
    ("listed", "field", "words"),
    [
        ([], "", "there are no repair policies"),
        ([BROKEN], "policies", "all have one"),
        ([FALLBACK, policy("Ready", "Unknown")], "policies", "2 have none"),
        ([policy(action="RebootNode")], "policies[0].action", "has to say ReplaceNode"),
        ([FALLBACK, policy("", "True", regex="x")], "policies[1].conditionType", "is empty"),
        ([FALLBACK, policy("A", "true", regex="x")], "policies[1].conditionStatus", "'true' is not one of"),
        ([policy(tolerated="-1s")], "policies[0].tolerationDuration", "write 0s or more"),
        ([policy(tolerated="Never")], "policies[0].tolerationDuration", "write 0s or more"),
        ([policy(grace="-1s")], "policies[0].terminationGracePeriod", "write 0s or more"),
        ([policy(grace="Never")], "policies[0].terminationGracePeriod", "write 0s or more"),
        ([policy(priority=101)], "policies[0].priority", "write 0 to 100"),
        ([policy(priority=-1)], "policies[0].priority", "write 0 to 100"),
        ([FALLBACK, policy("A", "True", regex="x", action="Reboot")], "policies[1].action", "'Reboot' is not one of"),
        ([FALLBACK, policy("A", "True", regex="(")], "policies[1].reasonRegex", "is not a regular expression"),
    ],
)
def test_what_is_wrong_is_named(listed: list[RepairPolicy], field: str, words: str) -> None:
    with pytest.raises(RepairPolicyError) as caught:
        RepairPolicies.checked(listed)
    assert [flaw.field for flaw in caught.value.flaws] == [field]
    assert words in str(caught.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(RepairPolicyError) as caught:
        RepairPolicies.checked([policy("", "no", regex="(", priority=200)])
    assert {flaw.rule for flaw in caught.value.flaws} == {
        "ConditionType",
        "ConditionStatus",
        "ReasonRegex",
        "Priority",
        "Fallback",
    }


def test_legacy_repair_needs_no_fallback() -> None:
    several: list[Any] = [FALLBACK, policy("Ready", "Unknown"), BROKEN]
    assert len(RepairPolicies.checked(several, legacy=True).listed) == 3
