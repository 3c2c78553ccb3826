"""Settings of all tests: which examples property tests draw, how long a test may take, what was not tested.

And clusters of the size and unevenness that benchmarks use.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.examples import PER_TEST

NIGHTLY_FACTOR = 30
KUBERNETES_TIMEOUT = 600
"""Seconds for a test on a real API server: the first of them starts it, and waits are real."""
SKIP_LIST = "KARPOOL_SKIP_LIST"
"""The environment variable that names a file to add skipped tests to; `make test` prints it at its end."""

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=PER_TEST // 2, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "nightly",
    derandomize=False,
    deadline=None,
    max_examples=PER_TEST * NIGHTLY_FACTOR,
    print_blob=True,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
# Processes of pytest-xdist are told the width of the terminal; what commands print in tests does not depend on it.
os.environ.pop("COLUMNS", None)


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes clusters as benchmarks use them, from a number of nodes and a seed."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    from clusters import catalog, generate

    from tests.strategies import Cluster

    return lambda nodes, seed: Cluster(generate(nodes, seed), catalog())


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Let no example depend on which tests are selected.

    Hypothesis draws constants that it finds in the modules that happen to be imported, even when it is told to be
    deterministic, and has no setting against it. At night that is welcome.
    """
    if settings.get_current_profile_name() == "default":
        providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a real API server, wherever it is, and give it more time."""
    for item in items:
        if "kubernetes_programs" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.timeout(KUBERNETES_TIMEOUT))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say last, and loudly, what this machine lacks to run every test."""
    reports = [report for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple)]
    skipped = sorted((str(report.longrepr[2]).removeprefix("Skipped: "), report.nodeid) for report in reports)
    for reason in sorted({reason for reason, _ in skipped if reason.startswith("NOT TESTED")}):
        terminalreporter.write_line(reason, red=True, bold=True)
    path = os.environ.get(SKIP_LIST)
    if path and "PYTEST_XDIST_WORKER" not in os.environ:  # workers report to the process that started them
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.writelines(f"{test}: {reason}\n" for reason, test in skipped)
