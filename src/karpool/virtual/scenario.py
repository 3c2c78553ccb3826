"""Scenarios: everything about a virtual cluster, as a YAML file holds it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from karpool.compaction.config import Config
from karpool.disruption.brakes.readiness import Pacing
from karpool.disruption.repair.policies import RepairPolicy
from karpool.disruption.settings import MOST_EFFORT, MOST_SEED, DisruptionSettings
from karpool.model.capacity_buffer import CapacityBuffer
from karpool.model.devices import DeviceClass, ResourceClaimTemplate
from karpool.model.nodepool import NodePool
from karpool.model.pod import PodSpec
from karpool.model.scheduling import Taint
from karpool.model.workloads import PodDisruptionBudget
from karpool.virtual.curves import Curve, ScenarioPart
from karpool.virtual.duration_limits import Delay, Interval, Stretch
from karpool.virtual.old_pools import with_node_pools
from karpool.wire.duration import parse_duration
from karpool.wire.merge_patch import merged
from karpool.wire.objects import Timestamp, decode_value, encode_value
from karpool.wire.quantity import Quantity
from karpool.wire.yaml_documents import yaml_documents

ALL_POOLS: Final = "*"
GROUP: Final = "karpool.sh/virtual-node-group"
"""The label of nodes that the stand-in for Cluster Autoscaler looks after."""
RECORDED: Final = "recorded"
"""What the run of a recorded cluster itself is called beside those of policies."""
MONDAY: Final = datetime(2025, 1, 6, tzinfo=UTC)
Positive = Annotated[int, msgspec.Meta(ge=0)]


class Protection(ScenarioPart):
    """The PodDisruptionBudget of a workload."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class ScenarioWorkload(ScenarioPart):
    """Pods of one kind: what each requests, and how many there are over time.

    The replicas of a Job are jobs that start in an hour, each of which runs for `runs`; a DaemonSet has none.
    """

    name: str
    kind: Literal["Deployment", "StatefulSet", "Job", "DaemonSet"] = "Deployment"
    namespace: str = "default"
    replicas: Curve | Positive = 1
    cpu: Quantity | None = None
    memory: Quantity | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: PodSpec = PodSpec()
    protection: Protection | None = None
    runs: Stretch = parse_duration("10m")
    deploys: tuple[Delay, ...] = ()
    deploys_per_day: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    start_time: Delay | None = None
    """How long a pod takes from being bound to being ready, if not as in the timings."""
    stop_time: Delay | None = None


class Shortage(ScenarioPart, tag="shortage", tag_field="kind"):
    """Instances that are not available for a while; empty lists stand for all."""

    start: Delay
    length: Stretch
    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[Literal["on-demand", "spot", "reserved"], ...] = ()


class Interruptions(ScenarioPart, tag="interruptions", tag_field="kind"):
    """Spot nodes are interrupted, each after so long on average, with a short warning."""

    every: Interval
    warning: Delay = parse_duration("2m")
    start: Delay = parse_duration("0s")


class Outage(ScenarioPart, tag="outage", tag_field="kind"):
    """The controller is down for a while, and loses its memory."""

    start: Delay
    length: Stretch


