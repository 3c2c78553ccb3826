"""Knobs for what pods, nodes, PodDisruptionBudgets and node groups say."""

from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.new_places import without_overflow
from karpool.disruption.what_if.question import KnobError, Question, annotated, unknown_object
from karpool.model.autoscaler_rules import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.node import Node
from karpool.model.node_group import NodeGroup
from karpool.model.owners import workload_of
from karpool.model.pod import Amounts, Container, ContainerStatus, Pod, PodSpec
from karpool.model.requests import stated_requests
from karpool.model.workloads import DaemonSet
from karpool.wire.quantity import Quantity

_PARTS: Final = 10**6
Name = Annotated[str, msgspec.Meta(max_length=600)]
Factor = Annotated[float, msgspec.Meta(ge=0.01, le=100.0)]


class DoNotDisruptOff(Knob, kw_only=True, tag="doNotDisruptOff"):
    """Pods are not marked do-not-disrupt: those of a workload such as `Deployment shop/web`, of a namespace, or all."""

    workload: Name | None = None
    namespace: Name | None = None

    def turn(self, question: Question) -> Question:
        if self.workload is not None and self.namespace is not None:
            raise KnobError("namespace", "a workload is named already; leave one of them out")
        if self.workload is not None:
            _check_workload(question, self.workload)
        return question.with_pods(self._concerns, lambda pod: annotated(pod, DO_NOT_DISRUPT, None))

    def _concerns(self, pod: Pod) -> bool:
        if DO_NOT_DISRUPT not in pod.metadata.annotations:
            return False
        own = self.namespace in (None, pod.metadata.namespace)
        return own and self.workload in (None, str(workload_of(pod)))

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        whose = self.workload or (f"namespace {self.namespace}" if self.namespace else "the cluster")
        return f"remove {DO_NOT_DISRUPT} from the pods of {whose}"


class NodeProtectionOff(Knob, kw_only=True, tag="nodeProtectionOff"):
    """A node is not marked do-not-disrupt, nor kept from its autoscaler."""

    node: Name

    def turn(self, question: Question) -> Question:
        objects = question.objects
        if all(node.name != self.node for node in objects.nodes):
            raise unknown_object("node", "node", self.node, [node.name for node in objects.nodes])
        nodes = [_unprotected(node) if node.name == self.node else node for node in objects.nodes]
        claims = [
            annotated(claim, DO_NOT_DISRUPT, None) if claim.status.node_name == self.node else claim
            for claim in objects.node_claims
        ]
        return question.with_objects(nodes=nodes, node_claims=claims)

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"remove {DO_NOT_DISRUPT} and {SCALE_DOWN_DISABLED} from node {self.node}"


def _unprotected(node: Node) -> Node:
    return annotated(annotated(node, DO_NOT_DISRUPT, None), SCALE_DOWN_DISABLED, None)


class PdbOff(Knob, kw_only=True, tag="pdbOff"):
    """A PodDisruptionBudget, as `namespace/name`, is not there."""

    name: Name

    def turn(self, question: Question) -> Question:
        budgets = question.objects.pod_disruption_budgets
        kept = [budget for budget in budgets if budget.key != self.name]
        if len(kept) == len(budgets):
            raise unknown_object("name", "PodDisruptionBudget", self.name, [budget.key for budget in budgets])
        return question.with_objects(pod_disruption_budgets=kept)

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"have PodDisruptionBudget {self.name} let pods go"


class SafeToEvict(Knob, kw_only=True, tag="safeToEvict"):
    """The autoscaler of a node group may move the pods of a workload."""

    workload: Name

    def turn(self, question: Question) -> Question:
        _check_workload(question, self.workload)
        return question.with_pods(
            lambda pod: str(workload_of(pod)) == self.workload, lambda pod: annotated(pod, SAFE_TO_EVICT, "true")
        )

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"give the pods of {self.workload} {SAFE_TO_EVICT}: true"


