"""A cluster small enough to read: it carries out actions, launches nodes, ends pods, and keeps budgets' status."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace
from tests.factories import amounts

from karpool.disruption.brakes.short_ledgers import with_entry
from karpool.execution import actions as do
from karpool.execution.conditions import INSTANCE_TERMINATING, LAUNCHED, TERMINATED, TERMINATING
from karpool.model.labels import DISRUPTIONS, HOSTNAME, UNREGISTERED_TAINT
from karpool.model.node import Node, NodeSpec, NodeStatus
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.model.workloads import PodDisruptionBudget
from karpool.wire.objects import Condition, Metadata, Object, OwnerReference

START: Final = datetime(2026, 6, 1, 12, tzinfo=UTC)
LAUNCH: Final = timedelta(seconds=2)
JOIN: Final = timedelta(seconds=20)
POD_GRACE: Final = timedelta(seconds=3)
SIZE: Final = amounts({"cpu": "4", "memory": "16Gi", "pods": 110})


class World:
    """Objects that change; `next_event` says when something happens by itself."""

    def __init__(self, objects: Objects, *, launches: bool = True) -> None:
        self.others = objects
        self.now = START
        self.launches = launches
        self.pods = {pod.key: pod for pod in objects.pods}
        self.nodes = {node.name: node for node in objects.nodes}
        self.claims = {claim.name: claim for claim in objects.node_claims}
        self.pdbs = {pdb.key: pdb for pdb in objects.pod_disruption_budgets}
        self.due: list[tuple[datetime, str, str]] = []
        self.done: list[do.Action] = []
        self.refused = 0
        self._count_budgets()

    def objects(self) -> Objects:
        return replace(
            self.others,
            pods=tuple(self.pods.values()),
            nodes=tuple(self.nodes.values()),
            node_claims=tuple(self.claims.values()),
            pod_disruption_budgets=tuple(self.pdbs.values()),
        )

    # -- time ----------------------------------------------------------------------------------------------------

    def later(self, delay: timedelta, what: str, name: str) -> None:
        self.due.append((self.now + delay, what, name))

    @property
    def next_event(self) -> datetime | None:
        return min((when for when, _, _ in self.due), default=None)

    def pass_time(self, until: datetime) -> None:
        """Let everything happen that is due by then."""
        while self.due and (first := min(self.due))[0] <= until:
            self.due.remove(first)
            self.now = max(self.now, first[0])
            getattr(self, f"_{first[1]}")(first[2])
            self._count_budgets()
        self.now = max(self.now, until)

    def _launch(self, name: str) -> None:
        claim = self.claims.get(name)
        if claim is not None and claim.metadata.deletion_timestamp is None:
            status = replace(claim.status, provider_id=f"fake://{name}", capacity=SIZE, allocatable=SIZE)
            self.claims[name] = replace(claim, status=status)
            self._condition(name, Condition(type=LAUNCHED, status="True", reason=LAUNCHED))
            self.later(JOIN, "join", name)

    def _join(self, name: str) -> None:
        if name in self.claims and self.claims[name].metadata.deletion_timestamp is None:
            self.nodes[name] = Node(
                metadata=Metadata(name=name, uid=f"node-{name}", labels={HOSTNAME: name}, creation_timestamp=self.now),
                spec=NodeSpec(provider_id=f"fake://{name}", taints=(Taint(UNREGISTERED_TAINT, "NoExecute"),)),
                status=NodeStatus(
                    capacity=SIZE, allocatable=SIZE, conditions=(Condition(type="Ready", status="True"),)
                ),
            )

    def _end_pod(self, key: str) -> None:
        """A pod is gone, and its owner makes another one, which finds a place where no taint is."""
        gone = self.pods.pop(key, None)
        if gone is None or gone.is_daemon:
            return
        open_nodes = [node.name for node in self.nodes.values() if node.ready and not node.spec.taints]
        again = f"{gone.name}x"
        metadata = replace(gone.metadata, name=again, uid=f"{gone.metadata.uid}x", deletion_timestamp=None)
        spec = replace(gone.spec, node_name=open_nodes[0] if open_nodes else "")
        made = replace(gone, metadata=replace(metadata, creation_timestamp=self.now), spec=spec)
        self.pods[made.key] = replace(made, status=replace(made.status, start_time=self.now))

    # -- budgets -------------------------------------------------------------------------------------------------

    def healthy(self, pdb: PodDisruptionBudget) -> int:
        mine = (pod for pod in self.pods.values() if pdb.matches(pod.metadata.namespace, pod.metadata.labels))
        return sum(pod.active and bool(pod.spec.node_name) for pod in mine)

    def _count_budgets(self) -> None:
        for key, pdb in self.pdbs.items():
            healthy = self.healthy(pdb)
            allowed = max(0, healthy - pdb.status.desired_healthy)
            status = replace(pdb.status, current_healthy=healthy, disruptions_allowed=allowed)
            self.pdbs[key] = replace(pdb, status=status)

    # -- actions -------------------------------------------------------------------------------------------------

    def execute(self, batch: Iterable[do.Action]) -> None:
        for action in batch:
            self.apply(action)

    def apply(self, action: do.Action) -> None:
        self.done.append(action)
        self._change_node(action)
        self._change_claim(action)
        self._change_metadata(action)
        self._change_pod(action)
        self._count_budgets()

    def _change_node(self, action: do.Action) -> None:
        match action:
            case do.AddTaint(name, taint) if name in self.nodes:
                taints = self.nodes[name].spec.taints
                self._taint(name, taints if taint in taints else (*taints, taint))
            case do.RemoveTaint(name, taint) if name in self.nodes:
                self._taint(name, tuple(t for t in self.nodes[name].spec.taints if t != taint))
            case do.DeleteNode(name, uid):
                self._delete(self.nodes, name, uid)

    def _change_claim(self, action: do.Action) -> None:
        match action:
            case do.SetClaimCondition(name, kind, status, reason, message):
                self._condition(name, Condition(type=kind, status=status, reason=reason, message=message))
            case do.ClearClaimCondition(name, kind) if name in self.claims:
                self._set_conditions(name, [c for c in self.claims[name].status.conditions if c.type != kind])
            case do.SetClaimNode(name, node) if name in self.claims:
                claim = self.claims[name]
                self.claims[name] = replace(claim, status=replace(claim.status, node_name=node))
            case do.CreateClaim(claim) if claim.name not in self.claims:
                metadata = replace(claim.metadata, uid=f"claim-{claim.name}", creation_timestamp=self.now)
                self.claims[claim.name] = replace(claim, metadata=metadata)
                if self.launches:
                    self.later(LAUNCH, "launch", claim.name)
            case do.DeleteClaim(name, uid):
                self._delete(self.claims, name, uid)
            case do.TerminateInstance(name, uid) if name in self.claims and self.claims[name].metadata.uid == uid:
                asked = any(c.type == INSTANCE_TERMINATING for c in self.claims[name].status.conditions)
                reason = TERMINATED if asked else TERMINATING
                self._condition(name, Condition(type=INSTANCE_TERMINATING, status="True", reason=reason))

    def _change_metadata(self, action: do.Action) -> None:
        match action:
            case do.SetLabel(kind, name, key, value):
                self._metadata(kind, name, labels=(key, value))
            case do.Annotate(kind, name, key, value):
                self._metadata(kind, name, annotations=(key, value))
            case do.NoteDisruption(name, command, entry):
                self._note(name, lambda text: with_entry(text, command, entry, self.now))
            case do.SetNodeOwner(name, claim, uid) if name in self.nodes:
                node = self.nodes[name]
                owners = (*node.metadata.owner_references, OwnerReference("NodeClaim", claim, uid=uid))
                self.nodes[name] = replace(node, metadata=replace(node.metadata, owner_references=owners))
            case do.AddFinalizer(kind, name, finalizer):
                self._finalizers(kind, name, add=finalizer)
            case do.RemoveFinalizer(kind, name, finalizer):
                self._finalizers(kind, name, remove=finalizer)

    def _note(self, name: str, change: Callable[[str | None], str | None]) -> None:
        """Change the ledger of a pool."""
        pools = []
        for pool in self.others.node_pools:
            annotations = dict(pool.metadata.annotations)
            if pool.name == name and (text := change(annotations.pop(DISRUPTIONS, None))) is not None:
                annotations[DISRUPTIONS] = text
            pools.append(replace(pool, metadata=replace(pool.metadata, annotations=annotations)))
        self.others = replace(self.others, node_pools=tuple(pools))

    def _change_pod(self, action: do.Action) -> None:
        match action:
            case do.EvictPod(key, uid, _):
                self._evict(key, uid)
            case do.DeletePod(key, uid, _, grace):
                self._end(key, uid, timedelta(seconds=grace or 0))

    def _taint(self, name: str, taints: tuple[Taint, ...]) -> None:
        node = self.nodes[name]
        self.nodes[name] = replace(node, spec=replace(node.spec, taints=taints))

    def _kind(self, kind: str) -> dict[str, Node] | dict[str, NodeClaim]:
        return self.nodes if kind == "Node" else self.claims

    def _metadata(self, kind: str, name: str, **field: tuple[str, str | None]) -> None:
        objects = self._kind(kind)
        if name not in objects:
            return
        for part, (key, value) in field.items():
            entries = {k: v for k, v in getattr(objects[name].metadata, part).items() if k != key}
            if value is not None:
                entries[key] = value
            metadata = replace(objects[name].metadata, **{part: entries})
            objects[name] = replace(objects[name], metadata=metadata)

    def _finalizers(self, kind: str, name: str, *, add: str = "", remove: str = "") -> None:
        objects = self._kind(kind)
        if name not in objects:
            return
        kept = {*objects[name].metadata.finalizers, add} - {"", remove}
        if not kept and objects[name].metadata.deletion_timestamp is not None:
            del objects[name]
            return
        metadata = replace(objects[name].metadata, finalizers=tuple(sorted(kept)))
        objects[name] = replace(objects[name], metadata=metadata)

    def _condition(self, name: str, new: Condition) -> None:
        if name not in self.claims:
            return
        conditions = {c.type: c for c in self.claims[name].status.conditions}
        before = conditions.get(new.type)
        same = before is not None and before.status == new.status
        since = before.last_transition_time if before is not None and same else self.now
        conditions[new.type] = replace(new, last_transition_time=since)
        self._set_conditions(name, list(conditions.values()))

    def _set_conditions(self, name: str, conditions: list[Condition]) -> None:
        claim = self.claims[name]
        self.claims[name] = replace(claim, status=replace(claim.status, conditions=tuple(conditions)))

    def _delete(self, objects: dict[str, Node] | dict[str, NodeClaim], name: str, uid: str) -> None:
        current: Object | None = objects.get(name)
        if current is None or current.metadata.uid != uid or current.metadata.deletion_timestamp is not None:
            return
        if not current.metadata.finalizers:
            del objects[name]
        else:
            metadata = replace(current.metadata, deletion_timestamp=self.now)
            objects[name] = replace(current, metadata=metadata)  # type: ignore[assignment]

    def _evict(self, key: str, uid: str) -> None:
        pod = self.pods.get(key)
        if pod is None or pod.metadata.uid != uid:
            return
        covering = [p for p in self.pdbs.values() if p.matches(pod.metadata.namespace, pod.metadata.labels)]
        if pod.active and any(p.status.disruptions_allowed <= 0 for p in covering):
            self.refused += 1
            return
        self._end(key, uid, POD_GRACE)

    def _end(self, key: str, uid: str, grace: timedelta) -> None:
        pod = self.pods.get(key)
        if pod is None or pod.metadata.uid != uid:
            return
        ends = self.now + grace
        before = pod.metadata.deletion_timestamp
        if before is None or ends < before:
            self.due = [entry for entry in self.due if entry[1:] != ("end_pod", key)]
            self.pods[key] = _deleted(pod, ends)
            self.later(grace, "end_pod", key)


def _deleted(pod: Pod, when: datetime) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=when))
