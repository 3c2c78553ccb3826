"""Worker processes that share jobs, report progress, and end as soon as their results are not needed.

A job whose process dies, as for want of memory, is done again by another one. A pool of the standard library reports
finished jobs only, and on Ctrl-C waits for all that are running.
"""

import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from traceback import format_exc
from typing import Final, Generic, NamedTuple, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
Progress = Callable[[int], None]
"""Takes how many steps of a job are done."""
Lost = Callable[[Job, str], Result]
"""The result of a job whose workers died, again and again, and how."""
_PROCESSES: Final = get_context("spawn")
TRIES: Final = 4
"""How many processes may die over a job, the first among them."""


class _Step(NamedTuple):
    done: int


class _Done(NamedTuple, Generic[Result]):
    result: Result


class _Failed(NamedTuple):
    error: Exception


class _Died(NamedTuple):
    why: str


class WorkerProcesses(Generic[Job, Result]):
    """Processes that wait for jobs until their `with` block ends; none of them reads its inputs twice."""

    def __init__(
        self,
        workers: "list[_Worker[Job, Result]]",
        start: "Callable[[], _Worker[Job, Result]]",
        lost: "Lost[Job, Result] | None",
    ) -> None:
        self._workers = workers
        self._start = start
        self._lost = lost

    def run(self, jobs: Iterable[Job], report: Callable[[Job, int], None]) -> Iterator[tuple[Job, Result]]:
        """Each job with its result, as they end; `report` takes how many steps a job has done."""
        left, idle = deque(jobs), self._workers.copy()
        busy = dict[object, _Worker[Job, Result]]()
        died = Counter[Job]()
        while left or busy:
            while left and idle:
                worker = idle.pop()
                worker.send(left.popleft())
                busy[worker.connection] = worker
            for ready in wait([worker.connection for worker in busy.values()]):
                worker = busy[ready]
                match worker.receive():
                    case _Died(why):
                        del busy[ready]
                        idle.append(self._another(worker))
                        died[worker.job] += 1
                        if died[worker.job] < TRIES:
                            left.appendleft(worker.job)
                        elif self._lost is None:
                            raise ChildProcessError(why)
                        else:
                            yield worker.job, self._lost(worker.job, why)
                    case _Step(done):
                        report(worker.job, done)
                    case _Failed(error):
                        raise error
                    case _Done(result):
                        idle.append(busy.pop(ready))
                        yield worker.job, result

    def _another(self, dead: "_Worker[Job, Result]") -> "_Worker[Job, Result]":
        """A process in the place of one that died."""
        dead.connection.close()
        self._workers.remove(dead)
        self._workers.append(self._start())
        return self._workers[-1]


def run_in_processes(
    work: Callable[[Job, Progress], Result], jobs: Sequence[Job], workers: int, report: Callable[[Job, int], None]
) -> dict[Job, Result]:
    """Do each job in one of the processes; `work` is pickled, and `report` takes how many steps a job has done."""
    with worker_processes(work, min(workers, len(jobs))) as running:
        return dict(running.run(jobs, report))


class _Worker(Generic[Job, Result]):
    job: Job

    def __init__(self, work: Callable[[Job, Progress], Result]) -> None:
        self.connection, theirs = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(target=_serve, args=(work, theirs), daemon=True)
        self.process.start()
        theirs.close()  # else the end of the process would not be seen

    def send(self, job: Job) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # the next `receive` says that the process has ended
            self.connection.send(job)

    def receive(self) -> _Step | _Done[Result] | _Failed | _Died:
        try:
            message: _Step | _Done[Result] | _Failed = self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            status = self.process.exitcode
            return _Died(f"{TRIES} worker processes ended before their run did, the last with status {status}")
        return message


@contextmanager
def worker_processes(
    work: Callable[[Job, Progress], Result], number: int, *, lost: "Lost[Job, Result] | None" = None
) -> Iterator[WorkerProcesses[Job, Result]]:
    """So many processes that do jobs; they end with the block, in the middle of their jobs if need be."""
    workers: list[_Worker[Job, Result]] = []

    def start() -> _Worker[Job, Result]:
        with _interrupts_ignored():
            return _Worker(work)

    try:
        workers += (start() for _ in range(number))
        yield WorkerProcesses(workers, start, lost)
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
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


def _serve(work: Callable[[Job, Progress], Result], connection: Connection) -> None:
    """Run job after job in a worker, until its parent terminates it or ends."""
    with suppress(EOFError, ConnectionError):
        while True:
            connection.send(_answer(work, connection.recv(), connection))


def _answer(work: Callable[[Job, Progress], Result], job: Job, connection: Connection) -> _Done[Result] | _Failed:
    try:
        return _Done(work(job, lambda done: connection.send(_Step(done))))
    except Exception as error:  # noqa: BLE001 - the parent raises it again
        error.add_note(format_exc())
        return _Failed(error)
