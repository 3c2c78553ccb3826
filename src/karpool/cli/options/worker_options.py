"""Where many jobs run: in processes of this machine, or on a Ray cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from karpool.cli.options.input_options import with_options
from karpool.cli.options.option_types import Whole
from karpool.optimization.side_by_side import cores
from karpool.wire.problems import InputError

if TYPE_CHECKING:
    from karpool.workers.processes import Progress
    from karpool.workers.protocol import Workers

Job = TypeVar("Job")
Result = TypeVar("Result")
R = TypeVar("R")
LOCAL = "local"


class Where(NamedTuple):
    """Where jobs run, and how many at once; None: one a core."""

    place: str = LOCAL
    number: int | None = None

    @property
    def local(self) -> bool:
        return self.place == LOCAL


def worker_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command `--on` and `--workers`; it gets what they say as `where`."""

    @wraps(command)
    def with_where(*args: Any, place: str, workers: int | None, **rest: Any) -> R:
        if place not in (LOCAL, "ray") and not place.startswith("ray://"):
            raise InputError.at("--on", f"{place!r} is no place to run; write local, ray, or ray://HOST:PORT")
        return command(*args, where=Where(place, workers), **rest)

    return with_options(with_where, _OPTIONS)


_OPTIONS = (
    click.option(
        "--on",
        "place",
        metavar="WHERE",
        default=LOCAL,
        help="Run on this machine (local), or on a Ray cluster (ray, ray://HOST:PORT).",
    ),
    click.option(
        "--workers",
        metavar="N",
        type=Whole(min=1, max=1024),
        help="How many jobs run at once.  [default: one a core]",
    ),
)


@contextmanager
def workers_at(
    where: Where,
    work: "Callable[[Job, Progress], Result]",
    jobs: int | None = None,
    *,
    lost: "Callable[[Job, str], Result] | None" = None,
) -> "Iterator[Workers[Job, Result]]":
    """Workers that do jobs until the block ends; `jobs`: no more of them are needed.

    A job whose worker dies is given to another, three times. `lost` has its result after that, instead of an error.
    """
    if where.local:
        from karpool.optimization.warmup import warm_up
        from karpool.workers.processes import worker_processes

        warm_up()  # so that the workers find the kernels compiled
        number = where.number or cores()
        needed = number if jobs is None else max(1, min(number, jobs))
        with worker_processes(work, needed, lost=lost) as processes:
            yield processes
        return
    from karpool.workers.on_ray import ray_workers

    with ray_workers(work, where.place, where.number, lost=lost) as cluster:
        yield cluster
