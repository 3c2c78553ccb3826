"""How the report of a suite is read; a script stands in for the suite, and writes what ginkgo writes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import suites
from tests.conformance.suites import Outcome, Result, Spec, run_spec, specs_of

SPEC = Spec("regression", "Regression", "Static should scale")


def it(text: str, state: str, **more: Any) -> dict[str, Any]:
    spec = {"ContainerHierarchyTexts": ["Static"], "LeafNodeText": text, "LeafNodeType": "It", "State": state}
    return {**spec, "NumAttempts": int(state != "skipped" or "Failure" in more), **more}


def suite(folder: Path, *specs: dict[str, Any], ends: bool = True) -> Path:
    """A program that writes a report of these specs, and prints what it was asked."""
    report = [
        {"SuiteDescription": "Regression", "SpecReports": [{**it("", "passed"), "LeafNodeType": "BeforeSuite"}, *specs]}
    ]
    lines = [
        f"#!{sys.executable}",
        "import pathlib, sys, time",
        "print(*sys.argv[1:], sep='\\n')",
        *([] if ends else ["time.sleep(60)"]),
        "path = next(flag for flag in sys.argv if flag.startswith('--ginkgo.json-report=')).partition('=')[2]",
        f"pathlib.Path(path).write_text({json.dumps(report)!r})",
    ]
    program = folder / "regression"
    program.write_text("\n".join(lines), encoding="utf-8")
    program.chmod(0o755)
    return folder


def run(folder: Path) -> Result:
    return run_spec(SPEC, folder, {}, 5.0, folder / "log")


def test_specs_are_listed_without_what_is_around_them(tmp_path: Path) -> None:
    listed = specs_of("regression", suite(tmp_path, it("should scale", "passed"), it("should stop", "passed")))
    assert listed == [SPEC, Spec("regression", "Regression", "Static should stop")]


def test_one_spec_is_asked_for_and_its_outcome_counts(tmp_path: Path) -> None:
    result = run(suite(tmp_path, it("should stop", "skipped"), it("should scale", "passed")))
    assert (result.outcome, result.reason) == (Outcome.PASSED, "")
    asked = (tmp_path / "log").read_text(encoding="utf-8")
    assert f"--ginkgo.focus={SPEC.focus}" in asked
    assert "--ginkgo.timeout=5s" in asked


def test_a_spec_that_fails_says_where_and_why(tmp_path: Path) -> None:
    failure = {"Message": "expected\n  10 nodes", "Location": {"FileName": "/a/static_test.go", "LineNumber": 7}}
    result = run(suite(tmp_path, it("should scale", "failed", Failure=failure)))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "static_test.go:7: expected 10 nodes")


def test_a_spec_that_runs_out_of_time_says_what_it_was_waiting_for(tmp_path: Path) -> None:
    failure = {
        "Message": "A suite timeout occurred",
        "Location": {"FileName": "/a/static_test.go", "LineNumber": 7},
        "ProgressReport": {"CurrentStepText": "waiting for 10 nodes"},
    }
    result = run(suite(tmp_path, it("should scale", "timedout", Failure=failure)))
    assert result.outcome is Outcome.FAILED
    assert result.reason == "static_test.go:7: A suite timeout occurred; while waiting for 10 nodes"


def test_a_spec_that_skips_itself_is_skipped(tmp_path: Path) -> None:
    result = run(suite(tmp_path, it("should scale", "skipped", Failure={"Message": "no such scheduler"})))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no such scheduler")


def test_a_suite_that_did_not_run_the_spec_has_failed(tmp_path: Path) -> None:
    result = run(suite(tmp_path, it("should stop", "passed")))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "the suite did not run it")


def test_a_suite_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "PATIENCE", -4.0)
    result = run(suite(tmp_path, it("should scale", "passed"), ends=False))
    assert result.outcome is Outcome.FAILED
    assert result.reason == "the suite did not end within 1 s"


def test_a_spec_without_hope_is_not_waited_for(tmp_path: Path) -> None:
    folder = suite(tmp_path, it("should scale", "passed"), ends=False)
    result = run_spec(SPEC, folder, {}, 3600.0, tmp_path / "log", hopeless=lambda: True)
    assert (result.outcome, result.reason) == (Outcome.FAILED, "the suite was ended")
