"""Worker processes that share jobs, say how far they are, and end as soon as nobody waits for them.

A pool of the standard library hears of finished jobs only, and on Ctrl-C waits for all that are under way.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from traceback import format_exc
from typing import Final, Generic, NamedTuple, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
Far = Callable[[int], None]
"""Is told how many steps of a job are done."""
_PROCESSES: Final = get_context("spawn")


class _Step(NamedTuple):
    done: int


class _Done(NamedTuple, Generic[Result]):
    result: Result


class _Failed(NamedTuple):
    error: Exception


def share_out(
    work: Callable[[Job, Far], Result], jobs: Sequence[Job], workers: int, heard: Callable[[Job, int], None]
) -> dict[Job, Result]:
    """Do each job in one of the processes; `work` is pickled, and `heard` learns how many steps a job has done."""
    left, found = deque(jobs), dict[Job, Result]()
    with _crew(work, min(workers, len(jobs))) as idle:
        busy = dict[object, _Worker[Job, Result]]()
        while left or busy:
            while left and idle:
                worker = idle.pop()
                worker.give(left.popleft())
                busy[worker.connection] = worker
            for ready in wait([worker.connection for worker in busy.values()]):
                worker = busy[ready]
                match worker.hear():
                    case _Step(done):
                        heard(worker.job, done)
                    case _Failed(error):
                        raise error
                    case _Done(result):
                        found[worker.job] = result
                        idle.append(busy.pop(ready))
    return found


class _Worker(Generic[Job, Result]):
    """A process, and the job that it is at."""

    job: Job

    def __init__(self, work: Callable[[Job, Far], Result]) -> None:
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(target=_serve, args=(work, theirs), daemon=True)
        self.process.start()
        theirs.close()  # else the end of the process would not be heard

    def give(self, job: Job) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # the next `hear` says that the process has ended
            self.connection.send(job)

    def hear(self) -> _Step | _Done[Result] | _Failed:
        try:
            message: _Step | _Done[Result] | _Failed = self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            status = self.process.exitcode
            raise ChildProcessError(f"a worker process ended with status {status} before its run did") from None
        return message


@contextmanager
def _crew(work: Callable[[Job, Far], Result], number: int) -> Iterator[list[_Worker[Job, Result]]]:
    """So many workers; at the end they are stopped, wherever they are."""
    crew: list[_Worker[Job, Result]] = []
    try:
        with _interrupts_ignored():
            crew += (_Worker(work) for _ in range(number))
        yield crew.copy()
    finally:
        for worker in crew:
            worker.process.terminate()
        for worker in crew:
            worker.process.join()
            worker.connection.close()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that start meanwhile ignore Ctrl-C for good: a terminal sends it to all, and we stop them ourselves."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(work: Callable[[Job, Far], Result], connection: Connection) -> None:
    """The life of a worker: job after job, until whoever gives them stops it or is gone."""
    with suppress(EOFError, ConnectionError):
        while True:
            connection.send(_answer(work, connection.recv(), connection))


def _answer(work: Callable[[Job, Far], Result], job: Job, connection: Connection) -> _Done[Result] | _Failed:
    try:
        return _Done(work(job, lambda done: connection.send(_Step(done))))
    except Exception as error:  # noqa: BLE001 - whoever waits for the job should hear of any
        error.add_note(format_exc())
        return _Failed(error)
