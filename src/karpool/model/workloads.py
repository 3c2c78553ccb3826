"""Workloads, namespaces, priority classes and PodDisruptionBudgets."""

from collections.abc import Mapping

from karpool.model.pod import Pod, PodSpec
from karpool.model.selectors import LabelSelector
from karpool.wire.objects import Metadata, Object, Wire, condition


class PodTemplateSpec(Wire):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class PodTemplate(Object):
    """A template that stands alone."""

    template: PodTemplateSpec = PodTemplateSpec()


class WorkloadSpec(Wire):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class WorkloadObject(Object):
    """Base of the objects that make pods from a template."""

    spec: WorkloadSpec = WorkloadSpec()


class DaemonSet(WorkloadObject):
    """One pod on every node that fits."""


class Deployment(WorkloadObject):
    """Interchangeable pods, updated by ReplicaSets."""


class ReplicaSet(WorkloadObject):
    """Interchangeable pods."""


class StatefulSet(WorkloadObject):
    """Pods with ordinals."""


class ReplicationControllerSpec(Wire):
    """How many pods; the selector is a plain map here."""

    replicas: int | None = None
    selector: dict[str, str] = {}


class ReplicationController(Object):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ServiceSpec(Wire):
    selector: dict[str, str] | None = None


class Service(Object):
    """A name for the pods that it selects."""

    spec: ServiceSpec = ServiceSpec()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is behind it; an empty selector selects all, a missing one none."""
        selector = self.spec.selector
        return selector is not None and all(labels.get(key) == value for key, value in selector.items())


class Job(Object):
    """Pods that run to completion."""


class CronJob(Object):
    """Jobs on a schedule."""


class PriorityClass(Object):
    value: int = 0


class ConfigMap(Object):
    """Text under keys; only the one that pauses everything and the status of Cluster Autoscaler are read."""

    data: dict[str, str] = {}


class Namespace(Object):
    """A namespace; its labels can be selected."""


class BudgetSpec(Wire):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(Wire):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class PodDisruptionBudget(Object):
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def matches(self, namespace: str, labels: dict[str, str]) -> bool:
        selector = self.spec.selector
        return selector is not None and self.metadata.namespace == namespace and selector.matches(labels)

    def lets_go_unready(self, pod: Pod) -> bool:
        """Whether the pod is not ready and the budget always lets such pods go."""
        if self.spec.unhealthy_pod_eviction_policy != "AlwaysAllow":
            return False
        ready = condition(pod.status.conditions, "Ready")
        return ready is not None and ready.status == "False"

    @property
    def fully_blocking(self) -> bool:
        return self.spec.max_unavailable in (0, "0", "0%") or self.spec.min_available == "100%"
