"""Work beside the decisions: its result comes back as a task, and a failure stops nothing."""

import threading

from structlog.testing import capture_logs

from karpool.operator.side_work import SideWork
from karpool.operator.task_queue import TaskQueue


class Worker:
    """Side work, and what came of it."""

    def __init__(self) -> None:
        self.queue = TaskQueue()
        self.woken = threading.Event()
        self.results: list[object] = []
        self.beside = SideWork(self.queue, self.woken.set)

    def done(self, result: object, seconds: float) -> None:
        assert seconds >= 0
        self.results.append(result)

    def wait(self) -> None:
        assert self.woken.wait(30)
        self.woken.clear()


def run_due(queue: TaskQueue) -> None:
    for task in queue.due():
        task()


def test_the_result_is_handed_over_by_the_queue_and_not_by_the_thread() -> None:
    worker, begun, go_on = Worker(), threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert go_on.wait(30)
        return "answer"

    worker.beside(work, worker.done)
    assert begun.wait(30)
    run_due(worker.queue)
    assert worker.results == []
    go_on.set()
    worker.wait()
    assert worker.results == []
    run_due(worker.queue)
    assert worker.results == ["answer"]


def test_work_that_fails_is_logged_and_gives_nothing() -> None:
    def work() -> str:
        raise ZeroDivisionError

    worker = Worker()
    with capture_logs() as logs:
        worker.beside(work, worker.done)
        worker.wait()
    run_due(worker.queue)
    assert worker.results == [None]
    assert [line["event"] for line in logs] == ["work beside the decisions failed"]


def test_many_threads_can_add_tasks() -> None:
    worker, ended = Worker(), []
    threads = [
        threading.Thread(target=lambda: [worker.queue.after(0, lambda: ended.append(1)) for _ in range(200)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run_due(worker.queue)
    assert len(ended) == 1600
