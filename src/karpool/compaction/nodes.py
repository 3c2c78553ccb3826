"""What the compactor sees of one node: its use, its mark, and everything that speaks against draining it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from karpool.compaction.config import PoolConfig
from karpool.compaction.marks import Mark, read_mark, remarked
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pods import drained, keeps, stays_for_good
from karpool.compaction.pools import pool_of
from karpool.compaction.reasons import CompactionReasonCode, clock
from karpool.compaction.settings import CompactionSettings
from karpool.compaction.usage import NodeUsage, usage
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.wire.objects import condition

SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLook:
    """One node at a moment."""

    node: Node
    pool: str
    config: PoolConfig
    pods: Sequence[Pod]
    usage: NodeUsage
    before: Mark
    """The mark as the node has it."""
    mark: Mark
    """The mark as it should be now."""
    outside: tuple[Reason, ...]
    """Why the node does not count as under-used; if there is nothing, it does."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def underutilized(self) -> bool:
        """Whether the node may take part in a scale-down: old enough, in good state, and under the limits."""
        return not self.outside

    @property
    def leaving(self) -> bool:
        """Whether the node is on its way out."""
        return self.mark.in_progress or is_deleting(self.node)

    @property
    def order(self) -> tuple[float, str]:
        """The node with the lowest use of its CPU goes first."""
        return self.usage.cpu_ratio or 0.0, self.name


def look_at(node: Node, pods: Sequence[Pod], pool: PoolConfig, now: datetime, settings: CompactionSettings) -> NodeLook:
    """See a node, and whether it is under-used."""
    before, used = read_mark(node.metadata.annotations), usage(node, pods)
    name = pool_of(node.metadata.labels, settings.pool_label)
    unfit = _not_taking_part(node, name, pool) or _unsound(node, before) or _too_full(node, used, pool)
    outside = tuple(unfit or _too_young(node, now, settings))
    mark = remarked(before, now, underutilized=not outside)
    return NodeLook(node=node, pool=name, config=pool, pods=pods, usage=used, before=before, mark=mark, outside=outside)


def is_deleting(node: Node) -> bool:
    """Whether the node is deleted, or the autoscaler has begun to."""
    return node.metadata.deletion_timestamp is not None or any(t.key == TO_BE_DELETED for t in node.spec.taints)


# -- what a node itself is like ----------------------------------------------------------------------------------------


def _not_taking_part(node: Node, pool: str, config: PoolConfig) -> list[Reason]:
    if not pool:
        return [_of(node, CompactionReasonCode.NO_POOL, "has no label that names its pool")]
    if not config.enabled:
        return [_of(node, CompactionReasonCode.POOL_NOT_ENABLED, f"pool {pool} is not enabled in the configuration")]
    return []


