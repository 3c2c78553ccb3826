"""Findings of `lint` and problems of `validate` in one form, as CI systems read them."""

import re
from collections.abc import Collection, Iterable
from typing import Literal

import msgspec

from karpool.report.checks.lint_document import FindingPart, LintDocument
from karpool.report.formatting import per_month
from karpool.wire.problems import Problem, one_line


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong: the rule by name and title, how bad it is, a sentence, and where it was read.

    Control characters of names are made visible, as on a terminal.
    """

    rule: str
    title: str
    level: Literal["warning", "error"]
    message: str
    file: str
    object: str
    field: str
    line: int | None = None
    """Where the manifest begins in the file, if that is known."""
    help: str = ""


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """All results of a command, and the names of the rules that found nothing."""

    command: str
    results: tuple[CheckResult, ...]
    failing: Collection[str]
    """The levels on which the command fails."""
    passed: tuple[str, ...] = ()


def lint_results(document: LintDocument, failing: Collection[str], rules: Iterable[str] = ()) -> Checks:
    results = tuple(_of_finding(part) for part in document.findings)
    found = {result.rule for result in results}
    passed = tuple(rule for rule in rules if rule not in found)
    return Checks(command="lint", results=results, failing=failing, passed=passed)


def _of_finding(part: FindingPart) -> CheckResult:
    cost = f" It costs {per_month(part.cost_per_hour)}." if part.cost_per_hour else ""
    return CheckResult(
        rule=part.code,
        title=part.title,
        level=part.severity,
        message=one_line(f"{part.object}: {part.message}.{cost} {part.why} {part.action}"),
        file=one_line(part.file),
        object=one_line(part.object),
        field=one_line(part.field),
        line=part.line,
        help=f"{part.why} {part.action}",
    )


def validation_results(problems: Iterable[Problem], warnings: Iterable[Problem]) -> Checks:
    """Problems are errors, and warnings are warnings, on which nothing fails."""
    results = (*(_of_problem(entry, "error") for entry in problems), *(_of_problem(w, "warning") for w in warnings))
    return Checks(command="validate", results=results, failing=("error",))


def _of_problem(problem: Problem, level: Literal["warning", "error"]) -> CheckResult:
    about = ": ".join(part for part in (problem.object, problem.field, problem.message) if part)
    return CheckResult(
        rule=problem.rule,
        title=_spoken(problem.rule),
        level=level,
        message=one_line(about),
        file=one_line(problem.file),
        object=one_line(problem.object),
        field=one_line(problem.field),
        line=problem.line,
    )


def _spoken(rule: str) -> str:
    """The name of a rule in words: `Min values range` for `MinValuesRange`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", rule).capitalize()
