"""Settings of all tests: property tests are the same on every run, and never fail for being slow; gaps are named."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says last, and loudly, what this machine lacks to run every test."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", []))
    reasons = {str(longrepr[2]).removeprefix("Skipped: ") for longrepr in skipped if isinstance(longrepr, tuple)}
    for reason in sorted(reason for reason in reasons if reason.startswith("NOT TESTED")):
        terminalreporter.write_line(reason, red=True, bold=True)
