"""A scenario: a small cluster at a moment, and what the next step of its plan should be.

Scenarios say what the reference does, so they mean `--search prefix` unless they choose another search. Each is tried
with a global search as well, which must come to the same: whatever a rule refuses stays refused. Where the search has a
choice, the scenario says so, and the whole plan must end at the same price or below.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from tests.factories import Z1, Z2, Z3, claim_for, instance_type, node_of, node_pool, pod

from karpool.catalog.instance_types import Catalog
from karpool.disruption.plan import Plan, plan
from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.workloads import DaemonSet, PodDisruptionBudget
from karpool.packing.options import Options

NOW: Final = datetime(2026, 6, 15, 12, tzinfo=UTC)  # a Monday
NOTHING: Final = ""
"""No node, for `removes` and `launches` of a scenario."""
ZONES: Final = (Z1, Z2, Z3)
SIZES: Final = {"tiny": 1, "small": 2, "medium": 4, "large": 8, "huge": 64}
# Each type costs 0.05 $/h a CPU on demand and 0.02 as spot, has 4 Gi of memory a CPU, and is sold in three zones.
CATALOG: Final = Catalog(
    tuple(
        instance_type(name, cpu, f"{4 * cpu}Gi", price=0.05 * cpu, spot_price=0.02 * cpu, zones=ZONES)
        for name, cpu in SIZES.items()
    )
)


def pool_of(name: str = "default", *kinds: str, **rest: Any) -> NodePool:
    """A pool of on-demand nodes, or of the capacity types named; keywords as of `node_pool`."""
    only = (CAPACITY_TYPE, "In", *(kinds or (ON_DEMAND,)))
    return node_pool(name, requirements=[only, *rest.pop("requirements", ())], **rest)


REFERENCE: Final = DisruptionSettings(search=PREFIX)
DEFAULT_OPTIONS: Final = Options()
POOL: Final = pool_of()
MIXED: Final = pool_of("default", SPOT, ON_DEMAND)


def ago(**since: float) -> datetime:
    """A moment before now: `ago(minutes=5)`."""
    return NOW - timedelta(**since)


@dataclass(frozen=True)
class NodeWithPods:
    """A node, the claim behind it, and its pods."""

    node: Node | None
    claim: NodeClaim | None
    pods: tuple[Pod, ...]


def node(
    name: str,
    size: str = "medium",
    *,
    pods: int | Sequence[Pod | Mapping[str, Any]] = 0,
    catalog: Catalog = CATALOG,
    claim: Mapping[str, Any] | None = None,
    managed: bool = True,
    **rest: Any,
) -> NodeWithPods:
    """A node of a type with some pods: a number of them (half a CPU each), or the keywords of each."""
    made = node_of(name, catalog.by_name[size], **{"capacity_type": ON_DEMAND, **rest})
    specs = [{}] * pods if isinstance(pods, int) else pods
    bound = tuple(_pod(name, number, spec) for number, spec in enumerate(specs))
    return NodeWithPods(made, claim_for(made, **(claim or {})) if managed else None, bound)


def _pod(node_name: str, number: int, spec: Pod | Mapping[str, Any]) -> Pod:
    return spec if isinstance(spec, Pod) else pod(**{"name": f"{node_name}-{number}", "node": node_name, **spec})


@dataclass(frozen=True)
class Scenario:
    """A cluster, and the first step of its plan; an expectation that is None is not checked."""

    name: str
    _: KW_ONLY
    nodes: Sequence[NodeWithPods]
    pools: Sequence[NodePool] = (POOL,)
    pods: Sequence[Pod] = ()
    """Pods besides those on `nodes`: pending ones, for example."""
    pdbs: Sequence[PodDisruptionBudget] = ()
    daemons: Sequence[DaemonSet] = ()
    other_objects: Mapping[str, Any] = field(default_factory=dict)
    catalog: Catalog = CATALOG
    settings: DisruptionSettings = REFERENCE
    options: Options = DEFAULT_OPTIONS
    now: datetime = NOW

    removes: str = NOTHING
    """The nodes that the first command removes: `"a b"`."""
    free_choice: bool = False
    """Whether a global search may do something else that costs no more in the end."""
    method: str | None = None
    """How the name of the method begins that found the command: `"Single"`."""
    launches: str | None = None
    """The cheapest type of each replacement: `"medium"`."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """A reason code that each of these nodes gets: `{"a": "NotCheaper"}`."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """Words that the reasons of each of these nodes contain."""
    check: Callable[[Plan], object] | None = None
    """Whatever else must be true of the plan."""

    @property
    def objects(self) -> Objects:
        """The cluster as objects."""
        return cluster(
            self.nodes,
            pools=self.pools,
            pods=self.pods,
            pod_disruption_budgets=tuple(self.pdbs),
            daemon_sets=tuple(self.daemons),
            **self.other_objects,
        )

    def plan(self, most_steps: int | None = 1) -> Plan:
        """The plan for the cluster."""
        return plan(
            self.objects,
            self.catalog,
            now=self.now,
            settings=self.settings,
            options=self.options,
            most_steps=most_steps,
        )

    def verify(self) -> None:
        """Compare the first step, and why nodes stay, with what is expected."""
        if self.settings.search == GLOBAL and self.free_choice:
            self._verify_price()
            return
        made = self.plan()
        reasons = {fate.candidate.name: fate.reasons for fate in made.fates}
        removed = sorted(name for step in made.steps for name in step.command.nodes)
        assert removed == sorted(self.removes.split()), {name: list(map(str, why)) for name, why in reasons.items()}
        assert all(reasons.values())
        if self.method is not None:
            assert made.steps[0].command.method.startswith(self.method)
        if self.launches is not None:
            assert [new.instance_types[0] for new in made.steps[0].command.replacements] == self.launches.split()
        for name, code in self.reasons.items():
            assert code in [reason.code for reason in reasons[name]], reasons[name]
        for name, words in self.messages.items():
            assert words in " ".join(f"{reason.object} {reason.message}" for reason in reasons[name]), reasons[name]
        assert self.check is None or self.check(made)

    def _verify_price(self) -> None:
        """Compare where the whole plan ends with the end of the reference's."""
        reference = replace(self, settings=replace(self.settings, search=PREFIX)).plan(None)
        assert self.plan(None).after.price <= reference.after.price + 1e-9


def cluster(
    nodes: Iterable[NodeWithPods], *, pools: Iterable[NodePool] = (), pods: Iterable[Pod] = (), **others: Any
) -> Objects:
    """Nodes with their pods, and other pods, as objects."""
    listed = list(nodes)
    return Objects(
        nodes=tuple(entry.node for entry in listed if entry.node is not None),
        node_claims=tuple(entry.claim for entry in listed if entry.claim is not None),
        pods=(*(bound for entry in listed for bound in entry.pods), *pods),
        node_pools=tuple(pools),
        **others,
    )


def either_search(scenarios: Iterable[Scenario]) -> pytest.MarkDecorator:
    """Try scenarios as they are, and with a global search that gives an answer at once."""
    cases = []
    for scenario in scenarios:
        searched = replace(scenario.settings, search=GLOBAL, effort=0)
        cases += [
            pytest.param(scenario, id=scenario.name),
            pytest.param(replace(scenario, settings=searched), id=f"{scenario.name}, global"),
        ]
    return pytest.mark.parametrize("scenario", cases)
