"""A few specs of Karpenter's suites that take seconds each; `make conformance` runs all of them."""

from pathlib import Path

import pytest
from tests.conformance.cluster import Cluster
from tests.conformance.expected import read_expected
from tests.conformance.suites import Outcome, Spec, run_spec, specs_of

EXPECTED = read_expected()


@pytest.fixture(scope="session")
def specs(suites: Path) -> dict[str, Spec]:
    return {spec.name: spec for suite in ("regression", "disruption") for spec in specs_of(suite, suites)}


@pytest.mark.parametrize("name", sorted(EXPECTED.quick))
def test_a_spec_of_karpenter_passes(
    name: str, specs: dict[str, Spec], suites: Path, cluster: Cluster, tmp_path: Path
) -> None:
    spec, log = specs[name], tmp_path / "suite.log"
    result = run_spec(spec, suites, cluster.environment, EXPECTED.limit(spec), log)
    assert not cluster.deployment.problem
    assert result.outcome is Outcome.PASSED, f"{result.reason}; see {log} and {cluster.folder}"


def test_the_api_server_reaches_the_metrics_of_the_controllers_pod(cluster: Cluster) -> None:
    page = cluster.metrics_through_api_server()
    assert b"\nprocess_cpu_seconds_total " in page
    assert b"\ngo_gc_heap_live_bytes " in page


def test_the_list_names_specs_that_there_are(specs: dict[str, Spec]) -> None:
    assert EXPECTED.unknown(specs.values()) == []
