"""In which order specs run, which of them side by side, and which a second time, alone.

Most specs wait most of their time, so that several control planes fit on one machine. What failed while others ran may
have failed because of them: it counts only after it was tried again with the machine for itself.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from tests.conformance.suites import Outcome, Result, Spec

ALONE = ("performance", "dra")
"""Suites that measure, or whose driver has a port that is always the same."""


class Runner(Protocol):
    """Runs specs one after the other."""

    def run(self, spec: Spec) -> Result: ...

    def close(self) -> None: ...


def longest_first(specs: Sequence[Spec], seconds: Mapping[str, float]) -> list[Spec]:
    """The order in which the last worker ends soonest; those that were never measured come first."""
    return sorted(specs, key=lambda spec: -seconds.get(spec.name, float("inf")))


def run_all(
    specs: Sequence[Spec],
    new_runner: Callable[[threading.Event], Runner],
    *,
    workers: int,
    tries: Callable[[Spec], int],
    unsure: Callable[[Result], None],
) -> Iterator[Result]:
    """The results that count, as they come. `unsure` is told of those that do not, since the spec is tried again."""
    together = [spec for spec in specs if workers > 1 and spec.suite not in ALONE]
    alone = [(spec, tries(spec)) for spec in specs if spec not in together]
    for result in _side_by_side(together, new_runner, workers):
        if result.outcome is Outcome.FAILED and tries(result.spec) > 1:
            unsure(result)
            alone.append((result.spec, tries(result.spec) - 1))
        else:
            yield result
    yield from _one_by_one(alone, new_runner, unsure)


def _side_by_side(
    specs: Sequence[Spec], new_runner: Callable[[threading.Event], Runner], workers: int
) -> Iterator[Result]:
    """The results of specs that several workers take from one queue."""
    waiting: queue.SimpleQueue[Spec] = queue.SimpleQueue()
    done: queue.SimpleQueue[Result] = queue.SimpleQueue()
    stop = threading.Event()
    for spec in specs:
        waiting.put(spec)

    def work() -> None:
        runner = new_runner(stop)
        try:
            while not stop.is_set():
                done.put(runner.run(waiting.get_nowait()))
        except queue.Empty:
            pass
        finally:
            runner.close()

    threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(min(workers, len(specs)))]
    for thread in threads:
        thread.start()
    try:
        for _ in specs:
            yield done.get()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _one_by_one(
    specs: Sequence[tuple[Spec, int]],
    new_runner: Callable[[threading.Event], Runner],
    unsure: Callable[[Result], None],
) -> Iterator[Result]:
    runner = new_runner(threading.Event())
    try:
        for spec, tries in specs:
            result = runner.run(spec)
            for _ in range(tries - 1):
                if result.outcome is not Outcome.FAILED:
                    break
                unsure(result)
                result = runner.run(spec)
            yield result
    finally:
        runner.close()
