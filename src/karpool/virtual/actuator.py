"""Executes actions on the virtual cluster, each as `execution.actions` describes it."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from karpool.execution import actions as a
from karpool.kube.store import Store
from karpool.model.nodepool import NodeClaim
from karpool.virtual.api import Api
from karpool.virtual.changes import T, with_annotation, with_claim_condition, with_label, with_metadata, with_taints
from karpool.virtual.cloud import VirtualCloud
from karpool.virtual.world import VirtualWorld

Observer = Callable[[a.Action], None]


class VirtualActuator:
    """Changes objects as actions say; observers see each action before it is executed."""

    def __init__(self, world: VirtualWorld, api: Api, cloud: VirtualCloud) -> None:
        self.world = world
        self.store = world.store
        self.api = api
        self.cloud = cloud
        self.observers: list[Observer] = []

    def execute(
        self,
        actions: Iterable[a.Action],
        *,
        alive: Callable[[], bool],
        in_order: bool = False,  # noqa: ARG002
    ) -> None:
        """Execute actions as long as the controller is alive; here none fails, and all are in order."""
        for action in actions:
            if not alive():
                return
            for observer in self.observers:
                observer(action)
            self._do(action)

    def _do(self, action: a.Action) -> None:
        match action:
            case a.AddTaint() | a.RemoveTaint():
                self._taint(action)
            case a.SetLabel() | a.Annotate() | a.AddFinalizer() | a.RemoveFinalizer():
                self._metadata(action)
            case a.SetClaimCondition() | a.ClearClaimCondition() | a.SetClaimNode() | a.SetPodEventTime():
                self._claim_status(action)
            case a.TerminateInstance():
                claim = self.store.claims.get(action.claim)
                if claim is not None and claim.metadata.uid == action.uid:
                    self.cloud.terminate(claim)
            case a.RecordEvent():
                pass
            case _:
                self._create_or_delete(action)

    def _create_or_delete(
        self, action: a.CreateClaim | a.DeleteClaim | a.DeleteNode | a.EvictPod | a.DeletePod
    ) -> None:
        match action:
            case a.CreateClaim():
                self.api.create_claim(action.claim)
            case a.DeleteClaim():
                self.api.delete_claim(action.name, action.uid)
            case a.DeleteNode():
                self.api.delete_node(action.name, action.uid)
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

    def _metadata(self, action: a.SetLabel | a.Annotate | a.AddFinalizer | a.RemoveFinalizer) -> None:
        match action.kind:
            case "Node":
                self._change(self.store.nodes, action)
            case "NodeClaim":
                self._change(self.store.claims, action)
            case "NodePool":
                self._change(self.store.pools, action)
            case "Pod":
                self._change(self.store.pods, action)

    def _change(self, store: Store[T], action: a.SetLabel | a.Annotate | a.AddFinalizer | a.RemoveFinalizer) -> None:
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

    def _claim_status(
        self, action: a.SetClaimCondition | a.ClearClaimCondition | a.SetClaimNode | a.SetPodEventTime
    ) -> None:
        claim = self.store.claims.get(action.claim)
        if claim is None:
            return
        changed = self._with_status(claim, action)
        if changed.status != claim.status:
            self.store.claims.put(changed)

    def _with_status(
        self, claim: NodeClaim, action: a.SetClaimCondition | a.ClearClaimCondition | a.SetClaimNode | a.SetPodEventTime
    ) -> NodeClaim:
        status = claim.status
        match action:
            case a.SetClaimCondition(type=kind, reason=reason, message=message):
                now = self.world.queue.moment
                return with_claim_condition(claim, kind, action.status, now, reason=reason, message=message)
            case a.ClearClaimCondition(type=kind):
                kept = tuple(entry for entry in status.conditions if entry.type != kind)
                return replace(claim, status=replace(status, conditions=kept))
            case a.SetClaimNode(node=node):
                return replace(claim, status=replace(status, node_name=node))
            case a.SetPodEventTime(time=time):
                return replace(claim, status=replace(status, last_pod_event_time=time))
