"""The plain facts that a verdict stands on, and how to get them from Kubernetes objects."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final

from karpool.model.labels import CAPACITY_TYPE, HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED, ZONE
from karpool.model.node import CSINode, Node
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodeClaim, NodePool, PoolRequirement
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.requirements import Requirements
from karpool.model.scheduling import NodeExpression, NodeTerm, Taint
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.wire.quantity import Quantity

Amounts = Mapping[str, Quantity]
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
EPHEMERAL: Final = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    }
)


@dataclass(frozen=True)
class Option:
    """One concrete thing that a machine can be."""

    name: str
    labels: Mapping[str, str]
    allocatable: Amounts
    capacity: Amounts


@dataclass(frozen=True)
class Machine:
    """A node: a real one is one option; a new one may still turn out to be any of several."""

    name: str
    options: tuple[Option, ...]
    taints: tuple[Taint, ...] = ()
    new: bool = False
    leaving: bool = False
    """Whether it is being deleted: its pods are there, but no more come."""
    expected: bool = False
    """Whether there is only a claim yet, so that no rule knows of its domains before a pod is in them."""
    volume_limits: Mapping[str, int] = field(default_factory=dict)

    def domains(self, key: str) -> frozenset[str]:
        """The values that a label may have here; several while it is undecided, none if it is missing."""
        if key == HOSTNAME and self.new:
            return frozenset({self.name})
        return frozenset(option.labels[key] for option in self.options if key in option.labels)

    @property
    def pool(self) -> str:
        """The machine's NodePool, or nothing."""
        return self.options[0].labels.get(NODEPOOL, "")


@dataclass(frozen=True)
class BoundPod:
    """A pod on a machine, the machine as it was when the pod was placed."""

    pod: Pod
    machine: Machine


@dataclass(frozen=True)
class Placement:
    """A step of a run: a pod goes to a machine; `machine` is how that one looks with the pod on it."""

    pod: Pod
    machine: Machine


@dataclass(frozen=True)
class State:
    """A cluster at one moment, and what it could still get: templates of new machines."""

    machines: Mapping[str, Machine] = field(default_factory=dict)
    bound_pods: tuple[BoundPod, ...] = ()
    templates: tuple[Machine, ...] = ()
    daemons: tuple[Pod, ...] = ()
    limits: Mapping[str, Amounts] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)

    def pods_on(self, name: str) -> list[Pod]:
        """The pods on a machine."""
        return [bound.pod for bound in self.bound_pods if bound.machine.name == name]


def with_pod_bound(state: State, placement: Placement) -> State:
    """The state after a placement."""
    machine = placement.machine
    return replace(
        state,
        machines={**state.machines, machine.name: machine},
        bound_pods=(*state.bound_pods, BoundPod(placement.pod, machine)),
    )


def machine_of(node: Node, *, claim: NodeClaim | None = None, csi: CSINode | None = None) -> Machine:
    """A real node. Until it is initialized, taints that will vanish do not count and the claim fills in its size."""
    spec, status = node.spec, node.status
    taints, allocatable, capacity = spec.taints, dict(status.allocatable), dict(status.capacity)
    if spec.unschedulable and UNSCHEDULABLE not in taints:
        taints = (*taints, UNSCHEDULABLE)
    if claim is not None and node.metadata.labels.get(INITIALIZED) != "true":
        vanishing = {(taint.key, taint.effect) for taint in claim.spec.startup_taints} | EPHEMERAL
        taints = tuple(
            t for t in taints if (t.key, t.effect) not in vanishing and not t.key.startswith("readiness.k8s.io/")
        )
        allocatable = {**claim.status.allocatable, **{k: v for k, v in allocatable.items() if v.nano}}
        capacity = {**claim.status.capacity, **{k: v for k, v in capacity.items() if v.nano}}
    labels = {HOSTNAME: node.name, **node.metadata.labels}
    limits = {d.name: d.allocatable.count for d in (csi.spec.drivers if csi else ()) if d.allocatable.count is not None}
    going = claim.metadata.deletion_timestamp if claim is not None else node.metadata.deletion_timestamp
    return Machine(
        node.name,
        (Option(node.name, labels, allocatable, capacity),),
        taints,
        leaving=going is not None,
        volume_limits=limits,
    )


def machine_to_come(claim: NodeClaim) -> Machine:
    """A claim whose node has not appeared yet: it will have the claim's labels and size."""
    rules = claim.spec.requirements
    settled = {rule.key: rule.values[0] for rule in rules if rule.operator == "In" and len(rule.values) == 1}
    labels = {HOSTNAME: claim.name, **settled, **claim.metadata.labels}
    option = Option(claim.name, labels, claim.status.allocatable, claim.status.capacity)
    leaving = claim.metadata.deletion_timestamp is not None
    return Machine(claim.name, (option,), claim.spec.taints, leaving=leaving, expected=True)


def template_of(pool: NodePool, types: Iterable[Any], name: str = "") -> Machine | None:
    """What a pool could open: every type in every available offering; None if nothing is left.

    A type is anything with name, requirements, capacity, allocatable and offerings. Keys with several values (the
    operating system of a type, an `In` of the pool) give one option for each.
    """
    options = tuple(option for entry in types for option in _options(pool, entry))
    template = pool.spec.template.spec
    return Machine(name or f"new {pool.name}", options, template.taints, new=True) if options else None


