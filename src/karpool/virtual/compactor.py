"""The node compactor on the virtual cluster, with the steps of the real one."""

from datetime import datetime
from functools import partial

from msgspec.structs import replace

from karpool.compaction.actions import CompactionAction, SetNodeState
from karpool.compaction.advance import advance
from karpool.compaction.config import Config
from karpool.compaction.confirm import confirmed, nodes_to_read
from karpool.compaction.marks import ANNOTATION, encode_mark
from karpool.compaction.rates import NO_LEDGER, Ledger, ledger_with
from karpool.compaction.settings import DEFAULTS, jittered
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.virtual.changes import with_annotation
from karpool.virtual.control_plane.api import Api
from karpool.virtual.facts import VirtualFacts
from karpool.virtual.random_streams import random_fraction
from karpool.virtual.world import VirtualWorld


class VirtualCompactor:
    def __init__(self, world: VirtualWorld, api: Api, config: Config) -> None:
        self.world = world
        self.api = api
        self.config = config
        self._scans = 0
        self._ledger = NO_LEDGER
        """What was drained lately; here nobody is started again, so it is kept in memory."""

    def start(self) -> None:
        self.world.queue.at(0.0, self._scan)

    def _scan(self) -> None:
        queue = self.world.queue
        now: datetime = queue.moment
        step = advance(self.world.store.objects(), self.config, now, DEFAULTS, ledger=self._ledger)
        self._scans += 1
        if step.requeue_at is None:
            sleep = jittered(DEFAULTS.sleep, random_fraction(self.world.seed, "compactor", str(self._scans)))
        else:
            sleep = step.requeue_at - now
        queue.after(sleep.total_seconds(), self._scan)
        facts = VirtualFacts(self.world.store).facts_of(nodes_to_read(step.actions))
        actions, refused = confirmed(step, facts)
        noted = [entry for name, entry in step.entries.items() if name not in refused]
        if noted:
            self._ledger = Ledger(ledger_with(self._ledger.text, noted, now))
        for action in actions:
            queue.after(0.0, partial(self._execute, action))

    def _execute(self, action: CompactionAction) -> None:
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
        marked = with_annotation(node, ANNOTATION, encode_mark(action.mark))
        if action.unschedulable is not None:
            marked = replace(marked, spec=replace(marked.spec, unschedulable=action.unschedulable))
        nodes.put(marked)
