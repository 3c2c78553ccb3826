"""Pods of which a source says when they began and ended, told to an observer in the order of time."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Literal

from msgspec.structs import replace

from karpool.model.pod import Pod, PodStatus
from karpool.recording.observer import Observer
from karpool.wire.objects import Condition


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A pod as it is when it begins; times are from the start of the recording on."""

    pod: Pod
    born: timedelta
    ran: timedelta | None = None
    """When it was on its node and ready; None if it never was."""
    ended: timedelta | None = None
    """When it was gone; None if it is there until the end."""
    phase: Literal["Succeeded", "Failed", ""] = ""
    """Succeeded or Failed, if it ended by itself."""


@dataclass(frozen=True, slots=True)
class LifetimeStep:
    """Something to tell, and when it happened."""

    at: timedelta
    tell: Callable[[], object]


@dataclass(order=True, slots=True)
class _Due:
    at: timedelta
    order: int
    tell: Callable[[], object] = field(compare=False)


def steps(lives: Iterable[Lifetime], observer: Observer, start: datetime) -> Iterator[LifetimeStep]:
    """What happens to pods, in the order of time; `lives` come in the order in which they were born."""
    coming = iter(lives)
    following = next(coming, None)
    due: list[_Due] = []
    order = count()
    while following is not None or due:
        if following is not None and (not due or following.born <= due[0].at):
            life, following = following, next(coming, None)
            if life.ran is not None:
                heapq.heappush(due, _Due(life.ran, next(order), partial(_runs, life, observer, start)))
            if life.ended is not None:
                ended = max(life.ended, life.ran or life.ended)
                heapq.heappush(due, _Due(ended, next(order), partial(_ends, life, observer, start, ended)))
            yield LifetimeStep(life.born, partial(_born, life, observer, start))
        else:
            next_due = heapq.heappop(due)
            yield LifetimeStep(next_due.at, next_due.tell)


def _born(life: Lifetime, observer: Observer, start: datetime) -> None:
    now = start + life.born
    meta = replace(life.pod.metadata, creation_timestamp=now)
    spec = replace(life.pod.spec, node_name="")
    observer.saw("Pod", Pod(metadata=meta, spec=spec, status=PodStatus(phase="Pending")), now)


def _runs(life: Lifetime, observer: Observer, start: datetime) -> None:
    now = start + (life.ran or life.born)
    ready = Condition(type="Ready", status="True", last_transition_time=now)
    meta = replace(life.pod.metadata, creation_timestamp=start + life.born)
    status = PodStatus(phase="Running", conditions=(ready,), start_time=now)
    observer.saw("Pod", replace(life.pod, metadata=meta, status=status), now)


def _ends(life: Lifetime, observer: Observer, start: datetime, ended: timedelta) -> None:
    if life.phase:
        meta = replace(life.pod.metadata, creation_timestamp=start + life.born)
        observer.saw("Pod", replace(life.pod, metadata=meta, status=PodStatus(phase=life.phase)), start + ended)
    else:
        observer.lost("Pod", life.pod.key, start + ended)
