"""Pods, their constraints, and what stands over them: DaemonSets, budgets, namespaces."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from karpool.model.labels import (
    HOSTNAME,
    ZONE,
)
from karpool.model.pod import ClaimVolume, Container, ContainerPort, Pod, PodSpec, PodStatus, Resources, Volume
from karpool.model.scheduling import (
    Affinity,
    NodeAffinity,
    NodeExpression,
    NodeSelector,
    NodeTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedPodAffinityTerm,
)
from karpool.model.selectors import LabelSelector
from karpool.model.workloads import (
    BudgetSpec,
    BudgetStatus,
    DaemonSet,
    Namespace,
    PodDisruptionBudget,
    PodTemplateSpec,
    WorkloadSpec,
)
from karpool.wire.objects import Condition, Metadata, OwnerReference
from tests.factories.values import LONG_AGO, Amount, Labels, Rule, amounts, selecting, toleration


def node_term(*rules: Rule) -> NodeTerm:
    """Rules over node labels that hold together."""
    return NodeTerm(match_expressions=tuple(NodeExpression(key=r[0], operator=r[1], values=r[2:]) for r in rules))


def spread(
    labels: Labels | LabelSelector | None,
    key: str = ZONE,
    max_skew: int = 1,
    *,
    when: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule",
    min_domains: int | None = None,
    match_label_keys: Sequence[str] = (),
    affinity_policy: Literal["Honor", "Ignore"] = "Honor",
    taints_policy: Literal["Honor", "Ignore"] = "Ignore",
) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=max_skew,
        topology_key=key,
        when_unsatisfiable=when,
        label_selector=selecting(labels),
        min_domains=min_domains,
        match_label_keys=tuple(match_label_keys),
        node_affinity_policy=affinity_policy,
        node_taints_policy=taints_policy,
    )


def affinity_to(
    labels: Labels | LabelSelector | None,
    key: str = HOSTNAME,
    *,
    namespaces: Sequence[str] = (),
    namespace_selector: Labels | LabelSelector | None = None,
    match_label_keys: Sequence[str] = (),
    mismatch_label_keys: Sequence[str] = (),
) -> PodAffinityTerm:
    """A term about pods with these labels; `pod(near=…)` makes it a demand to be near, `pod(anti=…)` to be far."""
    return PodAffinityTerm(
        topology_key=key,
        label_selector=selecting(labels),
        namespaces=tuple(namespaces),
        namespace_selector=selecting(namespace_selector),
        match_label_keys=tuple(match_label_keys),
        mismatch_label_keys=tuple(mismatch_label_keys),
    )


anti_affinity = affinity_to


def affinity(
    *,
    terms: Sequence[NodeTerm] = (),
    prefer: Sequence[tuple[int, NodeTerm]] = (),
    near: Sequence[PodAffinityTerm] = (),
    anti: Sequence[PodAffinityTerm] = (),
    prefer_near: Sequence[tuple[int, PodAffinityTerm]] = (),
    prefer_anti: Sequence[tuple[int, PodAffinityTerm]] = (),
) -> Affinity | None:
    """All affinities of a pod; None when there is none."""
    if not (terms or prefer or near or anti or prefer_near or prefer_anti):
        return None
    preferred = tuple(PreferredNodeTerm(weight=weight, preference=term) for weight, term in prefer)
    required = NodeSelector(node_selector_terms=tuple(terms)) if terms else None
    return Affinity(
        node_affinity=NodeAffinity(required=required, preferred=preferred) if terms or prefer else None,
        pod_affinity=_pod_affinity(near, prefer_near),
        pod_anti_affinity=_pod_affinity(anti, prefer_anti),
    )


def _pod_affinity(
    required: Sequence[PodAffinityTerm], preferred: Sequence[tuple[int, PodAffinityTerm]]
) -> PodAffinity | None:
    weighted = tuple(WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in preferred)
    return PodAffinity(required=tuple(required), preferred=weighted) if required or weighted else None


def host_port(port: int | str | ContainerPort) -> ContainerPort:
    """A port of the host: `8080`, `"8080/UDP"` or `"10.0.0.1:8080"`."""
    if isinstance(port, ContainerPort):
        return port
    address, _, protocol = str(port).partition("/")
    ip, _, number = address.rpartition(":")
    return ContainerPort(container_port=int(number), host_port=int(number), host_ip=ip, protocol=protocol or "TCP")


def pod(
    name: str = "web-1",
    *,
    cpu: Amount | None = "500m",
    memory: Amount | None = "1Gi",
    requests: Mapping[str, Amount] | None = None,
    node: str | None = None,
    namespace: str = "default",
    labels: Labels | None = None,
    annotations: Labels | None = None,
    owner: str | None = "ReplicaSet",
    selector: Labels | None = None,
    require: Sequence[Rule] = (),
    terms: Sequence[NodeTerm] = (),
    prefer: Sequence[tuple[int, NodeTerm]] = (),
    near: Sequence[PodAffinityTerm] = (),
    anti: Sequence[PodAffinityTerm] = (),
    prefer_near: Sequence[tuple[int, PodAffinityTerm]] = (),
    prefer_anti: Sequence[tuple[int, PodAffinityTerm]] = (),
    tolerations: Sequence[Toleration | str] = (),
    spread: Sequence[SpreadConstraint] = (),
    ports: Sequence[int | str | ContainerPort] = (),
    claims: Sequence[str] = (),
    volumes: Sequence[Volume] = (),
    init_containers: Sequence[Container] = (),
    overhead: Mapping[str, Amount] | None = None,
    priority: int | None = None,
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] | None = None,
    pending: bool = False,
    nominated: str = "",
    ready: bool = True,
    created: datetime = LONG_AGO,
    started: datetime | None = None,
    deleted: datetime | None = None,
    grace_seconds: int | None = None,
) -> Pod:
    """A pod; labels default to `app: <name without its last part>`; `pending` makes it one the scheduler gave up on."""
    requested = amounts({"cpu": cpu, "memory": memory, **(requests or {})})
    exposed = tuple(host_port(port) for port in ports)
    named = tuple(Volume(name=claim, persistent_volume_claim=ClaimVolume(claim_name=claim)) for claim in claims)
    demanded = (*terms, *([node_term(*require)] if require else []))
    return Pod(
        metadata=_pod_metadata(
            name, namespace, labels, annotations=annotations or {}, owner=owner, created=created, deleted=deleted
        ),
        spec=PodSpec(
            node_name=node or "",
            node_selector=dict(selector or {}),
            affinity=affinity(
                terms=demanded, prefer=prefer, near=near, anti=anti, prefer_near=prefer_near, prefer_anti=prefer_anti
            ),
            tolerations=tuple(toleration(entry) if isinstance(entry, str) else entry for entry in tolerations),
            topology_spread_constraints=tuple(spread),
            containers=(Container(name="main", resources=Resources(requests=requested), ports=exposed),),
            init_containers=tuple(init_containers),
            overhead=amounts(overhead or {}),
            priority=priority,
            termination_grace_period_seconds=grace_seconds,
            volumes=(*named, *volumes),
        ),
        status=PodStatus(
            phase=phase or ("Running" if node else "Pending"),
            conditions=_pod_conditions(pending=pending, ready=ready and bool(node)),
            start_time=started or (created if node else None),
            nominated_node_name=nominated,
        ),
    )


def _pod_metadata(
    name: str,
    namespace: str,
    labels: Labels | None,
    *,
    annotations: Labels,
    owner: str | None,
    created: datetime,
    deleted: datetime | None,
) -> Metadata:
    base = name.rpartition("-")[0] or name
    return Metadata(
        name=name,
        namespace=namespace,
        uid=f"{namespace}/{name}",
        labels=dict({"app": base} if labels is None else labels),
        annotations=dict(annotations),
        owner_references=(OwnerReference(kind=owner, name=base, controller=True),) if owner else (),
        creation_timestamp=created,
        deletion_timestamp=deleted,
    )


def _pod_conditions(*, pending: bool, ready: bool) -> tuple[Condition, ...]:
    if pending:
        return (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
    return (Condition(type="Ready", status="True" if ready else "False"),)


def init_container(*, cpu: Amount | None = None, memory: Amount | None = None, sidecar: bool = False) -> Container:
    resources = Resources(requests=amounts({"cpu": cpu, "memory": memory}))
    return Container(name="init", resources=resources, restart_policy="Always" if sidecar else "")


def pdb(
    name: str,
    labels: Labels | LabelSelector | None,
    *,
    namespace: str = "default",
    allowed: int = 1,
    healthy: int = 0,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    unhealthy_policy: str = "",
) -> PodDisruptionBudget:
    """A budget over the pods with these labels of which `allowed` more may go now."""
    return PodDisruptionBudget(
        metadata=Metadata(name=name, namespace=namespace),
        spec=BudgetSpec(
            selector=selecting(labels),
            min_available=min_available,
            max_unavailable=max_unavailable,
            unhealthy_pod_eviction_policy=unhealthy_policy,
        ),
        status=BudgetStatus(disruptions_allowed=allowed, current_healthy=healthy, expected_pods=healthy),
    )


def daemon_set(name: str = "agent", *, namespace: str = "kube-system", **template: Any) -> DaemonSet:
    """A DaemonSet; the keywords are those of `pod` and describe its pods."""
    made = pod(f"{name}-x", namespace=namespace, **template)
    metadata = Metadata(labels=made.metadata.labels, annotations=made.metadata.annotations)
    return DaemonSet(
        metadata=Metadata(name=name, namespace=namespace, uid=f"daemon-set-{name}", creation_timestamp=LONG_AGO),
        spec=WorkloadSpec(
            selector=selecting(made.metadata.labels), template=PodTemplateSpec(metadata=metadata, spec=made.spec)
        ),
    )


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=Metadata(name=name, labels=labels))
