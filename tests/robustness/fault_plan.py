"""Which faults a schedule has: windows of time in which requests, watches, processes and nodes get into trouble."""

import random
from dataclasses import dataclass
from typing import Final

# What becomes of requests.
LATENCY, LOST, TWICE, BROKEN = "latency", "lost answer", "request sent twice", "request never arrives"
CONFLICT, TOO_MANY, INTERNAL = "409 conflict", "429 too many requests", "500 internal error"
WEBHOOK, QUOTA = "webhook refuses", "quota exceeded"
KILL_BEFORE, KILL_AFTER = "killed before a request", "killed after a request"
# What becomes of watches.
STALLED, CUT, GONE = "stalled watch", "cut watch", "410 gone"
AMBUSH = "protection unseen during a command"
# What becomes of processes.
PAUSED, PARTITIONED, STEPPED_DOWN, KILLED = "process paused", "cut off from the server", "leader steps down", "killed"
# What becomes of the time.
SKEWED, CLOCK_SET = "answer with a wrong date", "local clock set"
# What becomes of the cluster.
ZONE, INTERRUPTED, SHORTAGE = "unready zone", "spot interruption", "shortage"

STATUS: Final = {CONFLICT: 409, TOO_MANY: 429, INTERNAL: 500, WEBHOOK: 403, QUOTA: 403}
OF_REQUESTS: Final = (LATENCY, LOST, TWICE, CONFLICT, TOO_MANY, INTERNAL, WEBHOOK, QUOTA, KILL_BEFORE, KILL_AFTER)
OF_WATCHES: Final = (STALLED, CUT, GONE, AMBUSH)
OF_PROCESSES: Final = (PAUSED, PARTITIONED, STEPPED_DOWN, KILLED)
OF_CLOCKS: Final = (SKEWED, CLOCK_SET)
OF_CLUSTERS: Final = (ZONE, INTERRUPTED, SHORTAGE)
KINDS: Final = (*OF_REQUESTS, *OF_WATCHES, *OF_PROCESSES, *OF_CLOCKS, *OF_CLUSTERS)
# A request fault meets many requests, the others happen once.
_DRAWN: Final = (*OF_REQUESTS, *3 * OF_WATCHES, *2 * OF_PROCESSES, *OF_CLOCKS, *OF_CLUSTERS)
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
}


@dataclass(frozen=True, slots=True)
class Window:
    """A fault from one time to another; `share` of the requests meet it, or `who` does: the number of a replica."""

    kind: str
    start: float
    end: float
    share: float = 1.0
    who: int = 0


def draw_windows(rng: random.Random, first: float, last: float) -> tuple[Window, ...]:
    """Some windows between two times, sorted by their start; half of the schedules have more than a few."""
    windows = []
    for _ in range(rng.choice((2, 3, 5, 8, 12))):
        kind = rng.choice(_DRAWN)
        shortest, longest = _LENGTHS.get(kind, (30, 400))
        start = rng.uniform(first, last)
        end = min(last, start + rng.uniform(shortest, longest))
        some = kind in (*OF_REQUESTS, SKEWED) and kind not in (WEBHOOK, QUOTA)
        share = rng.choice((0.1, 0.4)) if some else 1.0
        windows.append(Window(kind, round(start, 3), round(end, 3), share, rng.randrange(2)))
    return tuple(sorted(windows, key=lambda window: window.start))
