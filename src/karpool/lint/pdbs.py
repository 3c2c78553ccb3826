"""PodDisruptionBudgets that hold their pods for ever."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from karpool.lint.cluster import LintedCluster
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import without_pdbs
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget


def find_never_allowing(cluster: LintedCluster) -> Iterator[Finding]:
    covered = defaultdict[str, list[Pod]](list)
    for pod in cluster.pods:
        for pdb in cluster.pdbs.matching(pod):
            covered[pdb.key].append(pod)
    for pdb in sorted(cluster.objects.pod_disruption_budgets, key=lambda pdb: pdb.key):
        pods = covered.get(pdb.key, [])
        why = _never(pdb, len(pods)) if pods else ""
        if why:
            remedy = Remedy(partial(without_pdbs, keys=frozenset((pdb.key,))))
            message = f"{why}, so that none of its {len(pods)} pods may ever be evicted"
            yield Finding(f"PodDisruptionBudget {pdb.key}", message, "spec", remedy)


def _never(pdb: PodDisruptionBudget, pods: int) -> str:
    """Why a budget never lets go one of the pods that it covers, if it does not."""
    spec, status = pdb.spec, pdb.status
    if pdb.fully_blocking:
        written = ("maxUnavailable", spec.max_unavailable) if spec.min_available is None else ("minAvailable", "100%")
        return f"has {written[0]} {written[1]}"
    expected = max(status.expected_pods, pods)
    needed = spec.min_available if isinstance(spec.min_available, int) else status.desired_healthy
    if needed >= expected > 0:
        return f"needs {needed} healthy pods of {expected}"
    return ""


def find_several(cluster: LintedCluster) -> Iterator[Finding]:
    """Pods that two budgets cover, by the budgets."""
    together = defaultdict[tuple[str, ...], list[Pod]](list)
    for pod in cluster.pods:
        covering = cluster.pdbs.matching(pod)
        if len(covering) > 1:
            together[tuple(pdb.key for pdb in covering)].append(pod)
    for keys, pods in sorted(together.items()):
        remedy = Remedy(partial(without_pdbs, keys=frozenset(keys[1:])))
        others = " and ".join(keys[1:])
        message = f"covers {len(pods)} pods, such as {pods[0].key}, that {others} covers as well"
        yield Finding(f"PodDisruptionBudget {keys[0]}", message, "spec.selector", remedy)


NEVER_ALLOWS = Rule(
    code=LintCode.PDB_NEVER_ALLOWS,
    severity=Severity.WARNING,
    title="A PodDisruptionBudget that never allows an eviction",
    why="Every node with one of its pods stays, and drains of it hang until somebody gives in.",
    action="Allow one disruption (maxUnavailable: 1), or run one replica more than the budget needs.",
    find=find_never_allowing,
)
SEVERAL = Rule(
    code=LintCode.SEVERAL_PDBS,
    severity=Severity.WARNING,
    title="Pods that several PodDisruptionBudgets cover",
    why="Kubernetes refuses to evict a pod that more than one budget covers, whatever they allow.",
    action="Leave one budget over each pod: make the selectors disjoint.",
    find=find_several,
)
