"""Executes actions on the virtual cluster, each as `execution.actions` describes it."""

from collections.abc import Callable, Iterable
from typing import Any

from karpool.disruption.brakes.short_ledgers import with_entry
from karpool.execution import actions as a
from karpool.kube.store import Store
from karpool.model.deletion_cost import cost_edit
from karpool.model.labels import DISRUPTIONS
from karpool.model.nodepool import NODEPOOL_API
from karpool.virtual.changes import with_annotation, with_condition, with_label, with_metadata, with_status, with_taints
from karpool.virtual.cloud import VirtualCloud
from karpool.virtual.control_plane.api import Api
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import OwnerReference, is_owned

Observer = Callable[[a.Action], None]
MetadataAction = a.SetLabel | a.Annotate | a.AddFinalizer | a.RemoveFinalizer
StatusAction = a.SetClaimCondition | a.ClearClaimCondition | a.SetClaimNode | a.SetPodEventTime


class VirtualActuator:
    """Changes objects as actions say; observers see each action before it is executed."""

    def __init__(self, world: VirtualWorld, api: Api, cloud: VirtualCloud) -> None:
        self.world = world
        store = self.store = world.store
        self._stores: dict[str, Store[Any]] = {
            "Node": store.nodes,
            "NodeClaim": store.claims,
            "NodePool": store.pools,
            "Pod": store.pods,
        }
        self.api = api
        self.cloud = cloud
        self.observers: list[Observer] = []
        self.admission: Callable[[a.Action], str | None] = lambda _action: None
        """What a quota or a webhook says against an action; None lets it pass."""
        self.on_refused: Callable[[a.Action, str], None] = lambda _action, _message: None
        """Called with an action that was refused, and what was said against it."""

    def execute(
        self,
        actions: Iterable[a.Action],
        *,
        alive: Callable[[], bool],
        in_order: bool = False,
    ) -> None:
        """Execute actions as long as the controller is alive, one after the other; only `admission` makes one fail."""
        refused = None
        for action in actions:
            if not alive():
                return
            # What depends on something that was refused is as good as refused.
            refused = refused if in_order and refused is not None else self.admission(action)
            if refused is not None:
                self.on_refused(action, refused)
                continue
            for observer in self.observers:
                observer(action)
            self._do(action)

    def _do(self, action: a.Action) -> None:
        match action:
            case a.AddTaint() | a.RemoveTaint():
                self._taint(action)
            case a.SetLabel() | a.Annotate() | a.AddFinalizer() | a.RemoveFinalizer():
                self._metadata(action)
            case a.SetNodeOwner():
                self._own(action)
            case a.NoteDisruption():
                self._ledger(action)
            case a.SetClaimCondition() | a.ClearClaimCondition() | a.SetClaimNode() | a.SetPodEventTime():
                self._claim_status(action)
            case a.TerminateInstance() | a.RebootInstance():
                self._instance(action)
            case a.SetDeletionCost():
                self._deletion_cost(action)
            case a.RecordEvent():
                pass
            case _:
                self._create_or_delete(action)

    def _instance(self, action: a.TerminateInstance | a.RebootInstance) -> None:
        claim = self.store.claims.get(action.claim)
        if claim is None or claim.metadata.uid != action.uid:
            return
        if isinstance(action, a.RebootInstance):
            self.cloud.reboot(claim, action.operation)
        else:
            self.cloud.terminate(claim)

    def _create_or_delete(
        self, action: a.CreateClaim | a.DeleteClaim | a.DeleteNode | a.EvictPod | a.DeletePod
    ) -> None:
        match action:
            case a.CreateClaim():
                self.api.create_claim(action.claim)
            case a.DeleteClaim():
                self.api.delete(self.store.claims, action.name, action.uid)
            case a.DeleteNode():
                self.api.delete(self.store.nodes, action.name, action.uid)
            case a.EvictPod():
                self.api.evict(action.key, action.uid)
            case a.DeletePod():
                self.api.delete_pod(action.key, uid=action.uid, grace=action.grace_seconds)

    def _taint(self, action: a.AddTaint | a.RemoveTaint) -> None:
        node = self.store.nodes.get(action.node)
        if node is None:
            return
        name = (action.taint.key, action.taint.effect)
        present = [taint for taint in node.spec.taints if (taint.key, taint.effect) == name]
        if isinstance(action, a.AddTaint) and not present:
            self.store.nodes.put(with_taints(node, (*node.spec.taints, action.taint)))
        elif isinstance(action, a.RemoveTaint) and present:
            self.store.nodes.put(with_taints(node, tuple(t for t in node.spec.taints if t not in present)))

    def _metadata(self, action: MetadataAction) -> None:
        store = self._stores[action.kind]
        obj = store.get(action.name)
        if obj is None:
            return
        finalizers = obj.metadata.finalizers
        match action:
            case a.SetLabel(key=key, value=value):
                changed = obj if obj.metadata.labels.get(key) == value else with_label(obj, key, value)
            case a.Annotate(key=key, value=value):
                changed = obj if obj.metadata.annotations.get(key) == value else with_annotation(obj, key, value)
            case a.AddFinalizer(finalizer=name):
                changed = obj if name in finalizers else with_metadata(obj, finalizers=(*finalizers, name))
            case a.RemoveFinalizer(finalizer=name):
                kept = tuple(finalizer for finalizer in finalizers if finalizer != name)
                changed = obj if kept == finalizers else with_metadata(obj, finalizers=kept)
        if changed is not obj:
            self.api.change(store, changed)

    def _own(self, action: a.SetNodeOwner) -> None:
        node = self.store.nodes.get(action.node)
        if node is not None and not is_owned(node, action.uid):
            owner = OwnerReference("NodeClaim", action.claim, NODEPOOL_API, action.uid)
            self.api.change(
                self.store.nodes, with_metadata(node, owner_references=(*node.metadata.owner_references, owner))
            )

    def _ledger(self, action: a.NoteDisruption) -> None:
        pool = self.store.pools.get(action.pool)
        if pool is not None:
            text = with_entry(
                pool.metadata.annotations.get(DISRUPTIONS), action.command, action.entry, self.world.queue.moment
            )
            self._metadata(a.Annotate("NodePool", pool.name, DISRUPTIONS, text))

    def _deletion_cost(self, action: a.SetDeletionCost) -> None:
        pod = self.store.pods.get(action.key)
        if pod is not None and pod.metadata.uid == action.uid:
            for key, value in cost_edit(pod.metadata.annotations, action.cost).items():
                pod = with_annotation(pod, key, value)
            self.api.change(self.store.pods, pod)

    def _claim_status(self, action: StatusAction) -> None:
        claim = self.store.claims.get(action.claim)
        if claim is None:
            return
        match action:
            case a.SetClaimCondition(type=kind, status=status, reason=reason, message=message):
                now = self.world.queue.moment
                changed = with_condition(claim, kind, status, now, reason=reason, message=message)
            case a.ClearClaimCondition(type=kind):
                kept = tuple(entry for entry in claim.status.conditions if entry.type != kind)
                changed = with_status(claim, conditions=kept)
            case a.SetClaimNode(node=node):
                changed = with_status(claim, node_name=node)
            case a.SetPodEventTime(time=time):
                changed = with_status(claim, last_pod_event_time=time)
        if changed.status != claim.status:
            self.store.claims.put(changed)
