"""The documents that other programs read, declared once: a plan, an explanation of a node, and what a page draws.

Prices are in $/h and never rounded; None (null) is an unknown one. Amounts of resources are requests, not usage.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import field

from karpool.model.reasons import Reason
from karpool.report.costs.costs_document import CostsPart
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.forecast_document import ForecastPart
from karpool.wire.objects import encode_value
from karpool.wire.quantity import Quantity

Method = Literal["Repair", "Emptiness", "Drift", "MultiNodeConsolidation", "SingleNodeConsolidation"]
DisruptionReason = Literal["Empty", "Drifted", "Underutilized", "Unhealthy"]
Decision = Literal["delete", "replace", "terminate-first", "reboot"]
Verdict = Literal["keep", "delete", "replace", "terminate-first", "reboot"]
Amounts = dict[str, Quantity]


class PricesPart(DocumentPart, frozen=True, kw_only=True):
    """Where prices come from; cloud, region and date are empty where the source names none.

    `known` is false for a region whose machines are known, and not what they cost. `discounts` are those of the user
    that some of the prices have.
    """

    source: str
    cloud: str = ""
    region: str = ""
    date: str = ""
    known: bool = True
    discounts: tuple[str, ...] = ()


class TotalsPart(DocumentPart, frozen=True, kw_only=True):
    """A cluster in three numbers; the price is that of the nodes whose price is known, None if there are none."""

    nodes: int
    pods: int
    price_per_hour: float | None
    unpriced_nodes: int = 0


class Savings(DocumentPart, frozen=True, kw_only=True):
    """What a plan saves; `known_per_hour` is what the steps save that come with all their prices."""

    price_per_hour: float | None
    percent: float | None
    known_per_hour: float = 0.0


class ReplacementPart(DocumentPart, frozen=True, kw_only=True):
    """A node that a command launches; `name` is unique in the plan, the instance types are cheapest first."""

    name: str
    node_pool: str
    capacity_type: str
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]
    price_per_hour: float | None


class PlacementPart(DocumentPart, frozen=True, kw_only=True):
    """Where a pod goes; `source` is None for a pod that was pending."""

    pod: str
    source: str | None = field(name="from")
    target: str = field(name="to")


class PlannedCommand(DocumentPart, frozen=True, kw_only=True):
    """One step of a plan.

    `waves` says for each PDB in how many turns its pods can leave; `ended` lists pods without a place to go to, which
    the node's termination grace period ends, and `displaced` those that go where room is left, if any is, because what
    comes once the node is gone does not hold them. `begins`: when rates let it begin at the earliest; None without
    rates.
    """

    step: int
    method: Method
    reason: DisruptionReason
    decision: Decision
    nodes: tuple[str, ...]
    replacements: tuple[ReplacementPart, ...]
    placements: tuple[PlacementPart, ...]
    savings_per_hour: float | None
    disruption_cost: float
    waves: dict[str, int] = {}
    ended: tuple[str, ...] = ()
    displaced: tuple[str, ...] = ()
    begins: datetime | None = None


class NodeVerdict(DocumentPart, frozen=True, kw_only=True):
    """What happens to one of today's nodes, and why; `step` is None for a node that stays.

    `node_pool` is the name of its NodePool or of its node group; `managed_by` tells which, or who else manages it.
    """

    name: str
    node_pool: str
    instance_type: str
    price_per_hour: float | None
    pods: int
    verdict: Verdict
    step: int | None
    reasons: tuple[Reason, ...]
    zone: str = ""
    capacity_type: str = ""
    utilisation: dict[str, float] = {}
    requests: Amounts = {}
    allocatable: Amounts = {}
    managed_by: str = ""


class Unschedulable(DocumentPart, frozen=True, kw_only=True):
    pod: str
    reasons: tuple[Reason, ...]


class BlockerPart(DocumentPart, frozen=True, kw_only=True):
    """What keeps the least possible price up: the code of a reason, by how much, and how many nodes it keeps."""

    code: str
    price_per_hour: float
    nodes: int


class LowerBoundPart(DocumentPart, frozen=True, kw_only=True):
    """The price that no plan can go below, how that is known, and how far above it the price after the plan is."""

    price_per_hour: float
    method: str
    distance_percent: float | None
    blockers: tuple[BlockerPart, ...] = ()


class CurvePart(DocumentPart, frozen=True, kw_only=True):
    """The price after a step, and how many pods were evicted by then; step 0 is the cluster of today.

    The price is that of the nodes whose price is known, None if there are none.
    """

    step: int
    evictions: int
    price_per_hour: float | None


class StopPart(DocumentPart, frozen=True, kw_only=True):
    """A brake that holds a pool, or everything (`node_pool` is None); `until`: when time alone lets go, if it does."""

    code: str
    message: str
    object: str
    node_pool: str | None
    until: datetime | None


class BufferPart(DocumentPart, frozen=True, kw_only=True):
    """The room that a CapacityBuffer has after the plan.

    For how many of its pods there is room, on which nodes, what share of their price that is, and why it asks for none.
    """

    name: str
    pods: int
    placed: int
    nodes: tuple[str, ...]
    price_per_hour: float | None
    reason: str
    message: str


class NodeGroupPart(DocumentPart, frozen=True, kw_only=True):
    """What a plan makes of a node group; sizes that nobody says are None, and so are prices that nobody knows.

    `removed` are its nodes that go, in the order of the steps; `added` counts new ones that are there at the end.
    """

    name: str
    title: str
    label: str
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]
    capacity_types: tuple[str, ...]
    minimum: int | None
    maximum: int | None
    sizes_from: str
    before: int
    after: int
    price_before: float | None
    price_after: float | None
    removed: tuple[str, ...]
    added: int


class FleetPart(DocumentPart, frozen=True, kw_only=True):
    """New nodes by type, what they cost together (None: unknown), and how many pods would find no place on them.

    `capacity_types`: the new nodes by capacity type. `refusal`: of the pods without a place the first, and why it has
    none.
    """

    nodes: int
    instance_types: dict[str, int]
    capacity_types: dict[str, int] = {}
    price_per_hour: float | None
    unplaced_pods: int
    refusal: str = ""


class PoolSuggestionPart(DocumentPart, frozen=True, kw_only=True):
    """A NodePool in the place of node groups; `nodes` and `price_per_hour` are those of the groups today.

    `planned_price_per_hour`: what the groups cost after the steps of the plan.
    """

    name: str
    groups: tuple[str, ...]
    nodes: int
    price_per_hour: float | None
    planned_price_per_hour: float | None
    fleet: FleetPart
    manifest: dict[str, Any]


class GroupSuggestionPart(DocumentPart, frozen=True, kw_only=True):
    """A node group with machines of another type; `nodes` and `price_per_hour` are those of today.

    `planned_price_per_hour`: what the group costs after the steps of the plan.
    """

    name: str
    nodes: int
    price_per_hour: float | None
    planned_price_per_hour: float | None
    fleet: FleetPart


class SuggestionsPart(DocumentPart, frozen=True, kw_only=True):
    """What would hold the pods of node groups for less, if all of them moved."""

    pools: tuple[PoolSuggestionPart, ...]
    groups: tuple[GroupSuggestionPart, ...]


class PoolSizePart(DocumentPart, frozen=True, kw_only=True):
    """What a pool with a fixed number of nodes does about its size by itself; in no sum of the plan.

    `loses`: its surplus nodes; `gets`: how many it launches; `price_per_hour`: by how much that makes it dearer,
    below zero if it saves, None if a price is not known.
    """

    node_pool: str
    loses: tuple[str, ...] = ()
    gets: int = 0
    price_per_hour: float | None = None


class PlanDocument(DocumentPart, frozen=True, kw_only=True):
    """What Karpool would do, step by step, and why the other nodes stay.

    `drains`: the nodes of groups that `karpool compact` would drain if it is left alone without a configuration, in
    order. `suggestions`: what to have instead of groups; None unless that was asked for. `displaced`: pods that wait
    for a node after the last step, because what came in the place of theirs does not hold them.
    """

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["Plan"] = "Plan"
    time: datetime
    before: TotalsPart
    after: TotalsPart
    savings: Savings
    commands: tuple[PlannedCommand, ...]
    nodes: tuple[NodeVerdict, ...]
    unschedulable: tuple[Unschedulable, ...]
    displaced: tuple[str, ...] = ()
    lower_bound: LowerBoundPart | None = None
    curve: tuple[CurvePart, ...] = ()
    stops: tuple[StopPart, ...] = ()
    buffers: tuple[BufferPart, ...] = ()
    groups: tuple[NodeGroupPart, ...] = ()
    drains: tuple[str, ...] = ()
    suggestions: SuggestionsPart | None = None
    warnings: tuple[str, ...] = ()
    """What the input lacks, so that the plan may mislead."""
    prices: tuple[PricesPart, ...] = ()
    costs: tuple[CostsPart, ...] = ()
    """Who pays, by everything that was asked for."""
    pool_sizes: tuple[PoolSizePart, ...] = ()
    """What pools of fixed size do by themselves about a wrong number of nodes."""
    forecast: ForecastPart | None = None
    """What comes of it once kube-scheduler chooses places; None unless that was asked for."""


class ExplainedNodePart(DocumentPart, frozen=True, kw_only=True):
    """What is known of the explained node; an empty name is an unknown one."""

    name: str
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price_per_hour: float | None
    pods: int
    age_seconds: float | None
    managed_by: str = ""


class Utilisation(DocumentPart, frozen=True, kw_only=True):
    requested: Quantity
    allocatable: Quantity
    ratio: float


class RuleResult(DocumentPart, frozen=True, kw_only=True):
    """A rule and what it says of the node; the reason is None when there is nothing more to say."""

    rule: str
    passed: bool
    reason: Reason | None = None


class PodDestination(DocumentPart, frozen=True, kw_only=True):
    """Where a pod of the node would go: a node, a replacement (`new-1`), or nowhere (None), and why."""

    pod: str
    target: str | None = field(name="to")
    reason: Reason | None = None


class AlternativePart(DocumentPart, frozen=True, kw_only=True):
    """A node that would hold pods which find no room elsewhere, as its cheapest type; `name` as in where pods go."""

    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price_per_hour: float | None
    name: str = "new-1"


class GroupPart(DocumentPart, frozen=True, kw_only=True):
    """Nodes that can go together, the explained one included, and what that saves."""

    nodes: tuple[str, ...]
    savings_per_hour: float | None


class Unblock(DocumentPart, frozen=True, kw_only=True):
    condition: str = field(name="if")
    savings_per_hour: float | None


class AllowedUntil(DocumentPart, frozen=True, kw_only=True):
    """A stretch of time, and how many nodes of the pool may go at once in it; None: any number."""

    start: datetime = field(name="from")
    end: datetime = field(name="to")
    allowed: int | None


class InPlanPart(DocumentPart, frozen=True, kw_only=True):
    """What a whole plan does with the node: the step that removes it, or why it stays after all `steps`."""

    verdict: Verdict
    step: int | None
    steps: int
    reasons: tuple[Reason, ...]


class AlonePart(DocumentPart, frozen=True, kw_only=True):
    """What could be done with the node alone in the cluster of today, and what that saves; or what keeps it."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    savings_per_hour: float | None


