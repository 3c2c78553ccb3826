"""What a scenario is: a small cluster, pods that look for a place, and where they should find it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.factories import default_catalog, node_pool, pod

from karpool.catalog.instance_types import Catalog
from karpool.model.labels import HOSTNAME
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.result import PlacementResult

T = default_catalog()


class Engine(Protocol):
    """Anything that answers the question."""

    def __call__(self, objects: Objects, catalog: Catalog, *, pods: Sequence[Pod], **rest: Any) -> PlacementResult: ...


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Given → expect. What is None is not looked at; a skew is the sorted number of alike pods in each domain."""

    name: str
    pods: Sequence[Pod]
    pools: Sequence[NodePool] = (node_pool(),)
    nodes: Sequence[Node] = ()
    claims: Sequence[NodeClaim] = ()
    bound: Sequence[Pod] = ()
    catalog: Catalog = T
    others: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    unplaced: int | Sequence[str] = 0
    new_nodes: int | None = None
    launches: str | Sequence[str] | None = None
    types: Sequence[str] | None = None
    pool: str | None = None
    placed_on: Mapping[str, str | int] | None = None
    skew: tuple[str, tuple[int, ...]] | None = None
    check: Callable[[PlacementResult], bool] | None = None

    @property
    def objects(self) -> Objects:
        """The whole cluster."""
        return Objects(
            pods=(*self.bound, *self.pods),
            nodes=tuple(self.nodes),
            node_pools=tuple(self.pools),
            node_claims=tuple(self.claims),
            **self.others,
        )

    def ask(self, engine: Engine) -> PlacementResult:
        return engine(self.objects, self.catalog, pods=self.pods, **self.asked)

    def verify(self, answer: PlacementResult) -> None:
        """Compare an answer with what is expected."""
        unplaced = [key.partition("/")[2] for key in answer.unplaced]
        assert (
            unplaced == list(self.unplaced) if isinstance(self.unplaced, Sequence) else len(unplaced) == self.unplaced
        )
        assert self.new_nodes is None or len(answer.new_nodes) == self.new_nodes
        firsts = [new.instance_types[0] for new in answer.new_nodes]
        wanted = [self.launches] if isinstance(self.launches, str) else self.launches
        assert wanted is None or firsts == list(wanted)
        assert self.types is None or set(answer.new_nodes[0].instance_types) == set(self.types)
        assert self.pool is None or {new.pool for new in answer.new_nodes} == {self.pool}
        for name, place in (self.placed_on or {}).items():
            assert answer.placed.get(f"default/{name}") == place
        assert self.skew is None or self._skew(answer, self.skew[0]) == self.skew[1]
        assert self.check is None or self.check(answer)

    def _skew(self, answer: PlacementResult, key: str) -> tuple[int, ...]:
        app = self.pods[0].metadata.labels["app"]
        places = {pod.key: pod.spec.node_name for pod in self.bound} | dict(answer.placed)
        alike = [pod for pod in (*self.bound, *self.pods) if pod.metadata.labels["app"] == app and pod.key in places]
        return tuple(sorted(Counter(self._domain(answer, key, places[pod.key]) for pod in alike).values()))

    def _domain(self, answer: PlacementResult, key: str, place: str | int) -> str:
        if key == HOSTNAME:
            return str(place)
        if isinstance(place, int):
            (value,) = answer.new_nodes[place].requirements[key].values
            return value
        return next(node for node in self.nodes if node.name == place).metadata.labels[key]


def pods(count: int, *, app: str = "web", first: int = 1, **rest: Any) -> list[Pod]:
    """Pods `web-1`, `web-2`, …, all alike, each a quarter of a CPU unless told otherwise."""
    return [pod(f"{app}-{i}", **{"cpu": "250m", "memory": "100Mi", **rest}) for i in range(first, first + count)]


def one_pod(name: str, *, fails: bool = False, **given: Any) -> Scenario:
    """A scenario with a single small pod, told by the keywords of a pod and those of a scenario."""
    known = {key: given.pop(key) for key in list(given) if key in Scenario.__dataclass_fields__}
    return Scenario(name=name, pods=pods(1, **given), unplaced=1 if fails else 0, **known)
