"""NodeClaims for new nodes: for pending pods, and as replacements of nodes that go."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import launchable
from karpool.cluster.daemons import Daemon
from karpool.model import labels as names
from karpool.model.nodepool import NODEPOOL_API, ClaimResources, NodeClaim, NodeClaimSpec, NodePool, PoolRequirement
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.model.requirements import Requirement, Requirements, one_of
from karpool.wire.objects import Metadata, OwnerReference
from karpool.wire.quantity import NANO, ZERO, Quantity

_LONGEST_POOL: Final = 50
_RESERVED_DOMAIN: Final = "karpenter.sh"
_NEVER_WRITTEN: Final = (names.REGISTERED, names.INITIALIZED, names.HOSTNAME)


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node to create: its requirements, the types it may have, the pods it is for; without types, any that fits."""

    requirements: Requirements
    instance_types: tuple[str, ...]
    pods: tuple[Pod, ...] = ()
    min_values_relaxed: bool = False
    drivers: tuple[str, ...] = ()
    """The drivers whose devices the pods count on."""


def claim_name(pool: str, *parts: str) -> str:
    """A name that is always the same for the same parts."""
    digest = hashlib.blake2b("\n".join((pool, *parts)).encode(), digest_size=5).hexdigest()
    return f"{pool[:_LONGEST_POOL].rstrip('-.')}-{digest}"


def new_claim(
    pool: NodePool,
    request: NodeRequest,
    *,
    name: str,
    daemons: Sequence[Daemon] = (),
    types: Sequence[InstanceType] = (),
    annotations: Mapping[str, str] | None = None,
) -> NodeClaim:
    """The claim for a new node of a pool; a provider ranks the types by price again when it launches.

    It requests what pods need, and the least that daemons take on any of the types.
    """
    template = pool.spec.template
    requirements = request.requirements.without(*_NEVER_WRITTEN)
    if request.instance_types:
        requirements = requirements.with_key(names.INSTANCE_TYPE, one_of(*request.instance_types))
    return NodeClaim(
        metadata=Metadata(
            name=name,
            labels=_labels(pool, requirements),
            annotations={**_annotations(pool, request), **(annotations or {})},
            finalizers=(names.TERMINATION_FINALIZER,),
            owner_references=(
                OwnerReference(kind="NodePool", name=pool.name, api_version=NODEPOOL_API, uid=pool.metadata.uid),
            ),
        ),
        spec=NodeClaimSpec(
            requirements=tuple(listed(requirements)),
            taints=template.spec.taints,
            startup_taints=template.spec.startup_taints,
            node_class_ref=template.spec.node_class_ref,
            expire_after=template.spec.expire_after,
            termination_grace_period=template.spec.termination_grace_period,
            resources=ClaimResources(
                requests=_requests(request.pods, _daemon_requests(daemons, pool, requirements, types))
            ),
        ),
    )


def with_offered_kinds(requirements: Requirements, types: Iterable[str], catalog: Catalog) -> Requirements:
    """Requirements restricted to the capacity types that are available now."""
    entries = (catalog.by_name[name] for name in types if name in catalog.by_name)
    kinds = {offering.capacity_type for entry in entries for offering in launchable(entry, requirements)} - {""}
    return requirements.with_key(names.CAPACITY_TYPE, one_of(*kinds)) if kinds else requirements


def listed(requirements: Requirements) -> Iterator[PoolRequirement]:
    """Requirements as a claim writes them, by key."""
    for key in sorted(requirements):
        yield from _spelled(key, requirements[key])


