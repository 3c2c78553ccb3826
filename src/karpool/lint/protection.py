"""Pods marked do-not-disrupt: for ever, or for a time that is over."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from karpool.disruption.candidates.pods import FOREVER, protected_until
from karpool.disruption.reasons import clock
from karpool.lint.cluster import LintedCluster, by_workload
from karpool.lint.finding import Finding, LintCode, Remedy, Rule, Severity
from karpool.lint.remedies import without_protection
from karpool.model.annotations import annotation_path
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod

LONG: Final = timedelta(days=1)
"""What runs longer than this is hardly a task that only has to finish."""


def find_forever(cluster: LintedCluster) -> Iterator[Finding]:
    held = [pod for pod in cluster.pods if _held_for_long(cluster, pod)]
    for workload, pods in by_workload(held).items():
        remedy = Remedy(partial(without_protection, pods=frozenset(pod.key for pod in pods)))
        oldest = max(cluster.now - pod.status.start_time for pod in pods if pod.status.start_time)
        nodes = len({pod.spec.node_name for pod in pods})
        those = "a pod" if len(pods) == 1 else f"{len(pods)} pods"
        places = "a node" if nodes == 1 else f"{nodes} nodes"
        message = f"{those} marked {DO_NOT_DISRUPT} without an end, running for up to {oldest.days} days on {places}"
        yield Finding(workload, message, annotation_path(DO_NOT_DISRUPT), remedy)


def _held_for_long(cluster: LintedCluster, pod: Pod) -> bool:
    start = pod.status.start_time
    held = pod.bound and pod.active and protected_until(pod) == FOREVER
    return held and start is not None and cluster.now - start >= LONG


def find_expired(cluster: LintedCluster) -> Iterator[Finding]:
    over = [pod for pod in cluster.pods if pod.bound and (until := protected_until(pod)) and until <= cluster.now]
    for workload, pods in by_workload(over).items():
        ended = min(until for pod in pods if (until := protected_until(pod)))
        written = pods[0].metadata.annotations[DO_NOT_DISRUPT]
        those, run = ("a pod", "runs") if len(pods) == 1 else (f"{len(pods)} pods", "run")
        since = clock(ended, cluster.now)
        message = f"{those} marked {DO_NOT_DISRUPT} for {written} still {run}, unprotected since {since}"
        yield Finding(workload, message, annotation_path(DO_NOT_DISRUPT))


FOREVER_RULE = Rule(
    code=LintCode.PROTECTED_FOREVER,
    severity=Severity.WARNING,
    title="Pods marked do-not-disrupt without an end",
    why="Their nodes stay for as long as the pods run, also when they have drifted or are nearly empty.",
    action="Write a duration such as 4h, or protect the pods with a PodDisruptionBudget that allows one at a time.",
    find=find_forever,
)
EXPIRED_RULE = Rule(
    code=LintCode.PROTECTION_EXPIRED,
    severity=Severity.WARNING,
    title="Pods that outlived their do-not-disrupt",
    why="They run longer than whoever wrote the duration expected, and may be evicted now.",
    action="Write the time that the work really takes, or find out why it has not ended.",
    find=find_expired,
)
