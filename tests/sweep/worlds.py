"""A world in which results follow from settings by a formula, and workers that know it."""

from collections.abc import Callable, Iterable, Iterator
from random import Random

from karpool.catalog.instance_types import Catalog
from karpool.model.objects import Objects
from karpool.sweep.trial import SweepInput, Timed, Trial, TrialResult
from karpool.virtual.compare import RunInputs
from karpool.virtual.scenario import Policy, Scenario
from karpool.wire.duration import parse_duration

NOWHERE = SweepInput("nowhere", RunInputs(Scenario(policies={"default": Policy()}), Catalog(()), Objects()), "default")


def result_of(trial: Trial) -> TrialResult:
    """A minute of consolidateAfter costs a dollar and saves an eviction; a fee costs, and saves nothing."""
    values = dict(trial.setting)
    delta = parse_duration(values.get("consolidateAfter", "0s")).delta
    assert delta is not None
    minutes, fee = delta.total_seconds() / 60, float(values.get("nodeFee", "0"))
    chance = Random(f"{trial.seed}").random()
    return TrialResult(
        cost=100 + minutes + 5 * fee + chance,
        evictions=round(200 - minutes + 2 * chance),
        pending_pod_seconds=0.0,
        nodes_launched=3,
        node_hours=24.0,
        pods_at_end=10,
        pending_pods_at_end=0,
        unpriced_node_hours=0.0,
        seconds=3600.0,
    )


class Workers:
    """Workers that end trials in any order, and are interrupted after `most`."""

    def __init__(self, *, shuffled: Random | None = None, most: int | None = None) -> None:
        self.done: list[Trial] = []
        self.shuffled = shuffled
        self.most = most

    def run(self, jobs: Iterable[Trial], _report: Callable[[Trial, int], None]) -> Iterator[tuple[Trial, Timed]]:
        left = list(jobs)
        if self.shuffled is not None:
            self.shuffled.shuffle(left)
        for trial in left:
            if len(self.done) == self.most:
                raise KeyboardInterrupt
            self.done.append(trial)
            yield trial, Timed(result_of(trial), 0.5)
