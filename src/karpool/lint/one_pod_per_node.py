"""Workloads that get a node for each of their pods."""

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from karpool.cluster.codes import GroupKind
from karpool.cluster.groups import affinity_group
from karpool.lint.cluster import LintedCluster, by_workload
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import with_pods
from karpool.model.labels import HOSTNAME
from karpool.model.pod import Pod
from karpool.model.scheduling import PodAffinityTerm, SpreadConstraint
from karpool.model.workloads import Namespace

Namespaces = Mapping[str, Namespace]


def find(cluster: LintedCluster) -> Iterator[Finding]:
    namespaces = {entry.name: entry for entry in cluster.objects.namespaces}
    for workload, pods in by_workload(pod for pod in cluster.pods if _rules(pod, namespaces)).items():
        if len(pods) < 2:  # noqa: PLR2004 - one pod is on one node anyway
            continue
        nodes = len({pod.spec.node_name for pod in pods if pod.bound})
        rule, field = _rules(pods[0], namespaces)[0]
        relaxed = partial(_relaxed, namespaces=namespaces)
        remedy = Remedy(partial(with_pods, keys=frozenset(pod.key for pod in pods), change=relaxed))
        message = f"{rule}: each of its {len(pods)} pods needs a node of its own when it moves; they are on {nodes} now"
        yield Finding(workload, message, field, remedy)


def _rules(pod: Pod, namespaces: Namespaces) -> list[tuple[str, str]]:
    """What keeps two pods like this one from sharing a node, and where that is written."""
    spread = [
        ("a topology spread over nodes", "spec.topologySpreadConstraints") for _ in filter(_pins, _own_spread(pod))
    ]
    apart = [
        ("a required anti-affinity between its own pods", "spec.affinity.podAntiAffinity")
        for _ in _own_terms(pod, namespaces)
    ]
    return spread + apart


def _own_spread(pod: Pod) -> Iterator[SpreadConstraint]:
    """Constraints that count pods like this one."""
    for constraint in pod.spec.topology_spread_constraints:
        selector = constraint.label_selector
        if selector is not None and selector.matches(pod.metadata.labels):
            yield constraint


def _pins(constraint: SpreadConstraint) -> bool:
    """Whether a second pod on a node is too many: a new node would have none."""
    hard = constraint.when_unsatisfiable == "DoNotSchedule"
    return hard and constraint.topology_key == HOSTNAME and constraint.max_skew == 1


def _own_terms(pod: Pod, namespaces: Namespaces) -> Iterator[PodAffinityTerm]:
    """Terms that keep a pod from one like itself, as placing reads them."""
    meta, affinity = pod.metadata, pod.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    for term in () if anti is None else anti.required:
        group = affinity_group(GroupKind.ANTI, term, meta.namespace, meta.labels, namespaces)
        if group.by_host and group.counts(meta.namespace, meta.labels):
            yield term


def _relaxed(pod: Pod, namespaces: Namespaces) -> Pod:
    """The pod with these rules as wishes, which decisions may pass over."""
    own = set(map(id, _own_terms(pod, namespaces)))
    affinity = pod.spec.affinity
    if affinity is not None and affinity.pod_anti_affinity is not None:
        anti = affinity.pod_anti_affinity
        kept = tuple(term for term in anti.required if id(term) not in own)
        affinity = replace(affinity, pod_anti_affinity=replace(anti, required=kept))
    pinning = set(map(id, filter(_pins, _own_spread(pod))))
    spread = tuple(entry for entry in pod.spec.topology_spread_constraints if id(entry) not in pinning)
    return replace(pod, spec=replace(pod.spec, affinity=affinity, topology_spread_constraints=spread))


RULE = Rule(
    code=LintCode.ONE_POD_PER_NODE,
    severity=Severity.WARNING,
    title="A spread that pins one node for each pod",
    why="A new node has none of the pods: plans, like Karpenter, place one on each node, however small they are.",
    action="Spread over zones, write maxSkew 2 or more, or make it a preference (ScheduleAnyway).",
    find=find,
)
