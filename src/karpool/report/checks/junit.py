"""Results as JUnit XML, which nearly every CI system shows.

Each result is a test case: one that failed if the command fails on it, else one that passed with a sentence. Each rule
that found nothing is one that passed.
"""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from karpool.report.checks.check_results import CheckResult, Checks

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(checks: Checks) -> bytes:
    failed = str(sum(result.level in checks.failing for result in checks.results))
    total = str(len(checks.results) + max(len(checks.passed), 0 if checks.results else 1))
    counts = {"tests": total, "failures": failed, "errors": "0"}
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": f"karpool {checks.command}", **counts})
    for result in checks.results:
        _case(suite, checks, result)
    for rule in checks.passed or (() if checks.results else ("everything",)):
        SubElement(suite, "testcase", {"classname": f"karpool.{checks.command}", "name": rule})
    indent(suites)
    written: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return written


def _case(suite: Element, checks: Checks, result: CheckResult) -> None:
    named = " ".join(part for part in (result.rule, result.object, result.field) if part)
    where = {"file": _text(result.file)} if result.file else {}
    if result.line is not None:
        where["line"] = str(result.line)
    case = SubElement(suite, "testcase", {"classname": f"karpool.{checks.command}", "name": _text(named), **where})
    if result.level in checks.failing:
        said = SubElement(case, "failure", {"type": result.level, "message": _text(result.message)})
    else:
        said = SubElement(case, "system-out")
    place = f"{result.file}:{result.line}" if result.line else result.file
    said.text = _text(f"{place}: {result.message}" if result.file else result.message)


def _text(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
