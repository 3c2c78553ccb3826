"""Small clusters of a cloud's node pools, and what the compactor decides about them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.factories import node, pod

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.decide import CompactionDecision, decide
from karpool.compaction.marks import ANNOTATION, Mark, encode_mark
from karpool.compaction.settings import DEFAULTS, CompactionSettings
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod

NOW: Final = datetime(2026, 6, 15, 12, tzinfo=UTC)  # a Monday
GKE: Final = "cloud.google.com/gke-nodepool"


def ago(**since: float) -> datetime:
    """A moment before now: `ago(minutes=5)`."""
    return NOW - timedelta(**since)


MARKED: Final = Mark(marked=True, marked_at=ago(minutes=10), updated=ago(minutes=10))
IN_PROGRESS: Final = Mark(in_progress=True, updated=ago(minutes=2))


def pool_node(
    name: str,
    *,
    pods: Sequence[str | Pod] = (),
    pool: str = "main",
    mark: Mark | str | None = MARKED,
    cpu: str = "4",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **rest: Any,
) -> tuple[Node, tuple[Pod, ...]]:
    """A node of four CPUs, marked ten minutes ago, with a pod for each amount of CPU; keywords as of `node`."""
    text = encode_mark(mark) if isinstance(mark, Mark) else mark
    written = {**(annotations or {}), **({} if text is None else {ANNOTATION: text})}
    made = node(name, pool=None, cpu=cpu, labels=labels or ({GKE: pool} if pool else {}), annotations=written, **rest)
    bound = tuple(
        spec if isinstance(spec, Pod) else pod(f"{name}-{number}", cpu=spec, memory="64Mi", node=name)
        for number, spec in enumerate(pods)
    )
    return made, bound


def draining(name: str, *, mark: Mark = IN_PROGRESS, **rest: Any) -> tuple[Node, tuple[Pod, ...]]:
    """A node whose scale-down began two minutes ago."""
    return pool_node(name, mark=mark, cordoned=True, **rest)


def cluster(nodes: Sequence[tuple[Node, tuple[Pod, ...]]], pods: Sequence[Pod] = (), **others: Any) -> Objects:
    """Nodes with their pods, and pods that are on none of them."""
    bound = (each for _, on_node in nodes for each in on_node)
    return Objects(nodes=tuple(made for made, _ in nodes), pods=(*bound, *pods), **others)


def pool_config(limit: float = 0.75, required: int = 1, **rest: Any) -> PoolConfig:
    """An enabled pool."""
    return PoolConfig(enabled=True, cpu_limit=limit, required_count=required, **rest)


def config(**pools: PoolConfig) -> Config:
    """A configuration of pools by name; without any, of the pool `main`."""
    return Config(node_pools=pools or {"main": pool_config()})


def decided(
    *nodes: tuple[Node, tuple[Pod, ...]],
    given: Config | None = None,
    settings: CompactionSettings = DEFAULTS,
    uncertainty: timedelta = timedelta(0),
    **others: Any,
) -> CompactionDecision:
    """What is decided about nodes."""
    return decide(cluster(nodes, **others), given or config(), NOW, settings, uncertainty=uncertainty)


def names(decision: CompactionDecision) -> list[str]:
    """The chosen nodes."""
    return [chosen.node for chosen in decision.chosen]


def codes(decision: CompactionDecision) -> dict[str, list[str]]:
    """Why each node is not chosen."""
    return {verdict.view.name: [str(reason.code) for reason in verdict.reasons] for verdict in decision.nodes}


def marks(decision: CompactionDecision) -> str:
    """The names of the nodes that are marked after the decision."""
    return " ".join(verdict.view.name for verdict in decision.nodes if verdict.view.mark.marked)


ROOMY: Final = pool_node("z-roomy", pods=["3900m"], cpu="10", mark=None, pool="other")
"""A node of a pool that nobody compacts, with room for six CPUs."""
