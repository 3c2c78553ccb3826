"""What does jobs, wherever it is."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Job = TypeVar("Job")
Result_co = TypeVar("Result_co", covariant=True)


class Workers(Protocol[Job, Result_co]):
    def run(self, jobs: Iterable[Job], report: Callable[[Job, int], None]) -> Iterator[tuple[Job, Result_co]]:
        """Each job with its result, as they end; `report` takes how many steps a job has done."""
