"""Worker processes: what they do, what they say meanwhile, and that none outlives its use."""

import os
import signal
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest

from karpool.catalog.sources import open_catalog
from karpool.virtual.compare import ScenarioSource, compare
from karpool.workers.processes import Progress, run_in_processes, worker_processes

pytestmark = pytest.mark.slow

SMALL = b"""
pools: [{metadata: {name: general}}]
workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: {base: 3, noise: {share: 0.3}}}]
length: 20m
"""


def squared(number: int, progress: Progress) -> int:
    progress(1)
    progress(2)
    return number**2


def picky(number: int, _: Progress) -> int:
    if number == 3:
        raise LookupError("three is not welcome")
    return number


def deadly(number: int, _: Progress) -> int:
    os._exit(number)


def endless(number: int, progress: Progress) -> int:
    progress(number)
    while True:
        time.sleep(60)


def nothing(_job: int, _done: int) -> None:
    """Nobody listens."""


def test_every_job_is_done_once_by_few_workers_and_each_step_is_reported() -> None:
    steps: list[tuple[int, int]] = []
    results = run_in_processes(squared, range(5), 2, lambda job, done: steps.append((job, done)))
    assert results == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}
    assert sorted(steps) == [(job, done) for job in range(5) for done in (1, 2)]
    assert not active_children()


def test_what_goes_wrong_in_a_worker_is_raised_here_with_its_traceback() -> None:
    with pytest.raises(LookupError, match="three is not welcome") as caught:
        run_in_processes(picky, range(5), 2, nothing)
    assert "in picky" in caught.value.__notes__[0]
    assert not active_children()


def test_a_worker_that_dies_is_no_mystery() -> None:
    with pytest.raises(
        ChildProcessError, match="4 worker processes ended before their run did, the last with status 7"
    ):
        run_in_processes(deadly, [7], 2, nothing)


def fragile(folder: Path, number: int, _: Progress) -> int:
    """Dies the first three times that a number is tried, if it is odd."""
    tries = len(list(folder.glob(f"{number}-*")))
    (folder / f"{number}-{tries}").touch()
    if number % 2 and tries < 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 10


def test_a_job_whose_worker_dies_is_done_by_another(tmp_path: Path) -> None:
    assert run_in_processes(partial(fragile, tmp_path), range(3), 2, nothing) == {0: 0, 1: 10, 2: 20}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["0-0", "1-0", "1-1", "1-2", "1-3", "2-0"]
    assert not active_children()


def test_a_job_that_kills_all_its_workers_keeps_no_others_from_being_done() -> None:
    with worker_processes(mortal, 2, lost=lambda _, why: why) as workers:
        found = dict(workers.run(range(3), nothing))
    assert (found[0], found[2]) == ("0", "2")
    assert found[1] == "4 worker processes ended before their run did, the last with status 9"


def mortal(number: int, _: Progress) -> str:
    if number == 1:
        os._exit(9)
    return str(number)


def test_an_interrupt_ends_workers_in_the_middle_of_their_jobs() -> None:
    def interrupt(_job: int, _done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_processes(endless, range(4), 2, interrupt)
    assert not active_children()


def test_workers_do_not_hear_interrupts_and_we_do_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    pids: list[int] = []

    def interrupt_workers(_job: int, _done: int) -> None:
        for child in active_children():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGINT)
            pids.append(child.pid)

    assert run_in_processes(squared, range(3), 1, interrupt_workers) == {0: 0, 1: 1, 2: 4}
    assert len(set(pids)) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_the_progress_of_all_runs_together_moves_while_they_run() -> None:
    reports: list[tuple[str, int, int | None]] = []
    source = ScenarioSource(SMALL, partial(open_catalog, "sample"))
    compare(source, ["default"], range(3), lambda *progress: reports.append(progress), workers=2)
    assert reports[0] == ("Simulating 3 runs", 0, 1500)
    assert [done for _, done, _ in reports] == list(range(1501))
