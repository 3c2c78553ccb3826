"""What decides which pods may run where: taints, tolerations, affinities, spread."""

from typing import Literal

from msgspec import field

from karpool.model.labels import HOSTNAME
from karpool.model.requirements import NOTHING, Requirement, Requirements, requirement
from karpool.model.selectors import LabelSelector
from karpool.wire.objects import Wire

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Wire):
    key: str
    effect: Effect
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Wire):
    """Taints that a pod tolerates; an empty key with Exists tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "Equal" | "":
                return bool(self.key) and self.value == taint.value
            case "Lt" | "Gt":
                return self._compares(taint.value)

    def _compares(self, value: str) -> bool:
        try:
            bound, number = int(self.value), int(value)
        except ValueError:
            return False
        return number > bound if self.operator == "Gt" else number < bound


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first taint that no toleration covers, or None."""
    for taint in taints:
        if not any(toleration.tolerates(taint) for toleration in tolerations):
            return taint
    return None


class NodeExpression(Wire):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(Wire):
    """Expressions over the labels and the name of a node that must all hold."""

    match_expressions: tuple[NodeExpression, ...] = ()
    match_fields: tuple[NodeExpression, ...] = ()

    @property
    def requirements(self) -> Requirements:
        """The term as conditions on labels; a node's name stands in its hostname label."""
        if not self.match_fields:
            return self.label_requirements
        named = Requirements((HOSTNAME, _as_requirement(e)) for e in self.match_fields)
        return self.label_requirements.intersect(named)

    @property
    def label_requirements(self) -> Requirements:
        """Only what the term says about labels."""
        return Requirements((e.key, _as_requirement(e)) for e in self.match_expressions)


def _as_requirement(expression: NodeExpression) -> Requirement:
    """The expression as a set; a bound that is no number matches no node, as kube-scheduler has it."""
    try:
        return requirement(expression.operator, expression.values)
    except ValueError:
        return NOTHING


class NodeSelector(Wire):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class PreferredNodeTerm(Wire):
    weight: int
    preference: NodeTerm


class NodeAffinity(Wire):
    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredNodeTerm, ...] = field(name="preferredDuringSchedulingIgnoredDuringExecution", default=())


class PodAffinityTerm(Wire):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire):
    required: tuple[PodAffinityTerm, ...] = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=())
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Wire):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Wire):
    """The numbers of matching pods in two domains differ by at most maxSkew."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
