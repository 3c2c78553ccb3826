"""Provisioners of `karpenter.sh/v1alpha5`, read as the NodePools they became."""

from collections.abc import Iterator
from typing import Any, Final

from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS
from karpool.model.nodepool import (
    ZERO_SECONDS,
    Disruption,
    NodeClassRef,
    NodePool,
    NodePoolSpec,
    PoolRequirement,
    PoolTemplate,
    TemplateMetadata,
    TemplateSpec,
)
from karpool.model.pod import Amounts
from karpool.model.rules.pools import value_at, weight_flaws
from karpool.model.rules.requirements import requirement_flaws
from karpool.model.scheduling import Taint
from karpool.wire.duration import NEVER, Duration
from karpool.wire.objects import Object, Wire
from karpool.wire.problems import Flaw

API_VERSION: Final = "karpenter.sh/v1alpha5"
_SECOND: Final = 10**9
_AWS: Final = "karpenter.k8s.aws"
_INSTANCE: Final = f"{_AWS}/instance-"
_SINGLE_DEFAULTS: Final = {OS: "linux", ARCH: "amd64", CAPACITY_TYPE: ON_DEMAND}
_TYPE_KEYS: Final = frozenset({INSTANCE_TYPE, *(f"{_INSTANCE}{name}" for name in ("family", "category", "generation"))})
_TYPE_DEFAULTS: Final = (
    PoolRequirement(f"{_INSTANCE}category", "In", ("c", "m", "r")),
    PoolRequirement(f"{_INSTANCE}generation", "Gt", ("2",)),
)


class Consolidation(Wire):
    enabled: bool = False


class ProviderRef(Wire):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class ProvisionerSpec(Wire):
    requirements: tuple[PoolRequirement, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    limits: Amounts = {}
    weight: int | None = None
    ttl_seconds_after_empty: int | None = None
    ttl_seconds_until_expired: int | None = None
    consolidation: Consolidation | None = None
    provider_ref: ProviderRef | None = None
    provider: dict[str, Any] | None = None
    kubelet_configuration: dict[str, Any] | None = None


class Provisioner(Object):
    spec: ProvisionerSpec = ProvisionerSpec()


def with_flat_limits(written: Any) -> Any:
    """The same with `limits.resources`, as the API had it, written as `limits`, as many people did."""
    limits = value_at(written, "spec", "limits")
    resources = value_at(limits, "resources")
    if not isinstance(resources, dict):
        return written
    return {**written, "spec": {**written["spec"], "limits": resources}}


def refused_provisioner(provisioner: Provisioner, written: Any) -> Iterator[Flaw]:
    """What cannot be converted, or never was allowed."""
    spec = provisioner.spec
    if value_at(written, "spec", "preferences") is not None:
        message = "Provisioners have no preferences; use weight to prefer one over another"
        yield Flaw("spec.preferences", "Preferences", message)
    yield from weight_flaws(spec.weight)
    yield from requirement_flaws(spec.requirements, "spec.requirements")
    for field, seconds in (
        ("ttlSecondsAfterEmpty", spec.ttl_seconds_after_empty),
        ("ttlSecondsUntilExpired", spec.ttl_seconds_until_expired),
    ):
        if seconds is not None and not 0 <= seconds * _SECOND < 2**63:
            yield Flaw(f"spec.{field}", "Duration", f"{seconds} is out of range; write seconds, 0 or more")
    if spec.ttl_seconds_after_empty is not None and spec.consolidation is not None and spec.consolidation.enabled:
        message = "is not allowed together with consolidation.enabled; remove one of the two"
        yield Flaw("spec.ttlSecondsAfterEmpty", "Consolidation", message)


def _requirements(spec: ProvisionerSpec) -> tuple[PoolRequirement, ...]:
    """Those that are written, and those that a webhook added when a Provisioner was applied; NodePools got none."""
    keys = {entry.key for entry in spec.requirements} | spec.labels.keys()
    added = [PoolRequirement(key, "In", (value,)) for key, value in _SINGLE_DEFAULTS.items() if key not in keys]
    if _node_class(spec.provider_ref).group in ("", _AWS) and not keys & _TYPE_KEYS:
        added += _TYPE_DEFAULTS
    return (*spec.requirements, *added)


def as_node_pool(provisioner: Provisioner) -> NodePool:
    spec = provisioner.spec
    claim = TemplateSpec(
        requirements=_requirements(spec),
        taints=spec.taints,
        startup_taints=spec.startup_taints,
        node_class_ref=_node_class(spec.provider_ref),
        expire_after=_seconds(spec.ttl_seconds_until_expired),
    )
    template = PoolTemplate(metadata=TemplateMetadata(labels=spec.labels, annotations=spec.annotations), spec=claim)
    pool = NodePoolSpec(template=template, disruption=_disruption(spec), limits=spec.limits, weight=spec.weight)
    return NodePool(metadata=provisioner.metadata, spec=pool)


def _disruption(spec: ProvisionerSpec) -> Disruption:
    """Without consolidation and without a time to live, empty nodes stayed for ever."""
    if spec.consolidation is not None and spec.consolidation.enabled:
        return Disruption(consolidate_after=ZERO_SECONDS)
    return Disruption(consolidation_policy="WhenEmpty", consolidate_after=_seconds(spec.ttl_seconds_after_empty))


def _seconds(count: int | None) -> Duration:
    return NEVER if count is None else Duration(count * _SECOND)


def _node_class(reference: ProviderRef | None) -> NodeClassRef:
    if reference is None:
        return NodeClassRef()
    return NodeClassRef(
        group=reference.api_version.partition("/")[0] or _AWS,
        kind=reference.kind or "AWSNodeTemplate",
        name=reference.name,
    )
