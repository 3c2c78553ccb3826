"""What each spec is expected to come to: passed, unless the checked-in list gives a reason why not."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.suites import Outcome, Result, Spec

PATH = Path(__file__).with_name("expected.toml")
USUAL_LIMIT = 300.0


@dataclass(frozen=True)
class Expected:
    not_passed: dict[str, tuple[Outcome, str]]
    """The outcome and the reason, by the name of the spec."""
    limits: tuple[tuple[re.Pattern[str], float], ...]
    """The seconds that specs may take whose names match; the first that matches counts."""
    quick: frozenset[str]
    """Specs that every run of the tests tries."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Why specs have no result yet, by their names."""
    peer_not_passed: dict[str, str] = field(default_factory=dict)
    """Why specs do not pass with Karpenter itself, by their names."""

    def limit(self, spec: Spec) -> float:
        return next((seconds for pattern, seconds in self.limits if pattern.search(spec.name)), USUAL_LIMIT)

    def reason(self, spec: Spec) -> str:
        return self.not_passed.get(spec.name, (Outcome.PASSED, ""))[1]

    def reason_without_result(self, spec: Spec) -> str:
        return self.not_run.get(spec.name, "")

    def reason_of_peer(self, spec: Spec) -> str:
        return self.peer_not_passed.get(spec.name, "")

    def outcome(self, spec: Spec) -> Outcome:
        return self.not_passed.get(spec.name, (Outcome.PASSED, ""))[0]

    def unknown(self, specs: Iterable[Spec]) -> list[str]:
        """Names of the list that no spec of its suite has."""
        specs = list(specs)
        suites, names = {spec.suite for spec in specs}, {spec.name for spec in specs}
        listed = {*self.not_passed, *self.quick, *self.not_run, *self.peer_not_passed}
        return sorted(name for name in listed if name.partition(":")[0] in suites and name not in names)

    def differences(self, results: Iterable[Result]) -> list[str]:
        """A line for each result that is not as expected."""
        return [
            f"{result.spec.name}: {result.outcome}, expected: {self.outcome(result.spec)}"
            for result in results
            if result.outcome != self.outcome(result.spec)
        ]


def read_expected(path: Path = PATH) -> Expected:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Expected(
        not_passed={
            entry["spec"]: (Outcome(entry["outcome"]), _filled(entry, "reason")) for entry in data.get("not_passed", [])
        },
        limits=tuple((re.compile(entry["specs"]), float(entry["seconds"])) for entry in data.get("limit", [])),
        not_run={entry["spec"]: _filled(entry, "reason") for entry in data.get("not_run", [])},
        peer_not_passed={entry["spec"]: _filled(entry, "reason") for entry in data.get("peer_not_passed", [])},
        quick=frozenset(_strings(data.get("quick", {}).get("specs", []))),
    )


def _filled(entry: dict[str, str], field: str) -> str:
    if not entry.get(field, "").strip():
        raise ValueError(f"{entry['spec']} has no {field}")
    return entry[field].strip()


def _strings(values: Sequence[object]) -> list[str]:
    return [str(value) for value in values]
