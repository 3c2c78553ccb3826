"""Pods that do not say what they need."""

from collections.abc import Iterator
from typing import Final

from karpool.lint.cluster import LintedCluster, by_workload
from karpool.lint.finding import Finding, LintCode, Rule, Severity
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests

_NEEDED: Final = ("cpu", "memory")


def find(cluster: LintedCluster) -> Iterator[Finding]:
    for workload, pods in by_workload(pod for pod in cluster.pods if _missing(pod)).items():
        missing = [name for name in _NEEDED if any(name in _missing(pod) for pod in pods)]
        those = "its pod requests" if len(pods) == 1 else f"its {len(pods)} pods request"
        yield Finding(workload, f"{those} no {' and no '.join(missing)}", "spec.containers[*].resources.requests")


def _missing(pod: Pod) -> list[str]:
    requests = effective_requests(pod)
    return [name for name in _NEEDED if name not in requests or not requests[name].nano]


RULE = Rule(
    code=LintCode.MISSING_REQUESTS,
    severity=Severity.WARNING,
    title="Pods without requests",
    why="Scheduler and plans count what pods request: these count as nothing, and crowd nodes that look empty.",
    action="Write requests for cpu and memory, from what the pods use; a LimitRange sets a default.",
    find=find,
)
