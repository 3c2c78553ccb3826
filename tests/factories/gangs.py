"""Gangs: their pods, and the objects that say how many of them are needed."""

from typing import Any

from karpool.model.gangs import GangPolicy, PodGroup, PodGroupSpec, SchedulingPolicy
from karpool.model.pod import Pod
from karpool.wire.objects import Metadata
from tests.factories.pods import pod

LABEL = "scheduling.x-k8s.io/pod-group"


def members(gang: str, count: int, **rest: Any) -> tuple[Pod, ...]:
    """Pods of a gang of Coscheduling that wait; they need a CPU each unless told otherwise."""
    given: dict[str, Any] = {"cpu": "1", "memory": None, "pending": "node" not in rest, "labels": {LABEL: gang}, **rest}
    first = given.pop("first", 0)
    return tuple(pod(f"{gang}-{number}", **given) for number in range(first, first + count))


def pod_group(name: str, least: int, *, namespace: str = "default") -> PodGroup:
    """A PodGroup of Coscheduling or Volcano."""
    return PodGroup(metadata=Metadata(name=name, namespace=namespace), spec=PodGroupSpec(min_member=least))


def native_pod_group(name: str, least: int | None = None, *, basic: bool = False) -> PodGroup:
    """A PodGroup of Kubernetes itself."""
    policy = SchedulingPolicy(basic={}) if basic else SchedulingPolicy(gang=GangPolicy(min_count=least))
    return PodGroup(metadata=Metadata(name=name, namespace="default"), spec=PodGroupSpec(scheduling_policy=policy))