def _unsound(node: Node, mark: Mark) -> list[Reason]:
    if mark.in_progress:
        return [
            _of(node, CompactionReasonCode.IN_PROGRESS, "is being drained, or waits for the autoscaler to remove it")
        ]
    if is_deleting(node):
        return [_of(node, CompactionReasonCode.NODE_DELETING, "is being removed")]
    if node.spec.unschedulable:
        return [_of(node, CompactionReasonCode.NODE_CORDONED, "was cordoned, but not by the compactor")]
    ready = condition(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return [_of(node, CompactionReasonCode.NODE_NOT_READY, "is not ready")]
    return []


def _too_full(node: Node, used: NodeUsage, pool: PoolConfig) -> list[Reason]:
    checked = [(CompactionReasonCode.CPU_OVER_LIMIT, "CPU", used.cpu_ratio, pool.cpu_limit or 0.0)]
    if pool.memory_limit is not None:
        checked.append((CompactionReasonCode.MEMORY_OVER_LIMIT, "memory", used.memory_ratio, pool.memory_limit))
    found = []
    for code, word, ratio, limit in checked:
        if ratio is None:
            found.append(_of(node, CompactionReasonCode.SIZE_UNKNOWN, f"does not say how much {word} it has for pods"))
        elif ratio >= limit:
            said = f"{ratio:.1%} of its {word} is requested, which is not under the limit of {limit:.4g}"
            found.append(_of(node, code, said))
    return found


def _too_young(node: Node, now: datetime, settings: CompactionSettings) -> list[Reason]:
    old_enough = old_enough_at(node, settings)
    if old_enough is None or now >= old_enough:
        return []
    wanted = f"{settings.minimum_node_age.total_seconds():g} s"
    return [
        _of(
            node,
            CompactionReasonCode.NODE_TOO_YOUNG,
            f"is younger than {wanted}; it is old enough at {clock(old_enough, now)}",
        )
    ]


def old_enough_at(node: Node, settings: CompactionSettings) -> datetime | None:
    """When the node is old enough to be marked; None: its age is not known, and does not matter."""
    created = node.metadata.creation_timestamp
    return None if created is None else created + settings.minimum_node_age


def every_outside(look: NodeLook, now: datetime, settings: CompactionSettings) -> tuple[Reason, ...]:
    """All that `outside` could say, where that ends at the first kind of reason."""
    nobody = _not_taking_part(look.node, look.pool, look.config)
    if nobody:
        return tuple(nobody)
    full, young = _too_full(look.node, look.usage, look.config), _too_young(look.node, now, settings)
    return (*_unsound(look.node, look.before), *full, *young)


# -- what speaks against draining a node that is under-used ----------------------------------------------------------


def held_by(look: NodeLook, pdbs: EvictionBudgets, now: datetime, settings: CompactionSettings) -> Iterator[Reason]:
    """Everything that keeps an under-used node for now."""
    yield from held_by_node(look, now)
    due = marked_long_enough_at(look, now, settings)
    if now < due:
        wanted = f"{settings.needed_marked_time.total_seconds():g} s"
        said = f"has not been marked for {wanted} yet; it will have been at {clock(due, now)}"
        yield _of(look.node, CompactionReasonCode.MARKED_TOO_SHORT, said)
    yield from held_by_pods(look, pdbs)


def marked_long_enough_at(look: NodeLook, now: datetime, settings: CompactionSettings) -> datetime:
    """When the node has been marked for long enough, if it stays so, or is marked now."""
    return (look.mark.marked_at or now) + settings.needed_marked_time


def held_by_node(look: NodeLook, now: datetime) -> Iterator[Reason]:
    """What keeps a node by its annotations, and by what happened to it before."""
    yield from _annotated(look.node)
    retry = look.mark.retry_after
    if retry is not None and now < retry:
        said = f"an earlier scale-down was given up; it is left alone until {clock(retry, now)}"
        yield _of(look.node, CompactionReasonCode.GIVEN_UP_RECENTLY, said)


def held_by_pods(look: NodeLook, pdbs: EvictionBudgets) -> Iterator[Reason]:
    """The pods that keep a node, each with its reason."""
    for pod in sorted(look.pods, key=lambda pod: pod.key):
        yield from _kept_by(pod, look.config, pdbs)


def warnings(look: NodeLook, pdbs: EvictionBudgets) -> tuple[Reason, ...]:
    """What may keep the autoscaler from removing the node once it is drained."""
    pods = sorted(look.pods, key=lambda pod: pod.key)
    found = (stays_for_good(pod, covered=bool(pdbs.matching(pod))) for pod in pods)
    return tuple(reason for reason in found if reason is not None)


def _annotated(node: Node) -> Iterator[Reason]:
    annotations = node.metadata.annotations
    if annotations.get(SCALE_DOWN_DISABLED) == "true":
        yield _of(
            node,
            CompactionReasonCode.SCALE_DOWN_DISABLED,
            f"has {SCALE_DOWN_DISABLED}, so the autoscaler would not remove it",
        )
    if annotations.get(DO_NOT_DISRUPT) == "true":
        yield _of(node, CompactionReasonCode.NODE_DO_NOT_DISRUPT, f"has {DO_NOT_DISRUPT}")


def _kept_by(pod: Pod, config: PoolConfig, pdbs: EvictionBudgets) -> Iterator[Reason]:
    reason = keeps(pod)
    if reason is None and config.skip_system_pods:
        reason = stays_for_good(pod, covered=bool(pdbs.matching(pod)))
    if reason is None and config.respect_pdbs and drained(pod):
        reason = pdbs.refusal(pod)
    if reason is not None:
        yield reason


def _of(node: Node, code: CompactionReasonCode, message: str) -> Reason:
    return Reason(code, message, f"Node {node.name}")
