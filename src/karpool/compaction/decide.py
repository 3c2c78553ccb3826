"""The compactor's decision: which marks to set and to take away, and which node of each pool to drain.

Every pool is looked at by itself, at most one of its nodes is chosen, and for every other node there is a reason. Pools
are taken by name, each on the cluster as the choices before leave it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.nodes import NodeLook, held_by, look_at, warnings
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pods import drained
from karpool.compaction.pools import pool_of
from karpool.compaction.reasons import CompactionReasonCode, clock
from karpool.compaction.settings import DEFAULTS, CompactionSettings
from karpool.model.cron import parse_schedule
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason

if TYPE_CHECKING:
    from karpool.compaction.room import Removal, Room


@dataclass(frozen=True, slots=True)
class DrainPlacement:
    """Where a pod of a drained node would go; None: nowhere, which only pools that do not check it accept."""

    pod: str
    source: str
    target: str | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A node to drain, with the places of its pods and what may keep the autoscaler from removing it."""

    node: str
    pool: str
    placements: tuple[DrainPlacement, ...]
    warnings: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionVerdict:
    """A node and why it is not chosen; no reason: it is."""

    look: NodeLook
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class PoolCount:
    """A pool in numbers."""

    name: str
    enabled: bool
    nodes: int
    underutilized: int
    marked: int
    in_progress: int
    last_begun: datetime | None = None
    """When the latest of the scale-downs in progress began."""


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """Everything that one look at the cluster decides."""

    time: datetime
    pools: tuple[PoolCount, ...]
    nodes: tuple[CompactionVerdict, ...]
    chosen: tuple[Chosen, ...]


def decide(
    objects: Objects, config: Config, now: datetime, settings: CompactionSettings = DEFAULTS
) -> CompactionDecision:
    """Look at every node, and choose at most one of each pool."""
    return _Decider(objects, config, now, settings).decision()


def nodes_by_reason(decision: CompactionDecision) -> dict[str, int]:
    """How many nodes stay for each reason, by its code, the commonest first; a node may count for several."""
    found = Counter(code for verdict in decision.nodes for code in {str(reason.code) for reason in verdict.reasons})
    return dict(sorted(found.items(), key=lambda held: (-held[1], held[0])))


def pods_by_node(pods: Iterable[Pod]) -> defaultdict[str, list[Pod]]:
    """Unfinished pods, by the name of their node."""
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.bound and not pod.terminal:
            found[pod.spec.node_name].append(pod)
    return found


class _Decider:
    """One decision, and what it has found out so far."""

    def __init__(self, objects: Objects, config: Config, now: datetime, settings: CompactionSettings) -> None:
        self.objects, self.now, self.settings = objects, now, settings
        self.pdbs = EvictionBudgets(objects.pod_disruption_budgets)
        pods = pods_by_node(objects.pods)
        self.looks = [
            look_at(
                node, pods[node.name], config.pool(pool_of(node.metadata.labels, settings.pool_label)), now, settings
            )
            for node in sorted(objects.nodes, key=lambda node: node.name)
        ]
        self.reasons: dict[str, tuple[Reason, ...]] = {look.name: look.outside for look in self.looks}
        self.chosen: list[Chosen] = []
        self.givers: dict[str, str] = {}
        """Nodes that pods of chosen nodes go to, each with one of those."""
        self._room: Room | None = None

    def decision(self) -> CompactionDecision:
        pools: defaultdict[str, list[NodeLook]] = defaultdict(list)
        for look in self.looks:
            pools[look.pool].append(look)
        counts = tuple(_count(name, pools[name]) for name in sorted(pools))
        for count in counts:
            if count.enabled:
                self._choose(pools[count.name], count)
        verdicts = tuple(CompactionVerdict(look, self.reasons[look.name]) for look in self.looks)
        return CompactionDecision(self.now, counts, verdicts, tuple(self.chosen))

    def _choose(self, looks: Sequence[NodeLook], count: PoolCount) -> None:
        """Choose a node of a pool, and say why the other under-used ones stay."""
        against = against_pool(looks[0].config, count, self.now)
        able = []
        for look in sorted((look for look in looks if look.underutilized), key=lambda look: look.order):
            held = (*held_by(look, self.pdbs, self.now, self.settings), *against)
            self.reasons[look.name] = held
            if not held:
                able.append(look)
        first: NodeLook | None = None
        for look in able:
            if first is None:
                first = self._try(look)
            else:
                self.reasons[look.name] = (_another_first(first, look),)

    def _try(self, look: NodeLook) -> NodeLook | None:
        """Choose a node if its pods have a place, and none was found on it for the pods of a node that goes."""
        giver = self.givers.get(look.name)
        if giver is not None:
            said = f"takes pods of node {giver}, which goes first"
            self.reasons[look.name] = (Reason(CompactionReasonCode.TAKES_PODS, said, f"Node {look.name}"),)
            return None
        removal = self._places().without(look.name)
        if removal.reason is not None and look.config.check_fit:
            self.reasons[look.name] = (removal.reason,)
            return None
        self._places().take(removal)
        self.givers |= {place: look.name for place in removal.places.values() if place is not None}
        self.chosen.append(Chosen(look.name, look.pool, _placements(look, removal), warnings(look, self.pdbs)))
        return look

    def _places(self) -> "Room":
        if self._room is None:
            from karpool.compaction.room import Room

            self._room = Room(self.objects, [look.name for look in self.looks if look.leaving])
        return self._room


