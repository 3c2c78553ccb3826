"""What `karpool lint` found, as a document for programs."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal

from msgspec import field

from karpool.lint.finding import Finding, Rule
from karpool.model.reading.loading import Origin
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.formatting import HOURS_PER_MONTH


class FindingPart(DocumentPart, frozen=True, kw_only=True):
    """A finding: what is so, why that is bad, what to do, and what it costs.

    The cost is None where it is not known, and `about_money` is false where there is none to know.
    """

    code: str
    severity: Literal["warning", "error"]
    title: str
    file: str
    line: int | None
    object: str
    field: str
    message: str
    why: str
    action: str
    about_money: bool
    cost_per_hour: float | None
    cost_per_month: float | None


class LintDocument(DocumentPart, frozen=True, kw_only=True):
    """Everything that was found, in the order of the rules; the sum of all costs would count some money twice."""

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["Lint"] = "Lint"
    time: datetime
    rules: int
    findings: tuple[FindingPart, ...]
    warnings: tuple[str, ...] = field(default=())
    """What the input lacks, so that the findings may mislead."""


def finding_part(rule: Rule, finding: Finding, cost: float | None, origin: Origin | None) -> FindingPart:
    severity: Literal["warning", "error"] = "error" if rule.severity == "error" else "warning"
    return FindingPart(
        code=rule.code.value,
        severity=severity,
        title=rule.title,
        file="" if origin is None else origin.file,
        line=None if origin is None else origin.line,
        object=finding.object,
        field=finding.field,
        message=finding.message,
        why=rule.why,
        action=rule.action,
        about_money=finding.about_money,
        cost_per_hour=cost,
        cost_per_month=None if cost is None else cost * HOURS_PER_MONTH,
    )


def priced(
    found: Iterable[tuple[Rule, Finding]],
    per_hour: Callable[[Finding], float | None],
    origin_of: Callable[[Finding], Origin | None],
) -> tuple[FindingPart, ...]:
    """Findings with what they cost and where they were read."""
    return tuple(finding_part(rule, finding, per_hour(finding), origin_of(finding)) for rule, finding in found)
