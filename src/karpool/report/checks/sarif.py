"""Results as SARIF 2.1.0, which code scanning services read.

A result names its file, the line where the manifest begins, and the object and field as a logical location.
The fingerprint says which results of two runs are the same.
"""

import hashlib
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from karpool import __version__
from karpool.report.checks.check_results import CheckResult, Checks

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION: Final = "2.1.0"
_LIVE: Final = "cluster"
"""What stands for a file where a live cluster was read."""


def sarif(checks: Checks) -> bytes:
    rules = {result.rule: result for result in checks.results}
    order = {rule: index for index, rule in enumerate(rules)}
    driver = {
        "name": f"karpool {checks.command}",
        "version": __version__,
        "rules": [_rule(result) for result in rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, order[result.rule]) for result in checks.results],
    }
    return msgspec.json.format(msgspec.json.encode({"$schema": SCHEMA, "version": VERSION, "runs": [run]}), indent=2)


def _rule(result: CheckResult) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": result.rule,
        "name": result.rule,
        "shortDescription": {"text": result.title},
        "defaultConfiguration": {"level": result.level},
    }
    return rule | ({"help": {"text": result.help}} if result.help else {})


def _result(result: CheckResult, index: int) -> dict[str, Any]:
    named = ".".join(part for part in (result.object, result.field) if part)
    logical = [{"fullyQualifiedName": named}] if named else []
    region = {"startLine": result.line or 1}
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(result.file)}, "region": region},
        **({"logicalLocations": logical} if logical else {}),
    }
    identity = f"{result.rule}\0{result.file}\0{result.object}\0{result.field}"
    return {
        "ruleId": result.rule,
        "ruleIndex": index,
        "level": result.level,
        "message": {"text": result.message},
        "locations": [location],
        "partialFingerprints": {"karpoolObject/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()},
    }


def _uri(file: str) -> str:
    """A file as a reference: relative below the working directory, as repositories have it."""
    if not file:
        return _LIVE
    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    return quote(path.as_posix())
