"""The provisioning controller: batches pending pods and creates NodeClaims for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from karpool.cluster.snapshot import Snapshot
from karpool.controller.lifecycle_controller import LifecycleController
from karpool.controller.session import Session
from karpool.disruption.settings import GLOBAL
from karpool.execution.actions import CreateClaim
from karpool.execution.leaving import moving_pods
from karpool.execution.state import nominate
from karpool.execution.tickets import nodes_in_commands
from karpool.model.nodepool import REBOOTING
from karpool.model.pod import Pod
from karpool.provisioning.batching import Batch, BatchWindow
from karpool.provisioning.provision import provision


class ProvisioningController:
    """Batches pending pods, provisions when a batch is complete, and retries those that still wait."""

    def __init__(self, session: Session, lifecycle: LifecycleController) -> None:
        self.session = session
        self.lifecycle = lifecycle
        self.clock = session.clock
        self.store = session.store
        intervals = session.intervals
        self.window = BatchWindow(timedelta(seconds=intervals.batch_idle), timedelta(seconds=intervals.batch_most))
        self._batch = Batch(self.window)
        self._waiting: dict[str, str] = {}
        self._headroom = session.cluster_state.headroom
        self._closing: datetime | None = None

    def start(self) -> None:
        """Trigger for all pending pods, now and at every poll."""
        for pod in self.store.pods.listed():
            self.pod(None, pod)
        if self._headroom is not None:
            self._headroom.on_wanted = self._want_headroom
        self._retry()

    def _retry(self) -> None:
        if not self.session.alive:
            return
        for uid in self._waiting.values():
            self._trigger(uid)
        for name in sorted(self.lifecycle.marked):
            self._trigger(name)
        self._want_headroom()
        self.clock.after(self.session.intervals.poll, self._retry)

    def _want_headroom(self) -> None:
        """See to it that headroom has nodes; pods may have taken them since."""
        if self.session.alive and self._headroom is not None:
            for pod in self._headroom.pods.values():
                self._trigger(pod.metadata.uid)

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that needs a node, or no longer does."""
        if new is not None and new.provisionable and new.active:
            if new.key not in self._waiting:
                self._waiting[new.key] = new.metadata.uid
                self._trigger(new.metadata.uid)
        elif old is not None:
            self._waiting.pop(old.key, None)

    def _trigger(self, uid: str) -> None:
        self._batch.trigger(uid, self.clock.moment)
        closing = self._batch.closes
        if closing is not None and closing != self._closing:
            self._closing = closing
            self.clock.when(closing, partial(self._close, closing))

    def _close(self, closing: datetime) -> None:
        if not self.session.alive or closing != self._closing:
            return
        self._closing = None
        now = self.clock.moment
        if self._batch.complete(now):
            self._batch = Batch(self.window)
            self._provision(now)

    def _provision(self, now: datetime) -> None:
        session = self.session
        objects = self.store.but_pods()
        pods = {*self._waiting, *self._moving(now), *(() if self._headroom is None else self._headroom.pods)}
        if not pods:
            return
        for observer in session.observers:
            observer.pass_started()
        engine = session.engine()
        engine.snapshot.objects = objects
        with self._room_after_reboots(engine.snapshot):
            result = provision(engine, objects, pods, now)
        nominations = result.nominations
        session.state = nominate(session.state, sorted(nominations), now, session.execution, nominations)
        for observer in session.observers:
            observer.pods_provisioned(result)
        session.execute([CreateClaim(claim) for claim in result.claims])

    @contextmanager
    def _room_after_reboots(self, snapshot: Snapshot) -> Iterator[None]:
        """Leave out pods that end on nodes that are being rebooted: those that come back in their place wait there."""
        rebooting = [claim for name in self.lifecycle.marked if (claim := self.store.claims.get(name)) is not None]
        names = [claim.status.node_name for claim in rebooting if claim.is_true(REBOOTING) and not claim.terminating]
        ending = [pod for name in names for pod in self.session.pods_on(name) if pod.terminating and not pod.is_daemon]
        for pod in ending:
            snapshot.remove_pod(pod.key)
        try:
            yield
        finally:
            for pod in ending:
                snapshot.put_pod(pod)

    def _moving(self, now: datetime) -> frozenset[str]:
        """The pods that leave nodes that are being deleted."""
        if not self.lifecycle.marked:
            return frozenset()
        around = self.lifecycle.under_way()
        # What a search decided has room for its pods, packed closer than they would be here.
        provided = nodes_in_commands(around) if self.session.settings.search == GLOBAL else frozenset()
        leaving = [node.name for node in around.nodes if node.name not in provided]
        pods = tuple(pod for name in leaving for pod in self.session.pods_on(name))
        return moving_pods(replace(around, pods=pods), now, self.session.pdb_source.pdbs())
