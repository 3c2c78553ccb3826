"""NodePools and NodeClaims of `karpenter.sh/v1`, with Karpool's additions."""

from typing import Final

from msgspec import field

from karpool.model.labels import NODEPOOL, of_provider
from karpool.model.pod import Amounts
from karpool.model.requirements import Requirement, Requirements, one_of, requirement
from karpool.model.scheduling import Taint
from karpool.wire.duration import Duration
from karpool.wire.objects import Condition, Object, Timestamp, Wire, condition, is_true

NODEPOOL_API: Final = "karpenter.sh/v1"
ZERO_SECONDS: Final = Duration(0)
THIRTY_DAYS: Final = Duration(720 * 3600 * 10**9)

CONSOLIDATABLE: Final = "Consolidatable"
"""The condition of a NodeClaim that has been quiet for long enough; written for people, not read by decisions."""

REBOOTING: Final = "Rebooting"
"""The condition of a NodeClaim whose node is being rebooted."""


class PoolRequirement(Wire):
    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


def as_requirements(listed: tuple[PoolRequirement, ...]) -> Requirements:
    return Requirements((r.key, requirement(r.operator, r.values, r.min_values)) for r in listed)


def _written(key: str, value: str) -> Requirement:
    """What a label of the template requires; one of a provider need not come with the machine then."""
    return Requirement(complement=False, values=frozenset((value,)), absent=False, given=of_provider(key))


class NodeClassRef(Wire):
    group: str = ""
    kind: str = ""
    name: str = ""


class Unwritten(tuple[Taint, ...]):
    """The taints of an object that says nothing of them: to a hash, an empty list is something else."""

    __slots__ = ()


UNWRITTEN: Final = Unwritten()


class UnwrittenMap(dict[str, str]):
    """The same for labels and annotations."""

    __slots__ = ()


UNWRITTEN_MAP: Final = UnwrittenMap()


class TemplateSpec(Wire):
    requirements: tuple[PoolRequirement, ...] = ()
    taints: tuple[Taint, ...] = UNWRITTEN
    startup_taints: tuple[Taint, ...] = UNWRITTEN
    node_class_ref: NodeClassRef = NodeClassRef()
    expire_after: Duration = THIRTY_DAYS
    termination_grace_period: Duration | None = None


class TemplateMetadata(Wire):
    labels: dict[str, str] = UNWRITTEN_MAP
    annotations: dict[str, str] = UNWRITTEN_MAP


class PoolTemplate(Wire):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: TemplateSpec = TemplateSpec()


class Budget(Wire):
    """How many nodes of a pool may be disrupted at once, for which reasons, in which hours."""

    nodes: str | int = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None
    duration: Duration | None = None


class Disruption(Wire):
    consolidate_after: Duration = ZERO_SECONDS
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidation_grace_period: Duration | None = None
    budgets: tuple[Budget, ...] = (Budget(),)


class NodePoolSpec(Wire):
    template: PoolTemplate = PoolTemplate()
    disruption: Disruption = Disruption()
    limits: Amounts = {}
    weight: int | None = None
    replicas: int | None = None


class PoolStatus(Wire):
    conditions: tuple[Condition, ...] = ()


class NodePool(Object):
    spec: NodePoolSpec = NodePoolSpec()
    status: PoolStatus = PoolStatus()

    @property
    def static(self) -> bool:
        """Whether the pool keeps a fixed number of nodes."""
        return self.spec.replicas is not None

    @property
    def subject(self) -> str:
        """What reasons call it that are about it."""
        return f"NodePool {self.name}"

    @property
    def weight(self) -> int:
        """The pool's preference; a pool without one counts as 0."""
        return self.spec.weight or 0

    @property
    def ready(self) -> bool:
        """Whether the pool may supply nodes; without a Ready condition it may."""
        ready = condition(self.status.conditions, "Ready")
        settled = self.metadata.deletion_timestamp is None and not self.unreadable
        return settled and (ready is None or ready.status == "True")

    @property
    def requirements(self) -> Requirements:
        template = self.spec.template
        labels = ((key, _written(key, value)) for key, value in template.metadata.labels.items())
        return as_requirements(template.spec.requirements).intersect(Requirements(labels))

    @property
    def node_requirements(self) -> Requirements:
        """The requirements, and what nodes of the pool have besides: its name, and that of its node class."""
        ref = self.spec.template.spec.node_class_ref
        own = {NODEPOOL: self.name, **({f"{ref.group}/{ref.kind.lower()}": ref.name} if ref.kind else {})}
        return self.requirements.intersect(Requirements((key, one_of(value)) for key, value in own.items()))


class ClaimResources(Wire):
    requests: Amounts = {}


class NodeClaimSpec(TemplateSpec):
    resources: ClaimResources = ClaimResources()


class NodeClaimStatus(Wire):
    node_name: str = ""
    provider_id: str = field(name="providerID", default="")
    image_id: str = field(name="imageID", default="")
    capacity: Amounts = {}
    allocatable: Amounts = {}
    conditions: tuple[Condition, ...] = ()
    last_pod_event_time: Timestamp | None = None


class NodeClaim(Object):
    spec: NodeClaimSpec = NodeClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()

    def is_true(self, kind: str) -> bool:
        return is_true(self.status.conditions, kind)

    @property
    def pool(self) -> str:
        """The name of its pool; empty without one."""
        return self.metadata.labels.get(NODEPOOL, "")

    @property
    def node_requirements(self) -> Requirements:
        """Its requirements, and that its node is of its pool."""
        own = Requirements([(NODEPOOL, one_of(self.pool))] if self.pool else ())
        return as_requirements(self.spec.requirements).intersect(own)
