"""Who owns pods, how important they are, and how many of them may be missing at once."""

from karpool.model.pod import Pod, PodSpec
from karpool.model.selectors import LabelSelector
from karpool.wire.objects import Metadata, Object, Wire, condition


class PodTemplate(Wire):
    """The pods an owner makes."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class WorkloadSpec(Wire):
    """How many pods of which kind."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class DaemonSet(Object):
    """One pod on every node that fits."""

    spec: WorkloadSpec = WorkloadSpec()


class Deployment(Object):
    """Interchangeable pods, rolled out by template."""

    spec: WorkloadSpec = WorkloadSpec()


class ReplicaSet(Object):
    """Interchangeable pods."""

    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Object):
    """Pods with identities."""

    spec: WorkloadSpec = WorkloadSpec()


class ReplicationControllerSpec(Wire):
    """How many pods; the selector is a plain map here."""

    replicas: int | None = None
    selector: dict[str, str] = {}


class ReplicationController(Object):
    """Interchangeable pods, the oldest way."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class Job(Object):
    """Pods that run to their end."""


class CronJob(Object):
    """Jobs by the clock."""


class PriorityClass(Object):
    """How important pods are."""

    value: int = 0
    global_default: bool = False


class Namespace(Object):
    """A namespace; its labels can be selected."""


class BudgetSpec(Wire):
    """How many of which pods may be missing at once."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(Wire):
    """How many more may go now."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class PodDisruptionBudget(Object):
    """A promise about how many of some pods stay available."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def matches(self, namespace: str, labels: dict[str, str]) -> bool:
        """Whether the budget covers a pod with these labels."""
        selector = self.spec.selector
        return selector is not None and self.metadata.namespace == namespace and selector.matches(labels)

    def lets_go_unready(self, pod: Pod) -> bool:
        """Whether the budget lets pods go that are not ready anyway, and the pod is one."""
        if self.spec.unhealthy_pod_eviction_policy != "AlwaysAllow":
            return False
        ready = condition(pod.status.conditions, "Ready")
        return ready is not None and ready.status == "False"

    @property
    def fully_blocking(self) -> bool:
        """Whether the budget, as written, never lets a pod go."""
        return self.spec.max_unavailable in (0, "0", "0%") or self.spec.min_available == "100%"
