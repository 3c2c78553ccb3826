"""A controller of the virtual cluster that sees it through watches, which can stall."""

from typing import Any

from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.observer import DecisionObserver
from karpool.controller.store import ClusterStore
from karpool.disruption.command import Command
from karpool.execution.actions import Action, RecordEvent
from karpool.kube.store import Store
from karpool.model.reasons import Reason
from karpool.operator.pdb_source import StorePdbSource
from karpool.provisioning.inflight import as_launched
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.facts import VirtualFacts

WATCHED = ("nodes", "pods", "claims", "pools", "pdbs", "daemon_sets", "namespaces")


class Heard(DecisionObserver):
    """What became of commands."""

    def __init__(self) -> None:
        self.dropped: list[Reason] = []
        self.started: list[Command] = []
        self.told: list[RecordEvent] = []

    def command_dropped(self, _command: Command, reason: Reason, _in_a_row: int) -> None:
        self.dropped.append(reason)

    def command_started(self, command: Command, _identity: str) -> None:
        self.started.append(command)

    def actions_requested(self, actions: Any) -> None:
        self.told += [action for action in actions if isinstance(action, RecordEvent)]


class Mirror:
    """A copy of the objects that follows them, kind by kind, unless its watch is stalled; and who decides on it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        """To be made before the cluster runs: its own controller stops at once."""
        self.cluster = cluster
        self.store = ClusterStore()
        self.heard = Heard()
        self.deeds: list[Action] = []
        self._stalled: dict[str, dict[str, Any]] = {}
        for kind in WATCHED:
            self._follow(kind)
        self.controller = Controller(
            self.store,
            cluster.queue,
            ClusterState(self.store, lambda claim: as_launched(claim, cluster.cloud.catalog)),
            cluster.actuator,
            catalog_source=cluster.cloud,
            pdb_source=StorePdbSource(self.store),
            facts=VirtualFacts(cluster.store),
            settings=cluster.controller.settings,
            options=cluster.controller.options,
            intervals=cluster.controller.intervals,
        )
        self.controller.observers.append(self.heard)
        cluster.actuator.observers.append(self.deeds.append)
        cluster.queue.at(0.0, cluster.controller.stop)
        cluster.queue.at(0.0, self.controller.start)

    def stall(self, kind: str) -> None:
        """From now on the watch of a kind brings nothing."""
        self._stalled[kind] = {}

    def resume(self, kind: str) -> None:
        """The watch brings everything that it held back."""
        copy: Store[Any] = getattr(self.store, kind)
        for key, obj in self._stalled.pop(kind).items():
            if obj is None:
                copy.remove(key)
            else:
                copy.put(obj)

    def _follow(self, kind: str) -> None:
        original: Store[Any] = getattr(self.cluster.store, kind)
        copy: Store[Any] = getattr(self.store, kind)

        def changed(old: Any, new: Any) -> None:
            key = (new or old).key
            if kind in self._stalled:
                self._stalled[kind][key] = new
            elif new is None:
                copy.remove(key)
            else:
                copy.put(new)

        for obj in original.listed():
            copy.put(obj)
        original.watch(changed)