class Breakdown(ScenarioPart, tag="breakdown", tag_field="kind"):
    """Nodes break: a condition of theirs changes, until they are rebooted or replaced."""

    start: Delay
    nodes: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How many break, those of the first names."""
    condition: str = "Ready"
    status: Literal["True", "False", "Unknown"] = "False"
    reason: str = ""
    length: Stretch | None = None
    """After how long they are well by themselves, if ever."""
    survives_reboots: bool = False
    """Whether a reboot does not help."""


class SpotHistorySettings(ScenarioPart):
    """Prices of spot markets over time, from a file of changes, and how interruptions follow from them."""

    file: str
    """A table `time,zone,type,usd_per_hour`, beside the scenario."""
    start: Timestamp | None = None
    """The time of the history with which the run begins."""
    zones: dict[str, str] = {}
    """By zones of the catalogue, what the history calls them."""
    interruptions_per_jump: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] = 1.0
    """How often an instance is interrupted after its price has doubled at once; for other rises in proportion."""
    within: Interval = parse_duration("1h")
    """For how long after a rise instances are interrupted."""
    warning: Delay = parse_duration("2m")


Fault = Shortage | Interruptions | Outage | Breakdown


class ScenarioNodeGroup(ScenarioPart):
    """Nodes of one type that a Cluster Autoscaler adds and removes."""

    name: str
    instance_type: str
    size: Positive = 0
    least: Positive = 0
    most: Positive = 1000
    zones: tuple[str, ...] = ()
    capacity_type: str = "on-demand"
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    local_storage_stays: bool = True
    """Whether data that a pod keeps on a node keeps the node, as Cluster Autoscaler has it; GKE's and AKS's do not."""
    learned: bool = False
    """Whether nobody wrote it: it is that of a cluster, and does not grow by what the catalogue does not offer."""


class Timings(ScenarioPart):
    launch: Delay = parse_duration("10s")
    registration: Delay = parse_duration("20s")
    readiness: Delay = parse_duration("10s")
    termination: Delay = parse_duration("30s")
    pod_start: Delay = parse_duration("5s")
    pod_stop: Delay = parse_duration("2s")
    spread: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.2
    """The jitter of each of these to either side, as a share, drawn per object."""
    reaction: Delay = parse_duration("1s")
    """How long workload controllers take to react to a change."""
    poll: Interval = parse_duration("10s")
    """How often the controller makes a decision pass."""
    patience: Delay = parse_duration("10s")
    """The longest time between passes that give no command, doubled each time; more than `poll` runs quicker."""
    batch_idle: Delay = parse_duration("1s")
    batch_most: Delay = parse_duration("10s")
    validation: Delay = parse_duration("15s")
    sample: Interval = parse_duration("5m")


class AutoscalerSettings(ScenarioPart):
    """When Cluster Autoscaler finds a node unneeded, and how often it scans."""

    scale_down_utilization_threshold: float = 0.5
    scale_down_unneeded_time: Delay = parse_duration("10m")
    scale_down_delay_after_add: Delay = parse_duration("10m")
    scan_interval: Interval = parse_duration("10s")


class Decisions(ScenarioPart):
    """Options of decisions, as on the command line."""

    order: Literal["cost", "ratio"] = "ratio"
    partition: Literal["none", "pool", "auto"] = "auto"
    search: str = DisruptionSettings().search
    effort: Annotated[int, msgspec.Meta(ge=0, le=MOST_EFFORT)] = DisruptionSettings().effort
    eviction_price: float | None = None
    weights: Literal["prefer", "strict"] = "prefer"
    spot_to_spot: bool = False
    spot_floor: Positive = 15
    ignore_budgets: bool = False
    ignore_dra_requests: bool = True
    terminate_first_repair: bool = False
    terminate_first_drift: bool = False
    pod_deletion_costs: bool = False
    foresees_scheduler: bool = False
    """Whether commands are foreseen as the scheduler of the scenario carries them out."""


Percent = Annotated[float, msgspec.Meta(ge=0.0, le=100.0)]


class DrainPaceLimits(ScenarioPart):
    """How many pods may be away while nodes drain, as on the command line; 0: any number."""

    workload_percent: Percent = Pacing().workload_percent
    pods_percent: Percent = Pacing().pods_percent
    ready_within: Delay = parse_duration("5m")


class Policy(ScenarioPart):
    """One way to run the cluster: changes to the pools (merged as JSON merge patches, `*` for all) and to decisions."""

    pools: dict[str, dict[str, Any]] = {}
    decisions: Decisions = Decisions()
    pace: DrainPaceLimits = DrainPaceLimits()
    scheduler: Literal["LeastAllocated", "MostAllocated"] | None = None
    disruption: bool = True
    """Whether Karpool disrupts nodes at all; it provisions in any case."""
    node_groups: bool = True
    """Whether the scenario's node groups and their autoscaler are there."""
    repair_policies: tuple[RepairPolicy, ...] = ()
    """Which conditions of nodes are repaired, and how; none if there are no policies."""
    compactor: Config | None = None
    """The configuration of the node compactor, if one runs."""


