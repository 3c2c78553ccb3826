"""One schedule: a random story with random faults, all of it from one number, and what the checker says of it."""

import random
from collections import Counter
from dataclasses import dataclass
from functools import partial

from structlog.testing import capture_logs
from tests.robustness.checker.check import check
from tests.robustness.checker.records import Json, Record, Request
from tests.robustness.checker.violations import Violation
from tests.robustness.compactor_process import LIMITS, CompactorProcess
from tests.robustness.fault_plan import draw_windows
from tests.robustness.injector import FaultInjector
from tests.robustness.lease import VirtualLease
from tests.robustness.process import Process
from tests.robustness.recorder import HistoryRecorder
from tests.robustness.replica import Replica
from tests.robustness.stories import HARM_REFRESH, KINDS, Story, draw_story, open_cluster
from tests.robustness.timelines import STORMS, Kind


@dataclass(frozen=True)
class Outcome:
    """What became of a schedule."""

    seed: int
    kind: Kind
    violations: list[Violation]
    injected: Counter[str]
    requests: int
    records: list[Record]


def run_schedule(seed: int) -> Outcome:
    """Run the schedule of a seed, and judge its history."""
    rng = random.Random(f"schedule {seed}")
    kind = rng.choice(KINDS)
    windows = draw_windows(rng, kind, STORMS[kind])
    story = draw_story(rng, kind, windows)
    cluster = open_cluster(story, seed)
    recorder = HistoryRecorder(cluster, seed, _settings(story))
    injector = FaultInjector(recorder, windows, random.Random(rng.random()))
    with capture_logs():  # the history says it all
        injector.start(_processes(story, recorder, injector, rng))
        for storm in STORMS[kind]:
            cluster.queue.at(storm.end, partial(recorder.mark, "quiet"))
            cluster.queue.at(storm.rests_until, partial(recorder.mark, "end"))
        cluster.run(story.end + 1.0)
    requests = sum(isinstance(record, Request) for record in recorder.records)
    return Outcome(seed, kind, check(recorder.records), recorder.injected, requests, recorder.records)


def _processes(story: Story, recorder: HistoryRecorder, injector: FaultInjector, rng: random.Random) -> list[Process]:
    if story.compactor is not None:
        return [CompactorProcess(recorder, injector, story.compactor, random.Random(rng.random()))]
    lease = VirtualLease(recorder)
    return [Replica(number, recorder, lease, injector) for number in range(rng.choice((1, 2)))]


def _settings(story: Story) -> Json:
    """What the checker has to know of how the controller was started."""
    settings: Json = dict(story.rates)
    if story.kind is Kind.HARMFUL:
        settings["looks"] = HARM_REFRESH
    if story.compactor is not None:
        pool = next(iter(story.compactor.node_pools.values()))
        settings |= LIMITS | {"atOnce": pool.max_in_progress}
    return settings
