"""Karpenter's end-to-end suites: which specs they have, and one spec run alone."""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.conformance.performance import Phase, read_reports

SUITES = ("regression", "disruption", "performance", "dra")
GRACE = 5
"""Seconds for a spec, and then for its cleaning up, once its time is over."""
PATIENCE = 60
"""Seconds until a suite that does not end by itself is killed."""
POLL = 5
"""Seconds between looks whether a spec is hopeless."""


@dataclass(frozen=True)
class Spec:
    suite: str
    title: str
    """The first word of what a suite says of itself; a focus has to begin with it."""
    text: str

    @property
    def name(self) -> str:
        return f"{self.suite}: {self.text}"

    @property
    def focus(self) -> str:
        return f"^{re.escape(self.title)} {re.escape(self.text)}$"


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    spec: Spec
    outcome: Outcome
    seconds: float
    reason: str = ""
    """The first lines of what the spec says when it did not pass."""
    phases: tuple[Phase, ...] = ()
    """What the performance suite measured."""


def specs_of(suite: str, programs: Path) -> list[Spec]:
    """The specs of a suite, always in the same order."""
    report, _, printed = _run(suite, programs, {}, PATIENCE, "--ginkgo.dry-run", "--ginkgo.seed=1")
    if report is None:
        raise ValueError(f"the suite {suite} does not list its specs: {printed[-500:]}")
    title = report["SuiteDescription"]
    return [Spec(suite, title, _text(spec)) for spec in _its(report)]


def run_spec(
    spec: Spec,
    programs: Path,
    environment: Mapping[str, str],
    limit: float,
    log: Path,
    *,
    hopeless: Callable[[], bool] = lambda: False,
) -> Result:
    """Run one spec alone, with everything it prints in a log, until it is known to be hopeless."""
    began = time.monotonic()
    flags = (
        f"--ginkgo.focus={spec.focus}",
        f"--ginkgo.timeout={limit:.0f}s",
        f"--ginkgo.grace-period={GRACE}s",
        "--ginkgo.v",
        "--ginkgo.no-color",
    )
    report, phases, printed = _run(spec.suite, programs, environment, limit + PATIENCE, *flags, hopeless=hopeless)
    seconds = time.monotonic() - began
    log.write_text(printed, encoding="utf-8")
    if report is None and hopeless():
        return Result(spec, Outcome.FAILED, seconds, "the suite was ended", phases)
    if report is None:
        ended = seconds < limit + PATIENCE
        reason = "the suite wrote no report" if ended else f"the suite did not end within {limit + PATIENCE:.0f} s"
        return Result(spec, Outcome.FAILED, seconds, reason, phases)
    ran = [found for found in _its(report) if _text(found) == spec.text and found["State"] != "pending"]
    ran = [found for found in ran if found["NumAttempts"]] or ran
    if not ran:
        return Result(spec, Outcome.FAILED, seconds, "the suite did not run it")
    return Result(spec, _outcome(ran[0]["State"]), seconds, _reason(ran[0]), phases)


def _run(
    suite: str,
    programs: Path,
    environment: Mapping[str, str],
    patience: float,
    *flags: str,
    hopeless: Callable[[], bool] = lambda: False,
) -> tuple[dict[str, Any] | None, tuple[Phase, ...], str]:
    """The report of a suite, if it wrote one in time, what it measured, and all that it printed."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        report, output = Path(temporary) / "report.json", Path(temporary) / "output"
        command = [str(programs / suite), f"--ginkgo.json-report={report}", "-test.timeout=0", *flags]
        with output.open("wb") as sink:
            process = subprocess.Popen(  # noqa: S603 - a program of our own choice
                command,
                cwd=temporary,
                env=os.environ | {"OUTPUT_DIR": temporary} | environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        try:
            deadline = time.monotonic() + patience
            while process.poll() is None and time.monotonic() < deadline and not hopeless():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(POLL, max(0.0, deadline - time.monotonic())))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed, phases = output.read_text(encoding="utf-8", errors="replace"), read_reports(Path(temporary))
        try:
            return json.loads(report.read_text(encoding="utf-8"))[0], phases, printed
        except (OSError, ValueError):
            return None, phases, printed


def _its(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [spec for spec in report["SpecReports"] or [] if spec["LeafNodeType"] == "It"]


def _text(spec: Mapping[str, Any]) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])


def _outcome(state: str) -> Outcome:
    match state:
        case "passed":
            return Outcome.PASSED
        case "skipped":
            return Outcome.SKIPPED
        case _:
            return Outcome.FAILED


def _reason(spec: Mapping[str, Any]) -> str:
    """What failed, where: the message, and the last thing the spec was waiting for when its time was over."""
    failure = spec.get("Failure") or {}
    message = " ".join(failure.get("Message", "").split())
    progress = failure.get("ProgressReport") or {}
    step = progress.get("CurrentStepText", "")
    waiting = [f"while {step}"] if step else []
    place = failure.get("FailureNodeLocation") if not failure.get("Location") else failure["Location"]
    where = f"{Path(place['FileName']).name}:{place['LineNumber']}: " if place and place.get("FileName") else ""
    return where + "; ".join([message, *waiting])[:600] if message else ""