class Scenario(ScenarioPart):
    name: str = ""
    description: str = ""
    start: Timestamp = MONDAY
    length: Interval = parse_duration("24h")
    warm_up: Delay = parse_duration("0s")
    """Time before measuring starts, in which the cluster fills."""
    seed: Annotated[int, msgspec.Meta(ge=-MOST_SEED, le=MOST_SEED)] = 0
    cluster: tuple[str, ...] = ()
    """Files with a real cluster to start with, as `karpool plan -f` reads them."""
    recording: str = ""
    """A recording to replay: the cluster to start with, and what it asked for from then on."""
    pool_label: str = ""
    """The label of the cluster's nodes that names their pool or group, if it is not that of a cloud."""
    groups: str = ""
    """A file that says how small and large the cluster's node groups may be, as `--groups` takes it."""
    spot_history: SpotHistorySettings | None = None
    catalog: str | None = None
    node_fee: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    prices: dict[str, Annotated[float, msgspec.Meta(ge=0.0)]] = {}
    """Prices in $/h of types (`TYPE` or `TYPE:CAPACITY_TYPE`) that differ from the catalogue's."""
    pools: tuple[NodePool, ...] = ()
    workloads: tuple[ScenarioWorkload, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    buffers: tuple[CapacityBuffer, ...] = ()
    """Room to keep for pods of the scenario's Deployments and StatefulSets."""
    device_classes: tuple[DeviceClass, ...] = ()
    claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    """Claims on devices that pods of workloads ask for; the catalogue says which devices nodes have."""
    node_groups: tuple[ScenarioNodeGroup, ...] = ()
    faults: tuple[Fault, ...] = ()
    policies: dict[str, Policy] = {}
    timings: Timings = Timings()
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    scheduler: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"


def begins_with_cluster(scenario: Scenario) -> bool:
    """Whether there are more pools and workloads than those that the scenario names."""
    return bool(scenario.cluster or scenario.recording)


class ScenarioError(Exception):
    """A scenario that cannot be simulated with its catalogue: the field, and why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)  # both, because worker processes pickle it
        self.field = field

    def __str__(self) -> str:
        return str(self.args[1])


def no_scenario(documents: Sequence[Any]) -> str:
    """Why documents are no scenario at all; empty if they may be one."""
    objects = sum(isinstance(entry, dict) and {"apiVersion", "kind"} <= entry.keys() for entry in documents)
    if objects:
        are = "is a Kubernetes object" if len(documents) == 1 else "has Kubernetes objects"
        return f"{are}, not a scenario; name it in one, as `cluster: [FILE]`"
    if len(documents) != 1 or not isinstance(documents[0], dict):
        return "expected one document, a map with pools, workloads and policies"
    return ""


def read_scenario(text: str | bytes) -> Scenario:
    """A scenario from YAML; whatever is wrong is a `msgspec.ValidationError` that names the field."""
    documents = list(yaml_documents(text.encode() if isinstance(text, str) else text))
    if what := no_scenario(documents):
        raise msgspec.ValidationError(what)
    return msgspec.convert(with_node_pools(documents[0]), type=Scenario, dec_hook=decode_value, str_keys=True)


def written_policies(text: str | bytes) -> dict[str, Any]:
    """The policies of a scenario that can be read, as they are written."""
    documents = list(yaml_documents(text.encode() if isinstance(text, str) else text))
    found = documents[0].get("policies")
    return found if isinstance(found, dict) else {}


def patched(pools: tuple[NodePool, ...], policy: Policy) -> tuple[NodePool, ...]:
    return tuple(_patched(pool, policy) for pool in pools)


def _patched(pool: NodePool, policy: Policy) -> NodePool:
    patches = [policy.pools[name] for name in patches_of(pool, policy)]
    if not patches:
        return pool
    plain = msgspec.to_builtins(pool, enc_hook=encode_value)
    for patch in patches:
        plain = merged(plain, patch)
    return msgspec.convert(plain, type=NodePool, dec_hook=decode_value, str_keys=True)


def patches_of(pool: NodePool, policy: Policy) -> list[str]:
    """The keys under which a policy changes a pool, in the order in which the changes are merged."""
    return [name for name in (ALL_POOLS, pool.name) if name in policy.pools]
