"""Gangs: pods that run only all together, how their schedulers mark them, and how many are needed at once.

How many that is, stands in another object, which an input may lack; what a pod itself says of it is read here, too.
"""

from typing import Final, NamedTuple

from karpool.model.pod import Pod
from karpool.wire.objects import Object, Wire

NATIVE: Final = "scheduling.k8s.io"
COSCHEDULING: Final = "scheduling.x-k8s.io"
VOLCANO: Final = "scheduling.volcano.sh"
KUEUE: Final = "kueue.x-k8s.io"
POD_GROUP_API_GROUPS: Final = (COSCHEDULING, "scheduling.sigs.k8s.io", VOLCANO, "scheduling.incubator.k8s.io", NATIVE)

_COSCHEDULING_LABELS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
_COSCHEDULING_LEAST: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
_VOLCANO_ANNOTATIONS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_VOLCANO_LEAST: Final = "scheduling.volcano.sh/group-min-member"
_KUEUE_LABEL: Final = "kueue.x-k8s.io/pod-group-name"
_KUEUE_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
ANNOTATIONS: Final = frozenset({*_VOLCANO_ANNOTATIONS, _VOLCANO_LEAST, _KUEUE_COUNT})
"""The annotations of pods that are read here."""
_LABELS: Final = frozenset({*_COSCHEDULING_LABELS, _KUEUE_LABEL})
_LONGEST_COUNT: Final = 9


class GangPolicy(Wire):
    min_count: int | None = None


class SchedulingPolicy(Wire):
    """How the pods of a group are scheduled: one by one, which is `basic`, or together."""

    basic: dict[str, object] | None = None
    gang: GangPolicy | None = None

    @property
    def least(self) -> int | None:
        """How many pods are needed at once; None: that is not said."""
        return 1 if self.gang is None else self.gang.min_count


class PodGroupSpec(Wire):
    min_member: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


class PodGroup(Object):
    """A gang of pods of one namespace, as Kubernetes, Coscheduling and Volcano each define it."""

    spec: PodGroupSpec = PodGroupSpec()

    @property
    def least(self) -> int | None:
        """How many pods are needed at once; None: that is not said."""
        if self.unreadable:
            return None
        policy = self.spec.scheduling_policy
        return (self.spec.min_member or 1) if policy is None else policy.least


class WorkloadPodGroup(Wire):
    name: str
    policy: SchedulingPolicy = SchedulingPolicy()


class GangSpec(Wire):
    pod_groups: tuple[WorkloadPodGroup, ...] = ()


class Workload(Object):
    """The groups of pods of one workload, as Kubernetes 1.35 defines them."""

    spec: GangSpec = GangSpec()

    def least(self, group: str) -> int | None:
        """How many pods of a group are needed at once; None: that is not said."""
        return next((entry.policy.least for entry in self.spec.pod_groups if entry.name == group), None)


class GangId(NamedTuple):
    """Which gang a pod belongs to: who schedules it, the object that says more, and which of its groups."""

    scheduler: str
    namespace: str
    name: str
    group: str = ""
    replica: str = ""

    @property
    def key(self) -> str:
        """The key of the object that says how many pods are needed."""
        return f"{self.namespace}/{self.name}"

    @property
    def in_workload(self) -> bool:
        """Whether that object is a Workload, not a PodGroup."""
        return bool(self.group)

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.name, self.group, self.replica)))


def gang_of(pod: Pod) -> GangId | None:
    """The gang of a pod, if it is marked as part of one."""
    meta, spec = pod.metadata, pod.spec
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return GangId(NATIVE, meta.namespace, spec.scheduling_group.pod_group_name)
    if spec.workload_ref is not None:
        ref = spec.workload_ref
        return GangId(NATIVE, meta.namespace, ref.name, ref.pod_group, ref.pod_group_replica_key)
    if _LABELS.isdisjoint(meta.labels) and ANNOTATIONS.isdisjoint(meta.annotations):
        return None  # as almost all pods
    for scheduler, marks, written in (
        (COSCHEDULING, _COSCHEDULING_LABELS, meta.labels),
        (VOLCANO, _VOLCANO_ANNOTATIONS, meta.annotations),
        (KUEUE, (_KUEUE_LABEL,), meta.labels),
    ):
        name = next((written[mark] for mark in marks if written.get(mark)), "")
        if name:
            return GangId(scheduler, meta.namespace, name)
    return None


def least_by_pod(gang: GangId, pod: Pod) -> int | None:
    """How many pods of its gang are needed at once, as far as a pod says so itself."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if gang.scheduler == COSCHEDULING:
        return _count(labels.get(_COSCHEDULING_LEAST))
    if gang.scheduler == KUEUE:
        return _count(annotations.get(_KUEUE_COUNT))
    if gang.scheduler == VOLCANO:
        made = gang.name in _made_by_volcano(pod)
        return _count(annotations.get(_VOLCANO_LEAST)) or (1 if made else None)
    return None


def _made_by_volcano(pod: Pod) -> set[str]:
    """The names of the groups that Volcano makes for pods that ask for none: they need one pod at a time."""
    owners = (owner.uid for owner in pod.metadata.owner_references if owner.controller)
    return {f"podgroup-{uid}" for uid in (pod.metadata.uid, *owners) if uid}


def _count(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_COUNT):
        return None
    return int(text) or None
