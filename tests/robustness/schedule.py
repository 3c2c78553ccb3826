"""One schedule: a random story with random faults, all of it from one number, and what the checker says of it."""

import random
from collections import Counter
from dataclasses import dataclass

from structlog.testing import capture_logs
from tests.robustness.checker.check import check
from tests.robustness.checker.records import Record, Request
from tests.robustness.checker.violations import Violation
from tests.robustness.fault_plan import draw_windows
from tests.robustness.injector import FaultInjector
from tests.robustness.lease import VirtualLease
from tests.robustness.recorder import HistoryRecorder
from tests.robustness.replica import Replica
from tests.robustness.stories import BUSY, END, draw_rates, draw_story, limit_rates, open_cluster

FIRST_FAULT = 90.0


@dataclass(frozen=True)
class Outcome:
    """What became of a schedule."""

    seed: int
    violations: list[Violation]
    injected: Counter[str]
    requests: int
    records: list[Record]


def run_schedule(seed: int) -> Outcome:
    """Run the schedule of a seed, and judge its history."""
    rng = random.Random(f"schedule {seed}")
    windows = draw_windows(rng, FIRST_FAULT, BUSY)
    story = draw_story(rng, windows)
    cluster = open_cluster(story, seed)
    rates = draw_rates(rng)
    limit_rates(cluster, rates)
    recorder = HistoryRecorder(cluster, seed, rates)
    injector = FaultInjector(recorder, windows, random.Random(rng.random()))
    lease = VirtualLease(recorder)
    with capture_logs():
        replicas = [Replica(number, recorder, lease, injector) for number in range(rng.choice((1, 2)))]
    injector.start(replicas)
    cluster.queue.at(BUSY, lambda: recorder.mark("quiet"))
    with capture_logs():  # the history says it all
        cluster.run(END)
    recorder.mark("end")
    requests = sum(isinstance(record, Request) for record in recorder.records)
    return Outcome(seed, check(recorder.records), recorder.injected, requests, recorder.records)
