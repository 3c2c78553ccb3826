"""Which faults a schedule has: windows of time in which requests, watches, processes and nodes get into trouble."""

import random
from dataclasses import dataclass
from typing import Final

from tests.robustness.timelines import Kind, Storm

# What becomes of requests.
LATENCY, LOST, TWICE, BROKEN = "latency", "lost answer", "request sent twice", "request never arrives"
CONFLICT, TOO_MANY, INTERNAL = "409 conflict", "429 too many requests", "500 internal error"
WEBHOOK, QUOTA = "webhook refuses", "quota exceeded"
KILL_BEFORE, KILL_AFTER = "killed before a request", "killed after a request"
# What becomes of watches.
STALLED, CUT, GONE = "stalled watch", "cut watch", "410 gone"
AMBUSH, UNSEEN_PAUSE = "protection unseen during a command", "pause unseen"
# What becomes of processes.
PAUSED, PARTITIONED, STEPPED_DOWN, KILLED = "process paused", "cut off from the server", "leader steps down", "killed"
# What becomes of the time.
SKEWED, CLOCK_SET = "answer with a wrong date", "local clock set"
# What becomes of the cluster.
ZONE, INTERRUPTED, SHORTAGE, CRASHES = "unready zone", "spot interruption", "shortage", "new pods crash"

STATUS: Final = {CONFLICT: 409, TOO_MANY: 429, INTERNAL: 500, WEBHOOK: 403, QUOTA: 403}
OF_REQUESTS: Final = (LATENCY, LOST, TWICE, CONFLICT, TOO_MANY, INTERNAL, WEBHOOK, QUOTA, KILL_BEFORE, KILL_AFTER)
OF_WATCHES: Final = (STALLED, CUT, GONE, AMBUSH, UNSEEN_PAUSE)
OF_PROCESSES: Final = (PAUSED, PARTITIONED, STEPPED_DOWN, KILLED)
OF_CLOCKS: Final = (SKEWED, CLOCK_SET)
OF_CLUSTERS: Final = (ZONE, INTERRUPTED, SHORTAGE, CRASHES)
KINDS: Final = (*OF_REQUESTS, BROKEN, *OF_WATCHES, *OF_PROCESSES, *OF_CLOCKS, *OF_CLUSTERS)
# A request fault meets many requests, the others happen once.
_DRAWN: Final = (*OF_REQUESTS, *3 * OF_WATCHES, *2 * OF_PROCESSES, *OF_CLOCKS, *OF_CLUSTERS)
_OF_KARPENTER: Final = (WEBHOOK, QUOTA, INTERRUPTED, SHORTAGE, CRASHES, STEPPED_DOWN)
"""What the compactor has nothing to do with."""
_LENGTHS: Final[dict[str, tuple[float, float]]] = {
    STALLED: (20, 300),
    CUT: (1, 40),
    GONE: (1, 40),
    PAUSED: (2, 45),
    PARTITIONED: (3, 60),
    ZONE: (30, 240),
    QUOTA: (60, 600),
    WEBHOOK: (60, 600),
    SHORTAGE: (60, 600),
    SKEWED: (10, 600),
    UNSEEN_PAUSE: (60, 300),
    AMBUSH: (200, 800),
    CRASHES: (200, 800),
}


@dataclass(frozen=True, slots=True)
class Window:
    """A fault from one time to another; `share` of the requests meet it, or `who` does: the number of a replica."""

    kind: str
    start: float
    end: float
    share: float = 1.0
    who: int = 0


def draw_windows(rng: random.Random, kind: Kind, storms: tuple[Storm, ...]) -> tuple[Window, ...]:
    """Some windows in each storm, sorted by their start; half of the schedules have more than a few."""
    drawn = [_typical(rng, kind, storm) for storm in storms if kind in (Kind.HARMFUL, Kind.ZONED)]
    for storm in storms:
        drawn += [_window(rng, kind, storm) for _ in range(rng.choice((2, 3, 5, 8, 12)))]
    return tuple(sorted(drawn, key=lambda window: window.start))


def _typical(rng: random.Random, kind: Kind, storm: Storm) -> Window:
    """The fault that a story is about; it lasts long."""
    if kind is Kind.HARMFUL:
        return Window(CRASHES, rng.uniform(storm.start, 300.0), storm.end)
    start = rng.uniform(200.0, 500.0)
    return Window(ZONE, start, min(storm.end, start + rng.uniform(120.0, 400.0)))


def _window(rng: random.Random, about: Kind, storm: Storm) -> Window:
    choice = [kind for kind in _DRAWN if about is not Kind.COMPACTED or kind not in _OF_KARPENTER]
    kind = rng.choice(choice)
    shortest, longest = _LENGTHS.get(kind, (30, 400))
    start = rng.uniform(storm.start, storm.end)
    end = min(storm.end, start + rng.uniform(shortest, longest))
    some = kind in (*OF_REQUESTS, SKEWED) and kind not in (WEBHOOK, QUOTA)
    share = rng.choice((0.1, 0.4)) if some else 1.0
    return Window(kind, round(start, 3), round(end, 3), share, rng.randrange(2))