def _count(name: str, looks: Sequence[NodeLook]) -> PoolCount:
    return PoolCount(
        name=name,
        enabled=bool(name) and looks[0].config.enabled,
        nodes=len(looks),
        underutilized=sum(look.underutilized for look in looks),
        marked=sum(look.mark.marked for look in looks),
        in_progress=sum(look.mark.in_progress for look in looks),
        last_begun=max(
            (look.mark.updated for look in looks if look.mark.in_progress and look.mark.updated), default=None
        ),
    )


def needed_count(config: PoolConfig, count: PoolCount) -> int:
    """How many nodes of a pool must be under-used for a scale-down to begin."""
    return config.required_count + count.in_progress


def next_window(config: PoolConfig, now: datetime) -> datetime | None:
    """When the pool's next window opens; None: one is open, or it has none."""
    if not config.windows or any(window.open(now) for window in config.windows):
        return None
    return min(parse_schedule(window.schedule).next_after(now) for window in config.windows)


def against_pool(config: PoolConfig, count: PoolCount, now: datetime) -> tuple[Reason, ...]:
    """Why no scale-down may begin in a pool now."""
    found, about = [], f"NodePool {count.name}"
    needed = needed_count(config, count)
    if count.underutilized < needed:
        busy = f", {count.in_progress} of them for scale-downs in progress" if count.in_progress else ""
        there = "1 node" if count.underutilized == 1 else f"{count.underutilized} nodes"
        under_used = f"{there} of pool {count.name} {_are(count.underutilized)} under-used"
        said = f"{under_used}; {needed} {_are(needed)} needed{busy}"
        found.append(Reason(CompactionReasonCode.TOO_FEW_UNDERUTILIZED, said, about))
    if config.max_in_progress is not None and count.in_progress >= config.max_in_progress:
        begun = "1 scale-down" if count.in_progress == 1 else f"{count.in_progress} scale-downs"
        said = f"{begun} of pool {count.name} {_are(count.in_progress)} in progress; no more may be at once"
        found.append(Reason(CompactionReasonCode.TOO_MANY_IN_PROGRESS, said, about))
    opens = next_window(config, now)
    if opens is not None:
        said = f"scale-downs of pool {count.name} begin only in its windows; the next opens at {clock(opens, now)}"
        found.append(Reason(CompactionReasonCode.OUTSIDE_WINDOW, said, about))
    return tuple(found)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _another_first(first: NodeLook, look: NodeLook) -> Reason:
    said = (
        f"node {first.name} goes first ({first.order[0]:.1%} of its CPU requested, here {look.order[0]:.1%}); "
        "one node of a pool begins at a time"
    )
    return Reason(CompactionReasonCode.ANOTHER_NODE_FIRST, said, f"Node {look.name}")


def _placements(look: NodeLook, removal: "Removal") -> tuple[DrainPlacement, ...]:
    """The places of the node's own pods; a pod that was only expected there is not on it."""
    own = sorted(pod.key for pod in look.pods if drained(pod))
    return tuple(DrainPlacement(key, look.name, removal.places.get(key)) for key in own)