class ExplanationDocument(DocumentPart, frozen=True, kw_only=True):
    """Everything about one node.

    `alternative` is the first of the `replacements`, which together would hold the pods that find no room elsewhere.
    `calendar`: what its pool's budgets allow in the next week, if that changes. `group`: the nodes with which it can
    go, if it cannot alone; the `replacements` are then those of all of them. Rules, pods and replacements are about the
    cluster of today, as `alone` is; `in_plan` is about a whole plan, None if none was made.
    """

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["Explanation"] = "Explanation"
    time: datetime
    node: ExplainedNodePart
    verdict: Verdict
    utilisation: dict[str, Utilisation]
    rules: tuple[RuleResult, ...]
    pods: tuple[PodDestination, ...]
    alternative: AlternativePart | None
    unblock: tuple[Unblock, ...]
    calendar: tuple[AllowedUntil, ...] = ()
    replacements: tuple[AlternativePart, ...] = ()
    group: GroupPart | None = None
    in_plan: InPlanPart | None = None
    alone: AlonePart | None = None
    prices: tuple[PricesPart, ...] = ()


class DrawnPod(DocumentPart, frozen=True, kw_only=True):
    """A pod as a slice of its node: its shares of the node's allocatable CPU and memory, 0 to 1.

    `workload` is its controller, such as "Deployment cart"; pods of DaemonSets come and go with their node.
    """

    name: str
    cpu: float
    memory: float
    workload: str = ""
    daemon: bool = False


class DrawnNode(DocumentPart, frozen=True, kw_only=True):
    """A node as a bar: its allocatable cores and bytes, its price, and the pods that fill it."""

    name: str
    cpu: float
    memory: float
    price_per_hour: float | None
    pods: tuple[DrawnPod, ...]
    node_pool: str = ""
    instance_type: str = ""


class Drawing(DocumentPart, frozen=True, kw_only=True):
    """The cluster before the plan and after it, as a page draws them; not part of the JSON contract.

    `cluster` is its name, as whoever asked calls it; empty if it has none.
    """

    before: tuple[DrawnNode, ...]
    after: tuple[DrawnNode, ...]
    cluster: str = ""


def to_json(document: DocumentPart) -> bytes:
    return msgspec.json.encode(document, enc_hook=encode_value)