def _spelled(key: str, wanted: Requirement) -> Iterator[PoolRequirement]:
    """One requirement in as many operators as it takes; the first carries minValues."""
    values = tuple(sorted(wanted.values))
    spelled: list[tuple[str, tuple[str, ...]]] = []
    if not wanted.complement:
        spelled.append(("In", values) if values else ("DoesNotExist", ()))
    else:
        if wanted.lower is not None and wanted.lower > 0:
            spelled.append(("Gt", (str(wanted.lower - 1),)))
        if wanted.upper is not None:
            spelled.append(("Lt", (str(wanted.upper + 1),)))
        if not spelled and not wanted.absent:
            spelled.append(("Exists", ()))
        if values:
            spelled.append(("NotIn", values))
    for number, (operator, operands) in enumerate(spelled):
        minimum = wanted.min_values if number == 0 else None
        yield PoolRequirement(key=key, operator=operator, values=operands, min_values=minimum)


def _labels(pool: NodePool, requirements: Requirements) -> dict[str, str]:
    """The template's labels, and a value for every custom key; the provider adds those that it knows."""
    custom = {
        key: min(wanted.values)
        for key, wanted in requirements.items()
        if not wanted.complement and wanted.values and not _set_by_others(key)
    }
    ref = pool.spec.template.spec.node_class_ref
    class_label = {f"{ref.group}/{ref.kind.lower()}": ref.name} if ref.kind else {}
    return {**custom, **pool.spec.template.metadata.labels, **class_label, names.NODEPOOL: pool.name}


def _set_by_others(key: str) -> bool:
    """Whether a provider or Kubernetes itself sets a label."""
    domain = key.rpartition("/")[0]
    reserved = domain == _RESERVED_DOMAIN or domain.endswith(f".{_RESERVED_DOMAIN}")
    return reserved or key in names.WELL_KNOWN or names.of_provider(key)


def _annotations(pool: NodePool, request: NodeRequest) -> dict[str, str]:
    stamps = (names.NODEPOOL_HASH, names.NODEPOOL_HASH_VERSION)
    copied = {key: value for key, value in pool.metadata.annotations.items() if key in stamps}
    relaxed = {names.MIN_VALUES_RELAXED: "true"} if request.min_values_relaxed else {}
    drivers = {names.REQUESTED_DRIVERS: ",".join(sorted(request.drivers))} if request.drivers else {}
    return {**pool.spec.template.metadata.annotations, **copied, **relaxed, **drivers}


def _requests(pods: Sequence[Pod], daemons: Mapping[str, Quantity]) -> dict[str, Quantity]:
    total = _sum(pods=map(effective_requests, pods), count=len(pods))
    for name, amount in daemons.items():
        total[name] = total.get(name, ZERO) + amount
    return {name: amount for name, amount in total.items() if amount != ZERO}


def _daemon_requests(
    daemons: Sequence[Daemon], pool: NodePool, requirements: Requirements, types: Sequence[InstanceType]
) -> dict[str, Quantity]:
    """What daemons take at least, of every resource, whichever of the types it becomes."""
    settled = [requirements.intersect(entry.requirements) for entry in types] or [requirements]
    each = []
    for wanted in settled:
        certain = _certain(daemons, pool, wanted)
        each.append(_sum(pods=(daemon.requests for daemon in certain), count=len(certain)))
    return {name: min(amounts.get(name, ZERO) for amounts in each) for name in each[0]}


def _sum(*, pods: Iterable[Mapping[str, Quantity]], count: int) -> dict[str, Quantity]:
    """What so many pods take together."""
    total: dict[str, Quantity] = {"pods": Quantity(NANO * count)}
    for amounts in pods:
        for name, amount in amounts.items():
            if name != "pods":
                total[name] = total.get(name, ZERO) + amount
    return total


def _certain(daemons: Sequence[Daemon], pool: NodePool, requirements: Requirements) -> list[Daemon]:
    """The daemons that run on the node whatever becomes of its open requirements."""
    taints = pool.spec.template.spec.taints
    return [
        daemon
        for daemon in daemons
        if daemon.tolerates(taints) and any(_implied(requirements, wanted) for wanted in daemon.alternatives)
    ]


def _implied(own: Requirements, wanted: Requirements) -> bool:
    return all(
        rule.absent if key not in own else not own[key].complement and all(map(rule.has, own[key].values))
        for key, rule in wanted.items()
    )
