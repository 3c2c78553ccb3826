"""Topology groups: sets of pods that a rule counts per domain of a label key.

Spread, affinity and anti-affinity all need the number of pods that a selector matches in a domain, so each distinct
rule is one group, however many pods declare it. An anti-affinity also holds for the pods it
points at; that side is an inverse group, which counts the pods that declare the rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from karpool.cluster.codes import GroupKind
from karpool.model.labels import HOSTNAME, canonical
from karpool.model.requirements import Requirements
from karpool.model.scheduling import PodAffinityTerm, SpreadConstraint, Taint, Toleration, untolerated
from karpool.model.selectors import LabelSelector, SelectorExpression
from karpool.model.workloads import Namespace


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods a group counts; no selector at all counts none."""

    pairs: tuple[tuple[str, str], ...] = ()
    expressions: tuple[SelectorExpression, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is counted."""
        return all(labels.get(key) == value for key, value in self.pairs) and all(
            expression.matches(labels) for expression in self.expressions
        )


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes a spread rule counts: those its pods may use, by labels and perhaps by taints."""

    alternatives: tuple[Requirements, ...] = ()
    tolerations: tuple[Toleration, ...] | None = None

    def accepts(self, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> bool:
        """Whether a node with these labels and taints counts."""
        if self.tolerations is not None and untolerated(hard(taints), self.tolerations) is not None:
            return False
        return not self.alternatives or any(labels_satisfy(labels, terms) for terms in self.alternatives)


ALL_NODES = NodeFilter()


def hard(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints that keep pods away rather than asking them to stay away."""
    return tuple(taint for taint in taints if taint.effect != "PreferNoSchedule")


def labels_satisfy(labels: Mapping[str, str], requirements: Requirements) -> bool:
    """Whether a node with exactly these labels meets requirements."""
    for key, allowed in requirements.items():
        value = labels.get(key)
        if not (allowed.absent if value is None else allowed.has(value)):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Scope:
    """The pods of some namespaces that a selector finds; no namespaces: those of all."""

    namespaces: frozenset[str] | None
    selector: PodSelector | None

    def holds(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of them."""
        return (
            self.selector is not None
            and (self.namespaces is None or namespace in self.namespaces)
            and self.selector.matches(labels)
        )


@dataclass(frozen=True, slots=True)
class Group:
    """One rule over the pods of a scope, counted per domain of a label key; `also`: scopes that must hold besides."""

    kind: GroupKind
    key: str
    scope: Scope
    max_skew: int = 0
    min_domains: int = 0
    nodes: NodeFilter = ALL_NODES
    also: tuple[Scope, ...] = ()

    @property
    def selector(self) -> PodSelector | None:
        """Which pods of its namespaces the rule is about."""
        return self.scope.selector

    @property
    def by_host(self) -> bool:
        """Whether every node is a domain of its own."""
        return self.key == HOSTNAME

    def counts(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of those that the rule counts."""
        return self.scope.holds(namespace, labels) and all(scope.holds(namespace, labels) for scope in self.also)

    def __str__(self) -> str:
        names = {GroupKind.SPREAD: "spread", GroupKind.AFFINITY: "affinity", GroupKind.ANTI: "anti-affinity"}
        return f"{self.key} {names.get(self.kind, 'anti-affinity of another pod')}"


def spread_group(constraint: SpreadConstraint, namespace: str, labels: Mapping[str, str], nodes: NodeFilter) -> Group:
    """The group of a topology spread constraint."""
    return Group(
        kind=GroupKind.SPREAD,
        key=canonical(constraint.topology_key),
        scope=Scope(
            frozenset((namespace,)), _selector(constraint.label_selector, labels, constraint.match_label_keys, ())
        ),
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains or 0,
        nodes=nodes,
    )


def affinity_group(
    kind: GroupKind,
    term: PodAffinityTerm,
    namespace: str,
    labels: Mapping[str, str],
    namespaces: Mapping[str, Namespace],
) -> Group:
    """The group of a pod affinity or anti-affinity term."""
    return Group(
        kind=kind,
        key=canonical(term.topology_key),
        scope=Scope(
            _term_namespaces(term, namespace, namespaces),
            _selector(term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys),
        ),
    )


def together(groups: Sequence[Group]) -> list[Group]:
    """The affinities of one pod: each counts only pods that all of them are about, as kube-scheduler has it."""
    scopes = [group.scope for group in groups]
    return [replace(group, also=(*scopes[:at], *scopes[at + 1 :])) for at, group in enumerate(groups)]


def _selector(
    written: LabelSelector | None, labels: Mapping[str, str], match: tuple[str, ...], mismatch: tuple[str, ...]
) -> PodSelector | None:
    if written is None:
        return None
    pairs = dict(written.match_labels)
    expressions = list(written.match_expressions)
    expressions += [
        SelectorExpression(key=key, operator="In", values=(labels[key],))
        for key in match
        if key in labels and pairs.setdefault(key, labels[key]) != labels[key]
    ]
    expressions += [
        SelectorExpression(key=key, operator="NotIn", values=(labels[key],)) for key in mismatch if key in labels
    ]
    return PodSelector(tuple(sorted(pairs.items())), tuple(expressions))


def _term_namespaces(
    term: PodAffinityTerm, namespace: str, namespaces: Mapping[str, Namespace]
) -> frozenset[str] | None:
    if term.namespace_selector is None:
        return frozenset(term.namespaces or (namespace,))
    if not term.namespace_selector.match_labels and not term.namespace_selector.match_expressions:
        return None
    selector = term.namespace_selector
    selected = {name for name, entry in namespaces.items() if selector.matches(entry.metadata.labels)}
    return frozenset(selected | set(term.namespaces))
