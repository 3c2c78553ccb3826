"""One replica of the controller: a process with a claim to the lease."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from tests.robustness.injector import FaultInjector
from tests.robustness.lease import TIMES, Elector, VirtualLease
from tests.robustness.process import Process
from tests.robustness.recorder import HistoryRecorder
from tests.robustness.requests import RequestSender

from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.ports import Task
from karpool.model.nodepool import NodeClaim
from karpool.operator.pdb_source import StorePdbSource
from karpool.provisioning.inflight import as_launched

CALM_PERIOD: Final = 8.0
"""How often the lease is renewed while nothing happens: often enough to keep it, and stories stay cheap."""


class Replica(Process):
    """Runs the real controller on caches of its own; everything it asks for goes through a RequestSender."""

    name = "karpool"

    def __init__(self, number: int, recorder: HistoryRecorder, lease: VirtualLease, injector: FaultInjector) -> None:
        super().__init__(number, recorder, injector)
        self._lease = lease
        self._epoch = 0
        self._backlog: list[Callable[[], object]] = []
        self.start()

    # -- the process ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        super().start()
        self._epoch += 1
        self.elector = Elector(self._lease, self.identity)
        self.sender = RequestSender(self)
        cache = self.watches.restart()
        template = self.recorder.cluster.controller
        self.controller = Controller(
            cache,
            self,
            ClusterState(cache, self._expected_launch),
            self.sender,
            catalog_source=template.catalog_source,
            pdb_source=StorePdbSource(cache),
            facts=self.sender,
            settings=template.settings,
            options=template.options,
            execution=template.execution,
            intervals=template.intervals,
            duties=template.duties,
            distrusted=lambda: self.doubted,
        )
        self._try_to_lead(self.life)

    def _expected_launch(self, claim: NodeClaim) -> NodeClaim:
        return as_launched(claim, self.recorder.cluster.cloud.catalog)

    def ended(self) -> None:
        self.stop_controller()
        self.sender.drop()

    def thawed(self) -> None:
        if not self.sender.busy:
            self.idle()

    # -- the lease -----------------------------------------------------------------------------------------------

    def may_write(self) -> bool:
        """Whether a write may be sent now."""
        return self.elector.leading(self.queue.time)

    def _try_to_lead(self, life: int) -> None:
        if life != self.life:
            return
        if not self.frozen:
            now = self.queue.time
            arrives, answered = self.injector.reaches_lease(self)
            if arrives:
                self.elector.try_to_lead(now, answered=answered)
            if answered:
                self.hear_time()
            if self.clock.jumped() and self.controller.running:
                self.stop_controller()
            self.follow()
        period = CALM_PERIOD if self.injector.calm else TIMES.retry_period
        self.queue.after(period, partial(self._try_to_lead, life))

    def step_down(self) -> None:
        """Stop in good order, as for an update: the lease is given up, and another process starts."""
        if self.runs and not self.frozen and not self.sender.busy:
            self.stop_controller()
            self.elector.release()
            self.kill()

    def follow(self) -> None:
        """Start or stop the controller as the lease and the watches allow."""
        should = self.runs and not self.disconnected and self.may_write()
        if should and not self.controller.running and not self.sender.busy:
            self.watches.deliver()
            self._run(self.controller.start)
        elif not should and self.controller.running:
            self.stop_controller()

    def stop_controller(self) -> None:
        self._epoch += 1
        self._backlog.clear()
        self.controller.stop()

    def resync(self) -> None:
        self.controller.resync()

    # -- tasks of the controller ---------------------------------------------------------------------------------

    def after(self, delay: float, task: Task) -> None:
        self.queue.after(delay, partial(self._due, self._epoch, task))

    def when(self, moment: datetime, task: Task) -> None:
        self.after(self.clock.wait(moment), task)

    def _due(self, epoch: int, task: Task) -> None:
        if epoch != self._epoch:
            return
        if self.frozen or self.sender.busy:
            self._backlog.append(task)
        else:
            self._run(task)

    def _run(self, task: Task) -> None:
        """Run a task on what the caches hold, then send what it asked for."""
        if not self.may_write():
            self.follow()
            return
        task()
        if self.sender.asked:
            self.sender.flush(self.watches.view)

    def idle(self) -> None:
        """Take in events, and run what waited, now that nothing is being sent."""
        self.take_in()
        while self._backlog and not self.frozen and not self.sender.busy:
            self._run(self._backlog.pop(0))

    def take_in(self) -> None:
        if self.runs and not self.frozen and not self.sender.busy:
            self.watches.deliver()
