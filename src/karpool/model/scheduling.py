"""The parts of a pod or a node that decide who may run where: taints, tolerations, affinities, spread."""

from typing import Literal

from msgspec import field

from karpool.model.requirements import NOTHING, Requirement, Requirements, requirement
from karpool.model.selectors import LabelSelector
from karpool.wire.objects import Wire

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Wire):
    """A taint of a node: pods that do not tolerate it stay away."""

    key: str
    effect: Effect
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Wire):
    """What a pod puts up with; an empty key with Exists tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers the taint."""
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
            wanted, held = int(self.value), int(value)
        except ValueError:
            return False
        return held > wanted if self.operator == "Gt" else held < wanted


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first taint that no toleration covers, or None."""
    for taint in taints:
        if not any(toleration.tolerates(taint) for toleration in tolerations):
            return taint
    return None


class NodeExpression(Wire):
    """One expression over node labels."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(Wire):
    """Expressions over node labels that must all hold."""

    match_expressions: tuple[NodeExpression, ...] = ()
    match_fields: tuple[NodeExpression, ...] = ()

    @property
    def requirements(self) -> Requirements:
        """The expressions as sets."""
        return Requirements((e.key, _as_requirement(e)) for e in self.match_expressions)


def _as_requirement(expression: NodeExpression) -> Requirement:
    """The expression as a set; a bound that is no number matches no node, as kube-scheduler has it."""
    try:
        return requirement(expression.operator, expression.values)
    except ValueError:
        return NOTHING


class NodeSelector(Wire):
    """Terms of which at least one must hold."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class PreferredNodeTerm(Wire):
    """A wish about nodes, with its weight."""

    weight: int
    preference: NodeTerm


class NodeAffinity(Wire):
    """What a pod demands of, and wishes for in, a node."""

    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredNodeTerm, ...] = field(name="preferredDuringSchedulingIgnoredDuringExecution", default=())


class PodAffinityTerm(Wire):
    """Being near to, or far from, pods that a selector finds, within a domain of a topology key."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire):
    """A wish about nearness, with its weight."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire):
    """Demands and wishes about other pods; the same shape serves affinity and anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=())
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Wire):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Wire):
    """Pods that a selector finds may differ in number between domains by no more than maxSkew."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
