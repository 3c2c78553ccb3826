"""Workloads that get a node for each of their pods."""

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from karpool.lint.cluster import LintedCluster, by_workload
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import with_pods
from karpool.model.labels import HOSTNAME
from karpool.model.pod import Pod
from karpool.model.scheduling import PodAffinityTerm, SpreadConstraint


def find(cluster: LintedCluster) -> Iterator[Finding]:
    for workload, pods in by_workload(pod for pod in cluster.pods if _rules(pod)).items():
        if len(pods) < 2:  # noqa: PLR2004 - one pod is on one node anyway
            continue
        nodes = len({pod.spec.node_name for pod in pods if pod.bound})
        rule, field = _rules(pods[0])[0]
        remedy = Remedy(partial(with_pods, keys=frozenset(pod.key for pod in pods), change=_relaxed))
        message = f"{rule}: its {len(pods)} pods need {len(pods)} nodes, and are on {nodes}"
        yield Finding(workload, message, field, remedy)


def _rules(pod: Pod) -> list[tuple[str, str]]:
    """What keeps two pods like this one from sharing a node, and where that is written."""
    spread = [
        ("a topology spread over nodes", "spec.topologySpreadConstraints") for _ in filter(_pins, _own_spread(pod))
    ]
    apart = [
        ("a required anti-affinity between its own pods", "spec.affinity.podAntiAffinity") for _ in _own_terms(pod)
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


def _own_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    for term in () if anti is None else anti.required:
        selector = term.label_selector
        at_home = not term.namespaces or pod.metadata.namespace in term.namespaces
        own = selector is not None and selector.matches(pod.metadata.labels)
        if own and at_home and term.topology_key == HOSTNAME:
            yield term


def _relaxed(pod: Pod) -> Pod:
    """The pod with these rules as wishes, which decisions may pass over."""
    own = set(map(id, _own_terms(pod)))
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
    why="The cluster can never have fewer nodes than the workload has pods, however small these are.",
    action="Spread over zones, write maxSkew 2 or more, or make it a preference (ScheduleAnyway).",
    find=find,
)
