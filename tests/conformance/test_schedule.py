"""Which specs run side by side, and what counts of those that failed there; runners stand in for clusters."""

import threading
from collections.abc import Callable, Mapping

import pytest
from tests.conformance.schedule import longest_first, run_all
from tests.conformance.suites import Outcome, Result, Spec

ONE, TWO, THREE = (Spec("disruption", "Disruption", text) for text in ("one", "two", "three"))
MEASURED = Spec("performance", "Performance", "wide")


class Clusters:
    """Makes runners, and knows which specs ran in which of them, and how many were open at once."""

    def __init__(self, outcomes: Mapping[Spec, list[Outcome]], during: Callable[[], object] = lambda: None) -> None:
        self.ran: list[list[Spec]] = []
        self.most = 0
        self._outcomes = outcomes
        self._open = 0
        self._during = during
        self._lock = threading.Lock()

    def new(self, _: threading.Event) -> "Clusters.Runner":
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
            self.ran.append([])
            return Clusters.Runner(self, self.ran[-1])

    class Runner:
        def __init__(self, clusters: "Clusters", ran: list[Spec]) -> None:
            self._clusters = clusters
            self._ran = ran

        def run(self, spec: Spec) -> Result:
            self._ran.append(spec)
            self._clusters._during()
            outcomes = self._clusters._outcomes.get(spec, [])
            return Result(spec, outcomes.pop(0) if outcomes else Outcome.PASSED, 1.0)

        def close(self) -> None:
            self._clusters._open -= 1


def run(clusters: Clusters, *specs: Spec, workers: int, tries: int = 2) -> tuple[dict[Spec, Outcome], list[Spec]]:
    unsure: list[Spec] = []
    found = run_all(
        specs, clusters.new, workers=workers, tries=lambda _: tries, unsure=lambda result: unsure.append(result.spec)
    )
    return {result.spec: result.outcome for result in found}, unsure


def test_several_workers_run_at_once_and_every_spec_has_one_result() -> None:
    clusters = Clusters({}, during=threading.Barrier(2, timeout=60).wait)
    specs = [Spec("disruption", "Disruption", str(number)) for number in range(4)]
    outcomes, unsure = run(clusters, *specs, workers=2)
    assert outcomes == dict.fromkeys(specs, Outcome.PASSED)
    assert unsure == []
    assert sorted(map(len, clusters.ran)) == [0, 2, 2]


def test_what_fails_beside_others_is_tried_again_alone_before_it_counts() -> None:
    clusters = Clusters({TWO: [Outcome.FAILED]})
    outcomes, unsure = run(clusters, ONE, TWO, THREE, workers=2)
    assert outcomes == dict.fromkeys((ONE, TWO, THREE), Outcome.PASSED)
    assert unsure == [TWO]
    assert clusters.ran[-1] == [TWO]


def test_what_fails_alone_too_has_failed() -> None:
    clusters = Clusters({TWO: [Outcome.FAILED, Outcome.FAILED]})
    assert run(clusters, ONE, TWO, workers=2)[0] == {ONE: Outcome.PASSED, TWO: Outcome.FAILED}


def test_what_is_expected_to_fail_is_tried_once() -> None:
    clusters = Clusters({ONE: [Outcome.FAILED]})
    assert run(clusters, ONE, workers=2, tries=1) == ({ONE: Outcome.FAILED}, [])


def test_what_measures_runs_when_nothing_else_does() -> None:
    clusters = Clusters({})
    run(clusters, MEASURED, ONE, TWO, workers=2)
    assert clusters.ran[-1] == [MEASURED]
    assert clusters.most <= 2


def test_one_worker_keeps_the_order_and_tries_again_at_once() -> None:
    clusters = Clusters({ONE: [Outcome.FAILED]})
    run(clusters, ONE, TWO, workers=1)
    assert clusters.ran == [[ONE, ONE, TWO]]


@pytest.mark.parametrize("closed_after", [0, 1])
def test_who_stops_to_listen_ends_the_workers(closed_after: int) -> None:
    clusters = Clusters({})
    results = run_all([ONE, TWO, THREE], clusters.new, workers=2, tries=lambda _: 2, unsure=lambda _: None)
    for _ in range(closed_after):
        next(results)
    results.close()
    assert clusters._open == 0


def test_the_longest_spec_begins_first_and_an_unknown_one_before_it() -> None:
    assert longest_first([ONE, TWO, THREE], {ONE.name: 10.0, THREE.name: 700.0}) == [TWO, THREE, ONE]
