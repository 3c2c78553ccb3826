"""A sweep: batches of settings, seed after seed, and an end to those that are hopeless.

What comes out depends on the inputs, the method and the seeds only. Where the trials run, in which order they end, and
which of them were known from a file, makes no difference.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from karpool.sweep.dimensions import Setting
from karpool.sweep.methods import SearchMethod
from karpool.sweep.points import Point, estimates_of, hopeless, numbers_of, waiting_share, with_front
from karpool.sweep.results_file import ResultsFile
from karpool.sweep.trial import SweepInput, Timed, Trial, TrialResult
from karpool.virtual.compare import CHUNKS
from karpool.workers.protocol import Workers

ReportProgress = Callable[[str, int, int | None], None]
_FIRST_SEEDS: Final = 3
"""With fewer, an interval says nothing."""


class Sweep:
    """The results so far; `run` has more of them."""

    def __init__(
        self,
        inputs: Sequence[SweepInput],
        seeds: Sequence[int],
        *,
        report: ReportProgress,
        file: ResultsFile | None = None,
        stops_hopeless: bool = True,
    ) -> None:
        self.inputs = inputs
        self.seeds = seeds
        self.results: dict[Trial, Timed] = {}
        self.settings: dict[Setting, None] = {}
        """All settings so far, in the order in which they were asked for."""
        self._file = file
        self._report = report
        self._stops_hopeless = stops_hopeless
        self._stopped: set[Setting] = set()

    def run(self, method: SearchMethod, workers: "Workers[Trial, Timed]") -> None:
        """Try all that a method asks for."""
        while batch := method.ask():
            self.settings.update(dict.fromkeys(batch))
            self._try(batch, workers)
            method.tell({setting: self._objectives(setting) for setting in batch})

    def points(self) -> list[Point]:
        """What is known, of settings of which there is at least one seed."""
        known = [(number, setting, self._by_seed(setting)) for number, setting in enumerate(self.settings, 1)]
        return with_front(
            [
                Point(
                    number,
                    setting,
                    len(results),
                    estimates_of(numbers_of(results)),
                    waiting_share(results),
                    stopped=setting in self._stopped,
                )
                for number, setting, results in known
                if results
            ]
        )

    @property
    def cpu_seconds(self) -> float:
        """What all trials took of processors, also those that were known."""
        return sum(timed.cpu_seconds for timed in self.results.values())

    def _objectives(self, setting: Setting) -> tuple[float, float]:
        found = estimates_of(numbers_of(self._by_seed(setting)))
        return found["cost"].mean, found["evictions"].mean

    def _by_seed(self, setting: Setting) -> list[list[TrialResult]]:
        """The results of each seed that all inputs have, up to the first that is missing."""
        found: list[list[TrialResult]] = []
        for seed in self.seeds:
            trials = [Trial(setting, number, seed) for number in range(len(self.inputs))]
            if not all(trial in self.results for trial in trials):
                break
            found.append([self.results[trial].result for trial in trials])
        return found

    def _try(self, batch: Sequence[Setting], workers: "Workers[Trial, Timed]") -> None:
        done, alive = 0, list(batch)
        while done < len(self.seeds) and alive:
            until = min(len(self.seeds), max(_FIRST_SEEDS, 2 * done)) if self._stops_hopeless else len(self.seeds)
            seeds = self.seeds[done:until]
            inputs = range(len(self.inputs))
            self._do(
                [Trial(setting, number, seed) for seed in seeds for setting in alive for number in inputs], workers
            )
            done = until
            if done < len(self.seeds):
                alive = self._with_hope(alive)

    def _with_hope(self, alive: Sequence[Setting]) -> list[Setting]:
        """The settings that go on; the others are compared with all that were ever tried."""
        numbers = {setting: numbers_of(self._by_seed(setting)) for setting in self.settings}
        tried = {setting: entry for setting, entry in numbers.items() if entry["cost"]}
        lost = {one for one in alive if hopeless(tried[one], [entry for name, entry in tried.items() if name != one])}
        self._stopped |= lost
        return [setting for setting in alive if setting not in lost]

    def _do(self, trials: Iterable[Trial], workers: "Workers[Trial, Timed]") -> None:
        known = {} if self._file is None else self._file.known
        wanted = [trial for trial in trials if trial not in self.results]
        self.results.update({trial: known[trial] for trial in wanted if trial in known})
        left = [trial for trial in wanted if trial not in known]
        steps = dict.fromkeys(left, 0)

        def stepped(trial: Trial, chunk: int) -> None:
            steps[trial] = chunk
            text = f"Trying {len(self.settings)} settings, {len(self.results)} trials done"
            self._report(text, sum(steps.values()), len(left) * CHUNKS)

        for trial, timed in workers.run(left, stepped):
            self.results[trial] = timed
            if self._file is not None:
                self._file.add(trial, timed)
            stepped(trial, CHUNKS)