class GroupMinimumOff(Knob, kw_only=True, tag="groupMinimumOff"):
    """A node group may become empty."""

    group: Name

    def turn(self, question: Question) -> Question:
        pools = question.objects.node_pools
        groups = [pool.name for pool in pools if isinstance(pool, NodeGroup)]
        if self.group not in groups:
            raise unknown_object("group", "node group", self.group, groups)
        return question.with_objects(
            node_pools=[replace(pool, minimum=0) if pool.name == self.group else pool for pool in pools]
        )

    def relaxes(self, question: Question) -> bool:  # noqa: ARG002 - it never forbids anything
        return True

    @property
    def words(self) -> str:
        return f"let group {self.group} become empty"


class Requests(Knob, kw_only=True, tag="requests"):
    """The pods of a workload request so many times what they do."""

    workload: Name
    cpu: Factor = 1.0
    memory: Factor = 1.0

    def turn(self, question: Question) -> Question:
        _check_workload(question, self.workload)
        scaled = question.with_pods(self._concerns, self._scaled_pod)
        scaled = scaled.with_objects(daemon_sets=[self._scaled_daemons(entry) for entry in scaled.objects.daemon_sets])
        grown = [name for name, factor in self._factors.items() if factor > _PARTS]
        if not grown:
            return scaled
        return scaled.with_objects(pods=without_overflow(scaled.objects, self._concerns, grown))

    def _concerns(self, pod: Pod) -> bool:
        return not pod.unreadable and str(workload_of(pod)) == self.workload

    @property
    def _factors(self) -> dict[str, int]:
        return {"cpu": round(self.cpu * _PARTS), "memory": round(self.memory * _PARTS)}

    def _scaled_pod(self, pod: Pod) -> Pod:
        status = pod.status
        whole = replace(status.resources, requests=self._scaled(status.resources.requests))
        return replace(
            pod,
            spec=self._scaled_spec(pod.spec),
            status=replace(
                status,
                resources=whole,
                allocated_resources=self._scaled(status.allocated_resources),
                container_statuses=tuple(map(self._scaled_status, status.container_statuses)),
                init_container_statuses=tuple(map(self._scaled_status, status.init_container_statuses)),
            ),
        )

    def _scaled_daemons(self, entry: DaemonSet) -> DaemonSet:
        if entry.unreadable or f"DaemonSet {entry.key}" != self.workload:
            return entry
        template = replace(entry.spec.template, spec=self._scaled_spec(entry.spec.template.spec))
        return replace(entry, spec=replace(entry.spec, template=template))

    def _scaled_spec(self, spec: PodSpec) -> PodSpec:
        whole = spec.resources
        return replace(
            spec,
            containers=tuple(map(self._scaled_container, spec.containers)),
            init_containers=tuple(map(self._scaled_container, spec.init_containers)),
            resources=replace(whole, requests=self._scaled(whole.requests), limits=self._scaled(whole.limits)),
        )

    def _scaled_container(self, container: Container) -> Container:
        # A limit without a request is the request.
        requests = self._scaled(dict(stated_requests(container)))
        return replace(container, resources=replace(container.resources, requests=requests, limits={}))

    def _scaled_status(self, status: ContainerStatus) -> ContainerStatus:
        return replace(
            status,
            allocated_resources=self._scaled(status.allocated_resources),
            resources=replace(status.resources, requests=self._scaled(status.resources.requests)),
        )

    def _scaled(self, amounts: Amounts) -> Amounts:
        factors = self._factors
        return {name: Quantity(amount.nano * factors.get(name, _PARTS) // _PARTS) for name, amount in amounts.items()}

    @property
    def words(self) -> str:
        return f"have {self.workload} request {self.cpu:g} times the CPU and {self.memory:g} times the memory"


def _check_workload(question: Question, workload: str) -> None:
    known = {str(workload_of(pod)) for pod in question.objects.pods if not pod.terminal}
    if workload not in known:
        raise unknown_object("workload", "workload", workload, known)