def _options(pool: NodePool, entry: Any) -> Iterator[Option]:
    reference = pool.spec.template.spec.node_class_ref
    own = {} if isinstance(pool, NodeGroup) else {NODEPOOL: pool.name, REGISTERED: "true", INITIALIZED: "true"}
    fixed = {
        **own,
        **({f"{reference.group}/{reference.kind.lower()}": reference.name} if reference.kind else {}),
        **pool.spec.template.metadata.labels,
    }
    rules = pool.spec.template.spec.requirements
    for offering in entry.offerings:
        if not offering.launchable:
            continue
        sold = {key: _listed(requirement) for key, requirement in offering.requirements.items()}
        typed = {key: _listed(requirement) for key, requirement in entry.requirements.items() if _listed(requirement)}
        listed = {
            rule.key: rule.values for rule in rules if rule.operator == "In" and rule.key not in entry.requirements
        }
        found = {**listed, **typed, **sold, **{key: (value,) for key, value in fixed.items()}}
        for labels in _every({key: values for key, values in found.items() if values}):
            if all(_rule_holds(rule, labels, entry) for rule in rules):
                place = f"{entry.name}/{labels.get(ZONE)}/{labels.get(CAPACITY_TYPE)}"
                yield Option(place, labels, entry.allocatable, entry.capacity)


def _rule_holds(rule: PoolRequirement, labels: Mapping[str, str], entry: Any) -> bool:
    """Whether a pool's rule holds; a label of which only the pool speaks will get a value that does."""
    unspoken = rule.key not in labels and rule.key not in entry.requirements
    return unspoken or expression_holds(
        NodeExpression(key=rule.key, operator=rule.operator, values=rule.values), labels
    )


def _listed(requirement: Any) -> tuple[str, ...]:
    return () if requirement.complement else tuple(sorted(requirement.values))


def _every(choices: Mapping[str, Collection[str]]) -> Iterator[dict[str, str]]:
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def narrowed(machine: Machine, requirements: Requirements, types: Collection[str] | None = None) -> Machine:
    """A new machine with only the options that requirements and a list of types leave.

    A custom label that nothing but the requirements speak of gets one of their values, as a launched node would.
    """
    demanded = {key: requirement for key, requirement in requirements.items() if key != HOSTNAME}
    chosen = {key: min(r.values) for key, r in demanded.items() if r.values and not r.complement}

    def stays(option: Option) -> bool:
        labels = {**chosen, **option.labels}
        named = types is None or labels.get(INSTANCE_TYPE) in types
        return named and all(
            r.has(labels[key]) if key in labels else r.absent or r.complement for key, r in demanded.items()
        )

    kept = (option for option in machine.options if stays(option))
    return replace(machine, options=tuple(replace(option, labels={**chosen, **option.labels}) for option in kept))


def expression_holds(expression: NodeExpression, labels: Mapping[str, str]) -> bool:
    """Whether one expression over node labels holds."""
    value, values = labels.get(expression.key), expression.values
    match expression.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Gte" | "Lt" | "Lte":
            return value is not None and _compares(expression.operator, value, values[0])
    message = f"unknown operator {expression.operator}"
    raise ValueError(message)


def _compares(operator: str, value: str, bound: str) -> bool:
    try:
        number, limit = int(value), int(bound)
    except ValueError:
        return False
    return {"Gt": number > limit, "Gte": number >= limit, "Lt": number < limit, "Lte": number <= limit}[operator]


def term_holds(term: NodeTerm, labels: Mapping[str, str], name: str = "") -> bool:
    """Whether a term holds; an empty one never does."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(expression_holds(e, labels) for e in term.match_expressions) and all(
        expression_holds(e, fields) for e in term.match_fields
    )


def state_of(objects: Objects, *, gone: Collection[str] = (), types: Iterable[Any] = ()) -> State:
    """The cluster without some nodes and their pods; `types` are what its pools could still buy."""
    claims = {claim.status.node_name: claim for claim in objects.node_claims if claim.status.node_name}
    coming = [claim for claim in objects.node_claims if not claim.status.node_name and claim.status.provider_id]
    csi = {entry.name: entry for entry in objects.csi_nodes}
    machines = {
        node.name: machine_of(node, claim=claims.get(node.name), csi=csi.get(node.name))
        for node in objects.nodes
        if node.name not in gone
    }
    machines |= {claim.name: machine_to_come(claim) for claim in coming if claim.name not in gone}
    known = tuple(types)
    pools = sorted(objects.node_pools, key=lambda pool: (-pool.weight, pool.name))
    templates = [template_of(pool, known) for pool in pools if pool.ready and not pool.static]
    return State(
        machines=machines,
        bound_pods=tuple(
            BoundPod(pod, machines[pod.spec.node_name])
            for pod in objects.pods
            if pod.spec.node_name in machines and not pod.terminal
        ),
        templates=tuple(template for template in templates if template is not None),
        daemons=tuple(_daemon(entry.metadata.namespace, entry) for entry in objects.daemon_sets),
        limits={pool.name: pool.spec.limits for pool in objects.node_pools if pool.spec.limits},
        namespaces={entry.name: entry.metadata.labels for entry in objects.namespaces},
        claims={claim.key: claim for claim in objects.persistent_volume_claims},
        volumes={volume.name: volume for volume in objects.persistent_volumes},
        storage_classes={entry.name: entry for entry in objects.storage_classes},
    )


def _daemon(namespace: str, daemon_set: Any) -> Pod:
    from msgspec.structs import replace as changed

    template = daemon_set.spec.template
    return Pod(metadata=changed(template.metadata, name=daemon_set.name, namespace=namespace), spec=template.spec)
