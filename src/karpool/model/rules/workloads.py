"""What an API server refuses in pods, in the templates of their owners, in volumes and in PodDisruptionBudgets."""

import re
from collections.abc import Iterator
from typing import Final

from karpool.model.pod import Pod, PodSpec
from karpool.model.rules.requirements import unknown_operator
from karpool.model.scheduling import NodeExpression, NodeSelector, NodeTerm, PodAffinity, SpreadConstraint
from karpool.model.storage import PersistentVolume
from karpool.model.workloads import PodDisruptionBudget, PodTemplate, WorkloadObject
from karpool.wire.problems import Flaw

_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_AMOUNT: Final = re.compile(r"[0-9]{1,9}%?")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def refused_pod(pod: Pod) -> Iterator[Flaw]:
    return _spec_flaws(pod.spec, "spec")


def refused_owner(owner: WorkloadObject) -> Iterator[Flaw]:
    if owner.spec.replicas is not None and owner.spec.replicas < 0:
        yield Flaw("spec.replicas", "ReplicasRange", f"{owner.spec.replicas} is negative; write 0 or more")
    yield from _spec_flaws(owner.spec.template.spec, "spec.template.spec")


def refused_template(template: PodTemplate) -> Iterator[Flaw]:
    return _spec_flaws(template.template.spec, "template.spec")


def refused_volume(volume: PersistentVolume) -> Iterator[Flaw]:
    if volume.spec.node_affinity is not None and volume.spec.node_affinity.required is not None:
        yield from _selector_flaws(volume.spec.node_affinity.required, "spec.nodeAffinity.required")


def refused_budget(budget: PodDisruptionBudget) -> Iterator[Flaw]:
    spec = budget.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        message = "is not allowed together with minAvailable; remove one of the two"
        yield Flaw("spec.maxUnavailable", "PodDisruptionBudget", message)
    for field, amount in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if amount is not None and not _AMOUNT.fullmatch(str(amount)):
            message = f"{str(amount)[:40]!r} is not a number of pods; write 0 or more, or a percentage such as 50%"
            yield Flaw(f"spec.{field}", "PodDisruptionBudget", message)


def _spec_flaws(spec: PodSpec, path: str) -> Iterator[Flaw]:
    for index, constraint in enumerate(spec.topology_spread_constraints):
        yield from _spread_flaws(constraint, f"{path}.topologySpreadConstraints[{index}]")
    affinity = spec.affinity
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        place = f"{path}.affinity.nodeAffinity"
        if affinity.node_affinity.required is not None:
            yield from _selector_flaws(affinity.node_affinity.required, f"{place}.{_REQUIRED}")
        for index, preferred in enumerate(affinity.node_affinity.preferred):
            yield from _term_flaws(preferred.preference, f"{place}.{_PREFERRED}[{index}].preference")
    for name, terms in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if terms is not None:
            yield from _affinity_flaws(terms, f"{path}.affinity.{name}")


def _selector_flaws(selector: NodeSelector, path: str) -> Iterator[Flaw]:
    for index, term in enumerate(selector.node_selector_terms):
        yield from _term_flaws(term, f"{path}.nodeSelectorTerms[{index}]")


def _term_flaws(term: NodeTerm, path: str) -> Iterator[Flaw]:
    for name, expressions in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
        for index, expression in enumerate(expressions):
            yield from _expression_flaws(expression, f"{path}.{name}[{index}]")


def _expression_flaws(expression: NodeExpression, path: str) -> Iterator[Flaw]:
    operator, values = expression.operator, expression.values
    if operator not in _NODE_OPERATORS:
        yield unknown_operator(operator, path, _NODE_OPERATORS)
    elif operator in ("In", "NotIn") and not values:
        yield Flaw(f"{path}.values", "ValuesRequired", f"{operator} needs at least one value")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        message = f"{operator} needs exactly one value, a whole number; {len(values)} are given"
        yield Flaw(f"{path}.values", "OneNumberRequired", message)


def _affinity_flaws(pods: PodAffinity, path: str) -> Iterator[Flaw]:
    for index, term in enumerate(pods.required):
        yield from _topology_key_flaws(term.topology_key, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(pods.preferred):
        place = f"{path}.{_PREFERRED}[{index}].podAffinityTerm"
        yield from _topology_key_flaws(preferred.pod_affinity_term.topology_key, place)


def _topology_key_flaws(key: str, path: str) -> Iterator[Flaw]:
    if not key:
        yield Flaw(f"{path}.topologyKey", "TopologyKey", "is empty; name a label key such as kubernetes.io/hostname")


def _spread_flaws(constraint: SpreadConstraint, path: str) -> Iterator[Flaw]:
    if constraint.max_skew < 1:
        yield Flaw(f"{path}.maxSkew", "MaxSkew", f"{constraint.max_skew} is out of range; write 1 or more")
    if constraint.min_domains is not None and constraint.min_domains < 1:
        yield Flaw(f"{path}.minDomains", "MinDomains", f"{constraint.min_domains} is out of range; write 1 or more")
    yield from _topology_key_flaws(constraint.topology_key, path)
