"""Nodes, the claims behind them, and pools."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from karpool.catalog.instance_types import InstanceType
from karpool.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODEPOOL,
    ON_DEMAND,
    OS,
    REGISTERED,
    TERMINATION_FINALIZER,
    ZONE,
)
from karpool.model.node import Node, NodeSpec, NodeStatus, NodeSystemInfo
from karpool.model.nodepool import (
    Budget,
    Disruption,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClassRef,
    NodePool,
    NodePoolSpec,
    PoolRequirement,
    PoolTemplate,
    TemplateMetadata,
    TemplateSpec,
)
from karpool.model.scheduling import (
    Taint,
)
from karpool.wire.duration import parse_duration
from karpool.wire.objects import Condition, Metadata, OwnerReference
from tests.factories.values import LONG_AGO, Z1, Amount, Labels, Rule, amounts, taints_of

NODE_CLASS: Final = NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")


def node(
    name: str = "n1",
    *,
    type: str = "m6i.xlarge",  # noqa: A002 - the word everybody uses for it
    pool: str | None = "default",
    zone: str | None = "us-east-1a",
    capacity_type: str | None = ON_DEMAND,
    arch: str = "amd64",
    cpu: Amount | None = "4",
    memory: Amount | None = "16Gi",
    pods: int | None = 110,
    resources: Mapping[str, Amount] | None = None,
    capacity: Mapping[str, Amount] | None = None,
    labels: Labels | None = None,
    annotations: Labels | None = None,
    taints: Sequence[Taint | str] = (),
    ready: bool = True,
    registered: bool = True,
    initialized: bool = True,
    cordoned: bool = False,
    created: datetime = LONG_AGO,
    deleted: datetime | None = None,
    conditions: Sequence[Condition] = (),
    boot_id: str = "",
) -> Node:
    """A node; `pool=None` makes it one that nobody manages. Capacity equals allocatable unless told otherwise."""
    managed = pool is not None
    known: dict[str, str | None] = {
        HOSTNAME: name,
        INSTANCE_TYPE: type,
        ARCH: arch,
        OS: "linux",
        ZONE: zone,
        CAPACITY_TYPE: capacity_type if managed else None,
        NODEPOOL: pool,
        REGISTERED: "true" if managed and registered else None,
        INITIALIZED: "true" if managed and initialized else None,
        **(labels or {}),
    }
    size = amounts({"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})})
    return Node(
        metadata=Metadata(
            name=name,
            uid=f"node-{name}",
            labels={key: value for key, value in known.items() if value is not None},
            annotations=dict(annotations or {}),
            creation_timestamp=created,
            deletion_timestamp=deleted,
            finalizers=(TERMINATION_FINALIZER,) if managed else (),
        ),
        spec=NodeSpec(provider_id=f"fake://{name}", taints=taints_of(taints), unschedulable=cordoned),
        status=NodeStatus(
            capacity={**size, **amounts(capacity or {})},
            allocatable=size,
            conditions=(
                Condition(type="Ready", status="True" if ready else "False", last_transition_time=created),
                *conditions,
            ),
            node_info=NodeSystemInfo(boot_id=boot_id),
        ),
    )


def node_of(
    name: str,
    entry: InstanceType,
    *,
    zone: str = Z1,
    capacity_type: str = ON_DEMAND,
    pool: str = "default",
    **rest: Any,
) -> Node:
    """A node of an instance type: its labels, its size; keywords as of `node`."""
    single = {key: next(iter(r.values)) for key, r in entry.requirements.items() if len(r.values) == 1}
    labels = {key: value for key, value in single.items() if not entry.requirements[key].complement}
    labels |= {ZONE: zone, CAPACITY_TYPE: capacity_type, NODEPOOL: pool, **rest.pop("labels", {})}
    sizes = {
        "resources": {key: str(value) for key, value in entry.allocatable.items()},
        "capacity": {key: str(value) for key, value in entry.capacity.items()},
    }
    return node(name, type=entry.name, pool=pool, cpu=None, memory=None, pods=None, labels=labels, **{**sizes, **rest})


def node_claim(
    name: str = "n1",
    *,
    pool: str = "default",
    labels: Labels | None = None,
    annotations: Labels | None = None,
    requirements: Sequence[Rule | PoolRequirement] = (),
    taints: Sequence[Taint | str] = (),
    startup_taints: Sequence[Taint | str] = (),
    node_name: str = "",
    capacity: Mapping[str, Amount] | None = None,
    launched: bool = True,
    registered: bool = False,
    initialized_at: datetime | None = None,
    last_pod_event: datetime | None = None,
    drifted: datetime | bool = False,
    consolidatable: bool | None = None,
    terminating: bool = False,
    expire_after: str = "Never",
    termination_grace_period: str | None = None,
    created: datetime = LONG_AGO,
    deleted: datetime | None = None,
) -> NodeClaim:
    """A claim; without `node_name`, one whose node has not come yet."""
    size = amounts(capacity or {})
    flags: dict[str, datetime | bool | None] = {
        "Launched": launched,
        "Registered": registered,
        "Initialized": initialized_at or False,
        "Drifted": drifted or None,
        "Consolidatable": consolidatable,
        "InstanceTerminating": terminating or None,
    }
    grace = None if termination_grace_period is None else parse_duration(termination_grace_period)
    return NodeClaim(
        metadata=Metadata(
            name=name,
            uid=f"claim-{name}",
            labels={NODEPOOL: pool, **(labels or {})},
            annotations=dict(annotations or {}),
            creation_timestamp=created,
            deletion_timestamp=deleted,
            finalizers=(TERMINATION_FINALIZER,),
            owner_references=(OwnerReference(kind="NodePool", name=pool, api_version="karpenter.sh/v1"),),
        ),
        spec=NodeClaimSpec(
            requirements=_pool_requirements(requirements),
            taints=taints_of(taints),
            startup_taints=taints_of(startup_taints),
            node_class_ref=NODE_CLASS,
            expire_after=parse_duration(expire_after),
            termination_grace_period=grace,
        ),
        status=NodeClaimStatus(
            node_name=node_name,
            provider_id=f"fake://{name}" if launched else "",
            capacity=size,
            allocatable=size,
            conditions=_claim_conditions(flags, created),
            last_pod_event_time=last_pod_event,
        ),
    )


def _claim_conditions(flags: Mapping[str, datetime | bool | None], since: datetime) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=kind,
            status="True" if flag else "False",
            reason=kind,
            last_transition_time=flag if isinstance(flag, datetime) else since,
        )
        for kind, flag in flags.items()
        if flag is not None
    )


def claim_for(node: Node, **rest: Any) -> NodeClaim:
    """The claim behind a node, as old and as far as the node is; keywords as of `node_claim`."""
    labels = node.metadata.labels
    created = rest.pop("created", node.metadata.creation_timestamp)
    initialized = created if labels.get(INITIALIZED) == "true" else None
    defaults: dict[str, Any] = {
        "pool": labels.get(NODEPOOL, "default"),
        "labels": {key: value for key, value in labels.items() if key not in (HOSTNAME, REGISTERED, INITIALIZED)},
        "taints": node.spec.taints,
        "node_name": node.name,
        "capacity": {key: str(value) for key, value in node.status.capacity.items()},
        "registered": labels.get(REGISTERED) == "true",
        "initialized_at": initialized,
        "last_pod_event": created,
    }
    return node_claim(node.name, created=created, **{**defaults, **rest})


def _pool_requirements(listed: Sequence[Rule | PoolRequirement]) -> tuple[PoolRequirement, ...]:
    return tuple(
        entry
        if isinstance(entry, PoolRequirement)
        else PoolRequirement(key=entry[0], operator=entry[1], values=entry[2:])
        for entry in listed
    )


def node_pool(
    name: str = "default",
    *,
    requirements: Sequence[Rule | PoolRequirement] = (),
    labels: Labels | None = None,
    annotations: Labels | None = None,
    taints: Sequence[Taint | str] = (),
    startup_taints: Sequence[Taint | str] = (),
    weight: int | None = None,
    limits: Mapping[str, Amount] | None = None,
    replicas: int | None = None,
    budgets: Sequence[Budget | str | int] = ("100%",),
    consolidate_after: str = "0s",
    policy: str = "WhenEmptyOrUnderutilized",
    grace_period: str | None = None,
    expire_after: str = "Never",
    termination_grace_period: str | None = None,
    node_class: NodeClassRef = NODE_CLASS,
) -> NodePool:
    """A pool that may disrupt all its nodes at once, unless told otherwise; a rule is (key, operator, values…)."""
    disruption = Disruption(
        consolidate_after=parse_duration(consolidate_after),
        consolidation_policy=policy,
        consolidation_grace_period=None if grace_period is None else parse_duration(grace_period),
        budgets=tuple(entry if isinstance(entry, Budget) else Budget(nodes=entry) for entry in budgets),
    )
    spec = TemplateSpec(
        requirements=_pool_requirements(requirements),
        taints=taints_of(taints),
        startup_taints=taints_of(startup_taints),
        node_class_ref=node_class,
        expire_after=parse_duration(expire_after),
        termination_grace_period=None if termination_grace_period is None else parse_duration(termination_grace_period),
    )
    return NodePool(
        metadata=Metadata(
            name=name, uid=f"pool-{name}", annotations=dict(annotations or {}), creation_timestamp=LONG_AGO
        ),
        spec=NodePoolSpec(
            template=PoolTemplate(metadata=TemplateMetadata(labels=dict(labels or {})), spec=spec),
            disruption=disruption,
            limits=amounts(limits or {}),
            weight=weight,
            replicas=replicas,
        ),
    )
