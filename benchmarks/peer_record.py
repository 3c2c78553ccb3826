"""What becomes of a cluster while a controller works on it: prices, pods that leave, pods that run, decisions."""

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from karpool.catalog.instance_types import Catalog
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.wire.objects import condition

ROOT: Final = Path(__file__).resolve().parents[1]
SHARE: Final = 0.9
"""The part of the saving whose time is told."""


@dataclass(frozen=True)
class Figures:
    """What was measured in one run."""

    controller: str
    budget: str
    size: int
    """Nodes of the cluster at first."""
    prices: tuple[tuple[float, float], ...]
    """Seconds since the controller was started, and $/h of all nodes from then on."""
    nodes: int
    launched: int
    evictions: int
    pods: int
    fewest: int
    cpu: float
    memory: int
    decision: float
    settled: bool
    seconds: float
    """From the start to the last change."""
    limit: float
    load: float
    """Of the machine, on the average of the run."""
    commit: str = ""
    """Of the source that ran; empty: nobody knows."""
    day: str = ""

    @property
    def before(self) -> float:
        """$/h at first."""
        return self.prices[0][1]

    @property
    def end(self) -> float:
        """$/h at last."""
        return self.prices[-1][1]

    def reached(self, price: float) -> float | None:
        """When the nodes came to cost no more than this for good."""
        if self.end > price:
            return None
        later = [until for (_, dear), (until, _) in zip(self.prices, self.prices[1:], strict=False) if dear > price]
        return later[-1] if later else 0.0


def commit() -> str:
    """The commit of this checkout, with a plus if files differ from it; empty where git does not know."""

    def told(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - as written here

    try:
        return told("rev-parse", "--short", "HEAD") + ("+" if told("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def target(runs: Sequence[Figures]) -> float:
    """The price at which so much is saved of what the best of these saved."""
    before, best = runs[0].before, min(run.end for run in runs)
    return before - SHARE * (before - best)


@dataclass
class Record:
    """Keeps count from what watches tell, and from when it is told to begin."""

    catalog: Catalog
    now: Callable[[], float] = time.monotonic
    nodes: dict[str, float] = field(default_factory=dict)
    ready: set[str] = field(default_factory=set)
    untainted: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    """Pods that left or were told to, by uid."""
    launched: set[str] = field(default_factory=set)
    prices: list[tuple[float, float]] = field(default_factory=list)
    fewest: int = 0
    began: float = 0.0
    changed: float = 0.0

    def begin(self) -> None:
        """Forget what was before; the controller starts now."""
        self.began = self.changed = self.now()
        self.leaving.clear()
        self.launched.clear()
        self.fewest = len(self.ready)
        self.prices = [(0.0, sum(self.nodes.values()))]

    def node(self, node: Node, *, gone: bool = False) -> None:
        """A node came, changed, or went."""
        if gone:
            self.untainted.discard(node.name)
            known = self.nodes.pop(node.name, None) is not None
        else:
            (self.untainted.discard if node.spec.taints else self.untainted.add)(node.name)
            known = node.name in self.nodes
            if not known:
                self.nodes[node.name] = price(node, self.catalog)
                self.launched.add(node.name)
        if known is gone:
            self._change()
            self.prices.append((self.changed - self.began, sum(self.nodes.values())))

    def pod(self, pod: Pod, *, gone: bool = False) -> None:
        """A pod came, changed, or went."""
        if gone or pod.metadata.deletion_timestamp is not None:
            if pod.metadata.uid not in self.leaving:
                self.leaving.add(pod.metadata.uid)
                self._change()
            self.ready.discard(pod.metadata.uid)
        elif _is_ready(pod):
            self.ready.add(pod.metadata.uid)
        else:
            self.ready.discard(pod.metadata.uid)
        self.fewest = min(self.fewest, len(self.ready))

    def _change(self) -> None:
        self.changed = self.now()


def price(node: Node, catalog: Catalog) -> float:
    """What a node costs an hour."""
    labels = node.metadata.labels
    sold = catalog.by_name[labels[names.INSTANCE_TYPE]].offerings
    place = (labels[names.ZONE], labels[names.CAPACITY_TYPE])
    (found,) = [offering for offering in sold if (offering.zone, offering.capacity_type) == place]
    return catalog.price(found) or 0.0


def _is_ready(pod: Pod) -> bool:
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"


# -- decisions ---------------------------------------------------------------------------------------------------------

Series = dict[str, float]
KARPENTER_SECONDS: Final = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds"
# Either of these grows with an evaluation that waited for its validation.
KARPENTER_WAITS: Final = ("karpenter_voluntary_disruption_decisions_total", "karpenter_voluntary_disruption_failed")
LEEWAY: Final = 3.0
"""Seconds by which a wait may be told of before the look that it was part of."""
KARPOOL_SECONDS: Final = "karpool_decision_seconds"


def series_of(page: str) -> Series:
    """All metrics of a page, by name and labels."""
    lines = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def longest_search(log: str) -> float:
    """The longest search that Karpool's log tells of; its metrics do not count it with a pass."""
    return max(map(float, re.findall(r'"event":"search finished","seconds":([0-9.]+)', log)), default=0.0)


class Decisions:
    """The longest look over all nodes, from metrics that are read again and again.

    Karpenter looks method by method and counts the wait before the second look with the first: such looks are left
    out, and the longest of each method are added up.
    """

    def __init__(self, name: str, waits: Iterable[str] = ()) -> None:
        self._name = name
        self._waits = tuple(waits)
        self._last: Series = {}
        self._waited: list[tuple[float, float]] = []
        self._longest: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """How long a look takes at most."""
        return sum(self._longest.values())

    def read(self, series: Series, now: float) -> None:
        """What the metrics say now."""
        last, self._last = self._last, series
        waits = sum(value for key, value in series.items() if self._waits and key.startswith(self._waits))
        self._waited.append((now, waits))
        for key, count in series.items():
            if key.startswith(f"{self._name}_count") and count == last.get(key, 0.0) + 1:
                total = key.replace("_count", "_sum", 1)
                seconds = series[total] - last.get(total, 0.0)
                if waits == self._before(now - seconds - LEEWAY):
                    self._longest[key] = max(self._longest.get(key, 0.0), seconds)

    def _before(self, moment: float) -> float:
        """How many waits there had been by then."""
        return max((waits for when, waits in self._waited if when <= moment), default=0.0)
