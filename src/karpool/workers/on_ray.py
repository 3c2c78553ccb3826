"""Jobs on a Ray cluster, or on a Ray of this machine's own.

The work, with all that it needs, is put into the object store once; each worker process gets it from there once,
however many jobs it does. A job that is lost, with its worker, its node or what either held, is done again.
"""

import logging
import os
import socket
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Final, Generic, TypeVar

from karpool import __version__
from karpool.wire.problems import InputError, one_line
from karpool.workers.processes import TRIES, Progress

Job = TypeVar("Job")
Result = TypeVar("Result")
LOCAL: Final = "ray"
"""The Ray that runs on this machine, or that of RAY_ADDRESS; one is started if there is none."""
_LEAST_WAITING: Final = 64
"""So many jobs wait at Ray at least, so that one that grows sees what there is to do."""
_LONGEST: Final = 300
_PATIENCE: Final = 10.0
"""Seconds."""
_OTHERS: Final = "its nodes have {}, and this is {}; install the same everywhere"
_kept: dict[str, Any] = {}
"""In a worker: the work that it got last, by the key of its sweep."""


class RayError(OSError):
    """Ray cannot be reached, or cannot do the work."""


class RayWorkers(Generic[Job, Result]):
    def __init__(
        self,
        work: Callable[[Job, Progress], Result],
        at_once: int | None,
        lost: Callable[[Job, str], Result] | None = None,
    ) -> None:
        import ray

        self._lost = lost

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self._at_once = at_once or max(_LEAST_WAITING, 4 * int(resources.get("CPU", 1)))
        stored = ray.put(work)
        self._key = stored.hex()
        self._stored = [stored]  # a list is handed on as it is: a worker that has the work does not get it again
        # We try again ourselves: Ray does so for some of what can happen, and without end where memory was short.
        self._task = ray.remote(num_cpus=1, max_retries=0)(_do)

    def run(self, jobs: Iterable[Job], report: Callable[[Job, int], None]) -> Iterator[tuple[Job, Result]]:  # noqa: ARG002 - a job is one step here
        """Each job with its result, as they end."""
        import ray

        left, running = iter(jobs), dict[Any, Job]()
        again, lost = list[Job](), Counter[Job]()
        while True:
            for job in islice(chain(_taken(again), left), self._at_once - len(running)):
                running[self._task.remote(__version__, self._key, self._stored, job)] = job
            if not running:
                return
            ended, _ = ray.wait(list(running), num_returns=1)
            for reference in ended:
                job = running[reference]
                try:
                    result = _result(reference)
                except ray.exceptions.RayError as error:
                    lost[job] += 1
                    if lost[job] < TRIES:
                        again.append(running.pop(reference))
                        continue
                    if self._lost is None:
                        raise
                    result = self._lost(job, f"it was lost {TRIES} times, the last time so: {_short(error)}")
                del running[reference]
                yield job, result


@contextmanager
def ray_workers(
    work: Callable[[Job, Progress], Result],
    place: str,
    at_once: int | None = None,
    *,
    lost: Callable[[Job, str], Result] | None = None,
) -> Iterator[RayWorkers[Job, Result]]:
    """A Ray cluster that does jobs; those that run end with the block.

    Ray ends all workers of a driver that leaves. To cancel jobs one by one is not safe: one that ends in the same
    moment ends the driver, too ("Tried to complete task that was not pending").
    """
    # It reads these when it is imported. On a busy machine its own 30 seconds are too few to start.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")
    try:
        import ray
    except ImportError:
        raise InputError.at("--on", "Ray is not there: pip install 'karpool[ray]'") from None
    try:
        _connect(ray, place)
        yield RayWorkers(work, at_once, lost)
    except (ConnectionError, ray.exceptions.RayError) as error:
        raise RayError(f"Ray at {place}: {_short(error)}") from error
    except ImportError as error:
        if not (error.name or "").startswith("karpool"):
            raise
        raise RayError(f"Ray at {place}: {_OTHERS.format('no such karpool', __version__)} ({_short(error)})") from error
    finally:
        ray.shutdown()


def _connect(ray: Any, place: str) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    if place != LOCAL:
        _join(ray, place, quiet)
        return
    address = _known_address()
    if address and ("://" in address or _answers(address)):
        _join(ray, address, quiet)
    elif os.environ.get("RAY_ADDRESS"):
        raise ConnectionError(f"nothing answers at {address or 'RAY_ADDRESS'}")
    else:
        _start(ray, quiet)


def _join(ray: Any, address: str, quiet: dict[str, Any]) -> None:
    """Connect to a cluster; what Ray warns of as well, the error says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ray.init(address, **quiet)


def _known_address() -> str:
    """Where Ray thinks that a cluster is: what RAY_ADDRESS says, or the one of this machine, which may be gone."""
    from ray._private.services import get_ray_address_from_environment

    try:
        return str(get_ray_address_from_environment("auto", None))
    except ConnectionError:
        return ""


def _answers(address: str) -> bool:
    """Whether anybody is there: Ray itself would ask for minutes, and say so all the time."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE):
            return True
    except (OSError, ValueError):
        return False


def _start(ray: Any, quiet: dict[str, Any]) -> None:
    try:
        ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except Exception as error:  # Ray has no class of its own for this
        raise RayError(f"Ray does not start on this machine: {_short(error)}") from error


def _taken(jobs: list[Job]) -> Iterator[Job]:
    while jobs:
        yield jobs.pop()


def _result(reference: Any) -> Any:
    """What a job gave or raised; an error of Ray's means that the job is lost, whatever took it away."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error


def _short(error: Exception) -> str:
    return one_line(str(error).strip().partition("\n")[0])[:_LONGEST]


def _do(version: str, key: str, stored: list[Any], job: Any) -> Any:
    """Do a job in a worker, which gets the work first if it has not got it yet."""
    import ray

    if version != __version__:
        raise RayError(_OTHERS.format(f"karpool {__version__}", version))
    if key not in _kept:
        _kept.clear()
        _kept[key] = ray.get(stored[0])
    return _kept[key](job, _nobody_watches)


def _nobody_watches(_done: int) -> None:
    pass
