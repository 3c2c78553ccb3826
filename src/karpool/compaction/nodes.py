"""The compactor's view of one node: its utilization, its mark, and everything that blocks its drain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from karpool.cluster.nodes import is_leaving
from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.marks import Mark, decode_mark, updated_mark
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pods import autoscaler_blocker, eviction_blocker, needs_new_node
from karpool.compaction.pools import pool_of
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.compaction.settings import CompactionSettings
from karpool.compaction.usage import NodeUsage, usage
from karpool.disruption.reasons import clock
from karpool.model.autoscaler_rules import SCALE_DOWN_DISABLED
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.managers import ManagerKind, left_alone, manager_of
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.wire.objects import condition


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    node: Node
    pool: str
    config: PoolConfig
    pods: Sequence[Pod]
    usage: NodeUsage
    stored_mark: Mark
    """The mark in the node's annotation."""
    mark: Mark
    """The mark that the node should have now."""
    exclusions: tuple[Reason, ...]
    """Why the node does not count as under-used; empty if it does."""
    sealed: Reason | None = None
    """What bears on the node and cannot be read, so that it is left alone."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def underutilized(self) -> bool:
        """Whether the node may take part in a scale-down: old enough, in good state, and under the limits."""
        return not self.exclusions

    @property
    def leaving(self) -> bool:
        return self.mark.in_progress or is_leaving(self.node)

    @property
    def order(self) -> tuple[float, str]:
        """The node with the lowest part of its CPU requested goes first."""
        return self.usage.cpu_ratio or 0.0, self.name


def view_node(
    node: Node,
    pods: Sequence[Pod],
    config: Config,
    now: datetime,
    settings: CompactionSettings,
    *,
    sealed: Reason | None = None,
) -> NodeView:
    stored, used = decode_mark(node.metadata.annotations), usage(node, pods)
    name = pool_of(node, settings.pool_label)
    pool = config.pool(name)
    known = [] if sealed is None else [sealed]
    excluded = _not_enabled(node, name, pool) or known or _not_available(node, stored) or _too_full(node, used, pool)
    exclusions = tuple(excluded or _too_young(node, now, settings))
    return NodeView(
        node=node,
        pool=name,
        config=pool,
        pods=pods,
        usage=used,
        stored_mark=stored,
        mark=updated_mark(stored, now, underutilized=not exclusions),
        exclusions=exclusions,
        sealed=sealed,
    )


def _not_enabled(node: Node, pool: str, config: PoolConfig) -> list[Reason]:
    if config.enabled and pool:
        return []
    manager = manager_of(node, claimed=False).kind
    if manager is ManagerKind.AUTO_MODE and pool:
        return [_of(node, Code.POOL_NOT_ENABLED, f"is of NodePool {pool}, whose nodes EKS Auto Mode removes")]
    if manager not in (ManagerKind.NODE_GROUP, ManagerKind.NODE_POOL, ManagerKind.NOBODY):
        return [_of(node, Code.NO_POOL if not pool else Code.POOL_NOT_ENABLED, left_alone(manager))]
    if not pool:
        message = "has no label that names its pool; --pool-label names such a label"
        return [_of(node, Code.NO_POOL, message)]
    if manager is ManagerKind.NODE_POOL:
        return [_of(node, Code.POOL_NOT_ENABLED, f"is of NodePool {pool}, whose nodes Karpenter removes")]
    return [_of(node, Code.POOL_NOT_ENABLED, f"pool {pool} is not enabled in the configuration")]


def _not_available(node: Node, mark: Mark) -> list[Reason]:
    if mark.in_progress:
        return [_of(node, Code.IN_PROGRESS, "is being drained, or waits for the autoscaler to remove it")]
    if is_leaving(node):
        return [_of(node, Code.NODE_DELETING, "is being removed")]
    if node.spec.unschedulable:
        return [_of(node, Code.NODE_CORDONED, "was cordoned, but not by the compactor")]
    ready = condition(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return [_of(node, Code.NODE_NOT_READY, "is not ready")]
    return []


def _too_full(node: Node, used: NodeUsage, pool: PoolConfig) -> list[Reason]:
    checked = [(Code.CPU_OVER_LIMIT, "CPU", used.cpu_ratio, pool.cpu_limit or 0.0)]
    if pool.memory_limit is not None:
        checked.append((Code.MEMORY_OVER_LIMIT, "memory", used.memory_ratio, pool.memory_limit))
    reasons = []
    for code, word, ratio, limit in checked:
        if ratio is None:
            reasons.append(_of(node, Code.SIZE_UNKNOWN, f"does not say how much {word} it has for pods"))
        elif ratio >= limit:
            message = f"{ratio:.1%} of its {word} is requested, which is not under the limit of {limit:.4g}"
            reasons.append(_of(node, code, message))
    return reasons


def _too_young(node: Node, now: datetime, settings: CompactionSettings) -> list[Reason]:
    old_enough = old_enough_at(node, settings)
    if old_enough is None or now >= old_enough:
        return []
    age = f"{settings.minimum_node_age.total_seconds():g} s"
    message = f"is younger than {age}; it is old enough at {clock(old_enough, now)}"
    return [_of(node, Code.NODE_TOO_YOUNG, message)]


def old_enough_at(node: Node, settings: CompactionSettings) -> datetime | None:
    """When the node is old enough to be marked; None: its age is unknown, and not checked."""
    created = node.metadata.creation_timestamp
    return None if created is None else created + settings.minimum_node_age


def all_exclusions(view: NodeView, now: datetime, settings: CompactionSettings) -> tuple[Reason, ...]:
    """All reasons, where `exclusions` stops at the first kind."""
    not_enabled = _not_enabled(view.node, view.pool, view.config)
    if not_enabled:
        return tuple(not_enabled)
    full, young = _too_full(view.node, view.usage, view.config), _too_young(view.node, now, settings)
    known = () if view.sealed is None else (view.sealed,)
    return (*known, *_not_available(view.node, view.stored_mark), *full, *young)


def blockers(view: NodeView, pdbs: EvictionBudgets, now: datetime, settings: CompactionSettings) -> Iterator[Reason]:
    yield from node_blockers(view, now)
    due = marked_long_enough_at(view, now, settings)
    if now < due:
        length = f"{settings.needed_marked_time.total_seconds():g} s"
        message = f"has not been marked for {length} yet; it will have been at {clock(due, now)}"
        yield _of(view.node, Code.MARKED_TOO_SHORT, message)
    yield from pod_blockers(view, pdbs)


def marked_long_enough_at(view: NodeView, now: datetime, settings: CompactionSettings) -> datetime:
    return (view.mark.marked_at or now) + settings.needed_marked_time


def node_blockers(view: NodeView, now: datetime) -> Iterator[Reason]:
    node, retry = view.node, view.mark.retry_after
    if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
        message = f"has {SCALE_DOWN_DISABLED}, so the autoscaler would not remove it"
        yield _of(node, Code.SCALE_DOWN_DISABLED, message)
    if node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
        yield _of(node, Code.NODE_DO_NOT_DISRUPT, f"has {DO_NOT_DISRUPT}")
    if retry is not None and now < retry:
        message = f"an earlier scale-down was given up; it is left alone until {clock(retry, now)}"
        yield _of(node, Code.GIVEN_UP_RECENTLY, message)


def pod_blockers(view: NodeView, pdbs: EvictionBudgets) -> Iterator[Reason]:
    for pod in sorted(view.pods, key=lambda pod: pod.key):
        reason = eviction_blocker(pod)
        if reason is None and view.config.skip_system_pods:
            reason = autoscaler_blocker(pod, covered=bool(pdbs.matching(pod)))
        if reason is None and view.config.respect_pdbs and needs_new_node(pod):
            reason = pdbs.refusal(pod)
        if reason is not None:
            yield reason


def warnings(view: NodeView, pdbs: EvictionBudgets) -> tuple[Reason, ...]:
    """What may keep the autoscaler from removing the node once it is drained."""
    pods = sorted(view.pods, key=lambda pod: pod.key)
    reasons = (autoscaler_blocker(pod, covered=bool(pdbs.matching(pod))) for pod in pods)
    return tuple(reason for reason in reasons if reason is not None)


def _of(node: Node, code: Code, message: str) -> Reason:
    return Reason(code, message, f"Node {node.name}")
