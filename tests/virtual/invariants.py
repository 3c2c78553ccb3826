"""What must never happen, whatever the workload and however often the controller dies; checked after every event.

Nothing here asks the parts that it checks: budgets, healthy pods and destinations are counted anew from the store.
"""

from collections.abc import Iterator

from tests.packing.placing import place
from tests.packing.twin import Wishes

from karpool.controller.observer import DecisionObserver
from karpool.disruption.budgets import allowed
from karpool.disruption.candidates.pods import tolerates_disruption
from karpool.disruption.command import Command
from karpool.execution.actions import Action, AddTaint, DeleteClaim, EvictPod
from karpool.execution.conditions import DISRUPTION_REASON
from karpool.execution.tickets import COMMAND, REPLACES, ticket_of
from karpool.model.labels import DISRUPTED_TAINT, NODEPOOL, REBOOTING_TAINT
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget
from karpool.packing.options import Options
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.control_plane.pdb_controller import EvictionStatus
from karpool.wire.objects import condition, is_true


class BrokenInvariantError(AssertionError):
    """Something happened that must never happen; the message says what, when and to whom."""


class Invariants(DecisionObserver):
    """Watches a cluster and raises as soon as it breaks a rule."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.store = cluster.store
        self.checked = 0
        self._taken_back: set[str] = set()
        """Ids of committed commands whose replacements are deleted: they have to let their nodes be."""
        cluster.api.on_eviction.append(self._eviction)
        cluster.actuator.observers.append(self._action)
        cluster.controller.observers.append(self)
        cluster.queue.observers.append(self._check_room)

    def _broken(self, message: str) -> BrokenInvariantError:
        return BrokenInvariantError(f"{self.cluster.now:%H:%M:%S}: {message}")

    # -- budgets of pods -----------------------------------------------------------------------------------------

    def _eviction(self, pod: Pod, code: EvictionStatus) -> None:
        """Called before a pod is evicted: its budgets must allow it."""
        self.checked += 1
        if code is not EvictionStatus.CREATED or not _healthy(pod):
            return
        for pdb in self.store.pdbs:
            if pdb.matches(pod.metadata.namespace, pod.metadata.labels):
                healthy = sum(_healthy(other) for other in self._covered(pdb))
                if healthy - 1 < self._needed(pdb):
                    raise self._broken(
                        f"evicting {pod.key} leaves {healthy - 1} of {self._needed(pdb)} pods that {pdb.key} needs"
                    )

    def _covered(self, pdb: PodDisruptionBudget) -> Iterator[Pod]:
        return (pod for pod in self.store.pods if pdb.matches(pod.metadata.namespace, pod.metadata.labels))

    def _needed(self, pdb: PodDisruptionBudget) -> int:
        """How many healthy pods the budget needs, from the desired replicas."""
        live = [pod for pod in self._covered(pdb) if not pod.terminal]
        manager = self.cluster.controller_manager
        replicas = {owner.key: owner.replicas for pod in live if (owner := manager.controller_of(pod))}
        least, most, whole = pdb.spec.min_available, pdb.spec.max_unavailable, sum(replicas.values())
        if most is not None:
            return whole - _share(most, whole)
        return _share(least or 0, whole)

    # -- budgets of pools ----------------------------------------------------------------------------------------

    def command_started(self, command: Command, _identity: str) -> None:
        """A command that begins must be within the budgets of its pools, and have a place for each of its pods."""
        for name in sorted({self._pool(node) for node in command.nodes}):
            self._check_budget(name, command)
        self._check_places(command)

    def _pool(self, node: str) -> str:
        existing = self.store.nodes.get(node)
        return "" if existing is None else existing.metadata.labels.get(NODEPOOL, "")

    def _check_budget(self, name: str, command: Command) -> None:
        pool = self.store.pools.get(name)
        if pool is None or self.cluster.policy.decisions.ignore_budgets:
            return
        nodes = [
            node
            for node in self.store.nodes
            if node.metadata.labels.get(NODEPOOL) == name and node.metadata.labels.get("karpenter.sh/initialized")
        ]
        leaving = {node.name for node in nodes if _leaves(node) and not self._ended(node)}
        mine = {node for node in command.nodes if self._pool(node) == name}
        limit = allowed(pool, str(command.cause), len(nodes), 0, self.cluster.now).allowed
        if len(leaving | mine) > limit:
            raise self._broken(f"{len(leaving | mine)} nodes of pool {name} go at once; its budget allows {limit}")

    def _ended(self, node: Node) -> bool:
        claim = self.store.claims.get(node.name)
        return claim is not None and claim.is_true("InstanceTerminating")

    # -- places --------------------------------------------------------------------------------------------------

    def _check_places(self, command: Command) -> None:
        """Asked from scratch, without the snapshot that found the command."""
        if command.cause == "Drifted" or command.reboot or command.terminate_first:
            return
        # What replaces nodes of another command is only waited for.
        coming = {move.pod for move in command.moves if self._comes(move.target)}
        leaving = [pod for pod in self.store.pods if pod.spec.node_name in command.nodes and pod.reschedulable]
        pods = [pod for pod in leaving if pod.key not in coming]
        gone = {*command.nodes, *(node.name for node in self.store.nodes if _leaves(node))}
        # A command of a search has its own way to make everything fit.
        staying = {node.name for node in self.store.nodes} - gone
        there = {move.pod: move.target for move in command.moves if move.target in staying}
        wishes = Wishes((), places={pod.key: there[pod.key] for pod in pods if pod.key in there}, kinds={})
        options = Options(ignore_dra_requests=self.cluster.policy.decisions.ignore_dra_requests)
        answer = place(
            self.store.objects(), self.cluster.cloud.catalog, pods=pods, gone=gone, wishes=wishes, options=options
        )
        if answer.unplaced:
            raise self._broken(f"{', '.join(answer.unplaced)} would have no place without {', '.join(command.nodes)}")
        if len(answer.new_nodes) > len(command.replacements):
            raise self._broken(
                f"without {', '.join(command.nodes)} pods need {len(answer.new_nodes)} new nodes, "
                f"and the command brings {len(command.replacements)}"
            )

    def _comes(self, target: str | int) -> bool:
        """Whether a node that pods go to is no more than a NodeClaim that is to stay."""
        claim = self.store.claims.get(target) if isinstance(target, str) else None
        return claim is not None and claim.name not in self.store.nodes and not claim.terminating

    # -- actions -------------------------------------------------------------------------------------------------

    def _action(self, action: Action) -> None:
        self.checked += 1
        match action:
            case EvictPod():
                self._check_drained(action.key, action.node)
            case DeleteClaim():
                self._check_deletion(action.name)
            case AddTaint(taint=taint) if taint.key == DISRUPTED_TAINT and not self._may_taint(action.node):
                raise self._broken(f"node {action.node} is tainted, and nothing says why it should go")
            case _:
                pass

    def _check_drained(self, key: str, node: str) -> None:
        """Pods are evicted only from nodes that are on their way out."""
        pod, existing = self.store.pods.get(key), self.store.nodes.get(node)
        fenced = existing is not None and any(taint.key == REBOOTING_TAINT for taint in existing.spec.taints)
        leaves = fenced or (existing is not None and _leaves(existing))
        if pod is not None and pod.spec.node_name == node and not leaves:
            raise self._broken(f"{key} is evicted from node {node}, which stays")

    def _check_deletion(self, name: str) -> None:
        """A committed command loses no replacement once its nodes go, and none of its nodes once a replacement goes."""
        claim = self.store.claims.get(name)
        if claim is None:
            return
        ticket, mark = ticket_of(claim), claim.metadata.annotations.get(REPLACES)
        if ticket is not None and ticket.id in self._taken_back:
            raise self._broken(f"NodeClaim {name} is deleted though its command has lost its replacements")
        tickets = [(other, known) for other in self.store.claims if (known := ticket_of(other)) is not None]
        for other, known in tickets:
            if known.id == mark and known.committed:
                self._taken_back.add(known.id)
                if other.terminating:
                    raise self._broken(f"NodeClaim {name} is deleted though a command waits for it")

    def _may_taint(self, name: str) -> bool:
        claim, node = self.store.claims.get(name), self.store.nodes.get(name)
        deleted = node is not None and node.metadata.deletion_timestamp is not None
        return deleted or (claim is not None and COMMAND in claim.metadata.annotations)

    # -- every event and the end -----------------------------------------------------------------------------------

    def _check_room(self) -> None:
        """No node holds more than it has."""
        self.checked += 1
        nodes = self.cluster.cluster_state.snapshot.nodes
        size = len(nodes.states)
        over = (nodes.taken[:size] > nodes.room[:size]).any(axis=1) & (nodes.live[:size] > 0)
        if over.any():
            raise self._broken(f"node {nodes.get(int(over.argmax())).name} holds more than it has")

    def expect_nothing_left_over(self) -> None:
        """When all is quiet: no taint, ticket or replacement is left over, and no pod is pending."""
        for claim in self.store.claims:
            marks = {COMMAND, REPLACES} & set(claim.metadata.annotations)
            if (
                claim.metadata.deletion_timestamp is not None
                or marks
                or condition(claim.status.conditions, DISRUPTION_REASON)
            ):
                raise self._broken(f"NodeClaim {claim.name} still says that it goes or replaces: {sorted(marks)}")
        for node in self.store.nodes:
            if _leaves(node):
                raise self._broken(f"node {node.name} is still tainted or being deleted")
        if set(self.cluster.cloud.instances) != {node.name for node in self.store.nodes}:
            raise self._broken("machines and nodes are not the same")
        waiting = [pod.key for pod in self.store.pods if not pod.bound]
        if waiting:
            raise self._broken(f"pods wait without end: {', '.join(waiting)}")


def _healthy(pod: Pod) -> bool:
    return pod.active and is_true(pod.status.conditions, "Ready") and not tolerates_disruption(pod)


def _leaves(node: Node) -> bool:
    tainted = any(taint.key == DISRUPTED_TAINT for taint in node.spec.taints)
    return tainted or node.metadata.deletion_timestamp is not None


def _share(written: int | str, whole: int) -> int:
    if isinstance(written, str) and written.endswith("%"):
        return -(-int(written[:-1]) * whole // 100)
    return int(written)
