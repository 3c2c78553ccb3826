"""The node compactor at work on the virtual cluster: the same steps as everywhere, looked at every few minutes."""

from datetime import datetime
from functools import partial

from msgspec.structs import replace

from karpool.compaction.actions import CompactionAction, SetNodeState
from karpool.compaction.advance import advance
from karpool.compaction.config import Config
from karpool.compaction.settings import DEFAULTS, CompactionSettings, jittered
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.virtual.api import Api
from karpool.virtual.changes import with_annotation
from karpool.virtual.random_streams import share
from karpool.virtual.world import VirtualWorld


class VirtualCompactor:
    """Drains under-used nodes of the configured pools, so that the autoscaler removes them."""

    def __init__(self, world: VirtualWorld, api: Api, config: Config, settings: CompactionSettings = DEFAULTS) -> None:
        self.world = world
        self.api = api
        self.config = config
        self.settings = settings
        self._looks = 0

    def start(self) -> None:
        """Look from the beginning on."""
        self.world.queue.at(0.0, self._look)

    def _look(self) -> None:
        queue = self.world.queue
        now: datetime = queue.moment
        step = advance(self.world.store.objects(), self.config, now, self.settings)
        self._looks += 1
        if step.requeue_at is None:
            sleep = jittered(self.settings.sleep, share(self.world.seed, "compactor", str(self._looks)))
        else:
            sleep = step.requeue_at - now
        queue.after(sleep.total_seconds(), self._look)
        for action in step.actions:
            queue.after(0.0, partial(self._carry_out, action))

    def _carry_out(self, action: CompactionAction) -> None:
        match action:
            case SetNodeState():
                self._set_state(action)
            case EvictPod():
                self.api.evict(action.key, action.uid)
            case DeletePod():
                self.api.delete_pod(action.key, uid=action.uid)
            case RecordEvent():
                pass

    def _set_state(self, action: SetNodeState) -> None:
        nodes = self.world.store.nodes
        node = nodes.get(action.node)
        if node is None:
            return
        marked = with_annotation(node, action.annotation, action.value)
        if action.unschedulable is not None:
            marked = replace(marked, spec=replace(marked.spec, unschedulable=action.unschedulable))
        nodes.put(marked)
