"""Work that is done side by side: its results in order, and an end that comes soon when nobody wants them."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep
from typing import Any

import pytest
from tests.optimization.tiny import Kind, Node, Pod, Tiny

from karpool.optimization.search import search_parts
from karpool.optimization.side_by_side import Wanted, cores, side_by_side


def test_a_process_uses_the_cores_that_it_may_run_on() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_results_are_in_order() -> None:
    assert side_by_side(lambda number, _wanted: number * number, 5) == [0, 1, 4, 9, 16]
    assert side_by_side(lambda number, _wanted: number, 0) == []


def test_when_one_fails_the_others_are_told_and_the_rest_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karpool.optimization.side_by_side.cores", lambda: 2)
    begun, second = set[int](), Event()

    def work(number: int, wanted: Wanted) -> None:
        begun.add(number)
        if number == 0:
            second.wait()
            raise ValueError("broken")
        second.set()
        while wanted():
            pass

    with pytest.raises(ValueError, match="broken"):
        side_by_side(work, 10)
    assert begun <= {0, 1, 2}  # the thread that failed may have begun with one more


def test_work_that_has_begun_ends_when_the_rest_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karpool.optimization.side_by_side.cores", lambda: 2)

    class Pool(ThreadPoolExecutor):
        def submit(self, *args: Any, **more: Any) -> Any:
            if args[1] > 0:
                raise KeyboardInterrupt
            return super().submit(*args, **more)

    def work(_number: int, wanted: Wanted) -> None:
        while wanted():
            sleep(0.001)

    monkeypatch.setattr("karpool.optimization.side_by_side.ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, 3)


def test_ctrl_c_ends_a_search_of_several_parts_long_before_its_moves_are_made() -> None:
    """Two parts: pods of each may be on one machine only, and the second machine of a part is too dear."""
    nodes = tuple(Node(1.0 + shape, (3,), (shape,), shape=shape) for shape in (0, 1) for _ in range(3))
    kinds = (Kind(0.5, (8,), 0), Kind(0.5, (8,), 1))
    problem = Tiny((Pod((1,), 0), Pod((1,), 1)), nodes, kinds, ((1, 0), (0, 1))).problem()
    calls: list[int] = []

    def watch(_done: int, _price: float) -> bool:
        if not calls:
            os.kill(os.getpid(), signal.SIGINT)
        calls.append(1)
        sleep(0.001)  # all the moves take over a minute, whatever the machine: time enough for the signal to be seen
        return True

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # SIGINT may be ignored, as under nohup
    try:
        with pytest.raises(KeyboardInterrupt):
            search_parts(
                problem,
                eviction_price=0.0,
                seed=0,
                moves=40_000_000,
                usable=problem.suits_kind,
                anew=False,
                watch=watch,
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) < 40_000  # of 80,000
