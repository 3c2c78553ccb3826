from pathlib import Path

import pytest
from tests.conformance.expected import USUAL_LIMIT, Expected, read_expected
from tests.conformance.suites import Outcome, Result, Spec

RUNS = Spec("regression", "Regression", "Static runs")
HANGS = Spec("regression", "Regression", "Static hangs (sometimes)")
LIST = """
[[not_passed]]
spec = "regression: Static hangs (sometimes)"
outcome = "failed"
reason = "there is no such thing"

[[limit]]
specs = "hangs"
seconds = 900
[[limit]]
specs = "Static"
seconds = 60

[quick]
specs = ["regression: Static runs"]
"""


@pytest.fixture
def expected(tmp_path: Path) -> Expected:
    path = tmp_path / "expected.toml"
    path.write_text(LIST, encoding="utf-8")
    return read_expected(path)


def test_a_spec_that_is_not_listed_is_expected_to_pass(expected: Expected) -> None:
    assert expected.outcome(RUNS) is Outcome.PASSED
    assert (expected.outcome(HANGS), expected.reason(HANGS)) == (Outcome.FAILED, "there is no such thing")


def test_only_results_that_differ_are_told(expected: Expected) -> None:
    results = [Result(RUNS, Outcome.PASSED, 1.0), Result(HANGS, Outcome.FAILED, 1.0, "hung")]
    assert expected.differences(results) == []


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Result(RUNS, Outcome.FAILED, 1.0), "regression: Static runs: failed, expected: passed"),
        (Result(RUNS, Outcome.SKIPPED, 1.0), "regression: Static runs: skipped, expected: passed"),
        (Result(HANGS, Outcome.PASSED, 1.0), "regression: Static hangs (sometimes): passed, expected: failed"),
    ],
)
def test_a_result_that_differs_either_way_is_told(expected: Expected, result: Result, line: str) -> None:
    assert expected.differences([result]) == [line]


def test_the_first_limit_that_matches_counts(expected: Expected) -> None:
    other = Spec("disruption", "Disruption", "Drift")
    assert [expected.limit(spec) for spec in (HANGS, RUNS, other)] == [900.0, 60.0, USUAL_LIMIT]


def test_a_listed_name_that_no_spec_has_is_told_if_its_suite_is_there(expected: Expected) -> None:
    assert expected.unknown([RUNS]) == ["regression: Static hangs (sometimes)"]
    assert expected.unknown([Spec("disruption", "Disruption", "Drift")]) == []


def test_a_spec_that_does_not_pass_needs_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text('[[not_passed]]\nspec = "dra: x"\noutcome = "failed"\nreason = " "\n', encoding="utf-8")
    with pytest.raises(ValueError, match="dra: x has no reason"):
        read_expected(path)


def test_a_spec_without_a_result_has_a_reason_that_expects_nothing(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text('[[not_run]]\nspec = "regression: Static runs"\nreason = "too large"\n', encoding="utf-8")
    expected = read_expected(path)
    assert expected.reason_without_result(RUNS) == "too large"
    assert expected.outcome(RUNS) is Outcome.PASSED
    assert expected.unknown([HANGS]) == [RUNS.name]


def test_the_focus_of_a_spec_is_its_whole_name_and_nothing_in_it_has_a_meaning() -> None:
    assert HANGS.focus == r"^Regression Static\ hangs\ \(sometimes\)$"
