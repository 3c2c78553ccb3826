"""Work side by side, in as many threads as this process has cores, that ends soon when its results are not needed."""

import os
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event
from typing import Final, TypeVar

Result = TypeVar("Result")
Wanted = Callable[[], bool]
"""Whether somebody still wants the results."""
_GLANCE: Final = 0.1
"""Seconds."""


def cores() -> int:
    """On how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(work: Callable[[int, Wanted], Result], count: int) -> list[Result]:
    """The results of work 0 up to `count`; work that goes on for long asks now and then whether it is still wanted.

    When some of it fails, or Ctrl-C comes, nothing more begins, and what has begun is told that nobody wants it.
    """
    given_up = Event()

    def wanted() -> bool:
        return not given_up.is_set()

    with ThreadPoolExecutor(cores()) as pool:
        try:
            begun = [pool.submit(work, number, wanted) for number in range(count)]
            # A signal that comes right before a wait without end is seen after it only.
            while (now := wait(begun, _GLANCE, FIRST_EXCEPTION)).not_done:
                for one in now.done:
                    one.result()
            return [one.result() for one in begun]
        except BaseException:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
