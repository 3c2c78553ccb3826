"""What `validate` accepts in an annotation, decisions accept; on what it refuses they fail closed, with the reason."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import node_claim, node_pool, pod
from tests.samples_nodepools import pool_manifest

from karpool.cli.validate import warnings_about
from karpool.disruption.budgets import allowed
from karpool.disruption.candidates.pods import protected_until
from karpool.disruption.candidates.windows import closed_until, in_grace
from karpool.disruption.policies import Worth, saves_too_little, unbalanced
from karpool.model.labels import BALANCED_K, BUDGETS, DO_NOT_DISRUPT, GRACE_PERIOD, MINIMUM_SAVINGS
from karpool.model.reading.loading import Loaded, read
from karpool.model.reasons import Reason
from karpool.model.validation import validate

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)


def k_reason(value: str) -> Reason | None:
    pool = node_pool(policy="Balanced", annotations={BALANCED_K: value})
    return unbalanced(pool, Worth(50, 0), Worth(50, 1))


def savings_reason(value: str) -> Reason | None:
    return saves_too_little(node_pool(annotations={MINIMUM_SAVINGS: value}), 1e50, 1)


def grace_reason(value: str) -> Reason | None:
    pool = node_pool(annotations={GRACE_PERIOD: value})
    reason = in_grace(node_claim(), pool, NOW)
    assert (closed_until(node_claim(), pool).year == 9999) is (reason is not None)
    return reason


def budget_reason(value: str) -> Reason | None:
    allowance = allowed(node_pool(annotations={BUDGETS: value}), "Empty", 10, 0, NOW, annotated=True)
    return allowance.why if allowance.why is not None and allowance.why.code == "BudgetInvalid" else None


DECISIONS: dict[str, tuple[str, Callable[[str], Reason | None]]] = {
    BALANCED_K: ("BalancedKInvalid", k_reason),
    MINIMUM_SAVINGS: ("MinimumSavingsInvalid", savings_reason),
    GRACE_PERIOD: ("GracePeriodInvalid", grace_reason),
    BUDGETS: ("BudgetInvalid", budget_reason),
}
VALUES: list[tuple[str, str, bool]] = [
    *((BALANCED_K, value, True) for value in ("2", "2.5", ".5", "1.", "0.001")),
    *((BALANCED_K, value, False) for value in ("", "0", "0.0", "-1", "+1", "two", "1e3", "nan", "inf", "٣", "1" * 41)),
    *((MINIMUM_SAVINGS, value, True) for value in ("0", "0.05", "150", "0%", "5%", "99.5%", "100%")),
    *((MINIMUM_SAVINGS, value, False) for value in ("", "%", "150%", "100.1%", "5 %", "-1", "five", "1e3", "5%%")),
    *((GRACE_PERIOD, value, True) for value in ("Never", "0s", "30m", "1h30m", "90s")),
    *((GRACE_PERIOD, value, False) for value in ("", "never", "5", "5x", "1.5h", "-5m", "300ms", "9999999h")),
    *(
        (BUDGETS, json.dumps(value), True)
        for value in (
            [],
            [{}],  # as in the spec, where the API server fills in 10%
            [{"nodes": "1"}],
            [{"nodes": "10%"}, {"nodes": "0", "reasons": ["Drifted"]}],
            [{"nodes": "0", "schedule": "@daily", "duration": "8h"}],
        )
    ),
    *(
        (BUDGETS, json.dumps(value), False)
        for value in (
            None,
            {},
            [{"nodes": "120%"}],
            [{"nodes": "-1"}],
            [{"nodes": "1234567890"}],
            [{"nodes": "1", "reasons": ["Bored"]}],
            [{"nodes": "1", "schedule": "@daily"}],
            [{"nodes": "1", "duration": "8h"}],
            [{"nodes": "1", "schedule": "0 9 * * tue-mon", "duration": "8h"}],
            [{"nodes": "1", "schedule": "0 0 30 2 *", "duration": "8h"}],
            [{"nodes": "x", "schedule": "0 0 1 1 *", "duration": "1m"}],
            [{"nodes": "1", "schedule": "@daily", "duration": "90s"}],
            [{"nodes": "1"}] * 51,
            [{"node": "0"}],
            [{"Nodes": "0"}],
            [{"nodes": "1"}, {"nodes": "0", "reason": ["Drifted"]}],
            [{"nodes": "1", "colour": None}],
        )
    ),
    (BUDGETS, "", False),
    (BUDGETS, "10%", False),
]


def loaded(manifest: dict[str, object]) -> Loaded:
    return read(["-"], stdin=io.BytesIO(json.dumps(manifest).encode()))


def flawed_fields(key: str, value: str) -> list[str]:
    return [problem.field for problem in validate(loaded(pool_manifest(annotations={key: value})))]


def expect_agreement(key: str, value: str) -> bool:
    """Whether the value is valid, once validate and decisions say the same."""
    code, decide = DECISIONS[key]
    fields, reason = flawed_fields(key, value), decide(value)
    assert all(field.startswith(f"metadata.annotations[{key}]") for field in fields)
    assert (reason is None) is (not fields)
    assert reason is None or (reason.code == code and f"metadata.annotations[{key}]" in reason.message)
    return not fields


@pytest.mark.parametrize(("key", "value", "valid"), VALUES)
def test_validate_and_decisions_agree_on_every_annotation_of_a_pool(key: str, value: str, *, valid: bool) -> None:
    assert expect_agreement(key, value) is valid


def test_a_misspelt_field_of_an_annotated_budget_stops_the_pool_with_what_was_meant() -> None:
    value = '[{"nodes": "1"}, {"node": "0"}]'
    (problem,) = validate(loaded(pool_manifest(annotations={BUDGETS: value})))
    path, message = f"metadata.annotations[{BUDGETS}][1].node", "is not a known field; did you mean nodes?"
    assert (problem.field, problem.rule, problem.message) == (path, "UnknownField", message)
    allowance = allowed(node_pool(annotations={BUDGETS: value}), "Empty", 10, 0, NOW, annotated=True)
    assert (allowance.allowed, allowance.remaining) == (0, 0)
    assert allowance.why is not None
    assert f"{path}: {message}" in allowance.why.message


@given(st.sampled_from(sorted(DECISIONS)), st.text(alphabet='0159.%-+emhsNvr []{"}:', max_size=12))
def test_validate_and_decisions_agree_on_any_text(key: str, value: str) -> None:
    expect_agreement(key, value)


@pytest.mark.parametrize(
    ("value", "valid"),
    [("true", True), ("1h", True), ("1.5h", True), ("", False), ("false", False), ("Never", False), ("0s", False)],
)
def test_validate_warns_of_exactly_the_protections_that_decisions_ignore(value: str, *, valid: bool) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {DO_NOT_DISRUPT: value}},
        "spec": {"containers": [{"name": "web"}]},
    }
    rules = [str(problem.rule) for problem in warnings_about(loaded(manifest))]
    assert rules == ([] if valid else ["DoNotDisruptIgnored"])
    assert (protected_until(pod("web", annotations={DO_NOT_DISRUPT: value})) is not None) is valid
