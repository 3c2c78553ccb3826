"""One replica of the controller: a process with caches, a clock and a claim to the lease, that can die and hang."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Final

from tests.robustness.injector import FaultInjector
from tests.robustness.lease import TIMES, Elector, VirtualLease
from tests.robustness.recorder import HistoryRecorder
from tests.robustness.requests import RequestSender
from tests.robustness.virtual_clock import DoubtfulClock, TrueClock
from tests.robustness.watches import Watches

from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.ports import Task
from karpool.model.nodepool import NodeClaim
from karpool.operator.pdb_source import StorePdbSource
from karpool.provisioning.inflight import as_launched

RESTART: Final = 3.0
"""How long a killed process takes to be back, in seconds."""


class Replica:
    """Runs the real controller on caches of its own; everything it asks for goes through a RequestSender."""

    def __init__(self, number: int, recorder: HistoryRecorder, lease: VirtualLease, injector: FaultInjector) -> None:
        self.number = number
        self.recorder = recorder
        self.injector = injector
        self._lease = lease
        self._queue = recorder.queue
        self.watches = Watches(recorder, self._deliver)
        self.runs = False
        """Whether there is a process."""
        self._life = 0
        self._epoch = 0
        self._frozen = False
        self._backlog: list[Callable[[], object]] = []
        self._disconnected = 0
        self._doubted: dict[str, str] = {}
        self.start()

    # -- the process ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start with nothing but what the server says."""
        self._life += 1
        self._epoch += 1
        self.runs = True
        self._disconnected = 0
        self._doubted = {}
        self.identity = f"karpool-{self.number}-{self._life}"
        self.elector = Elector(self._lease, self.identity)
        self._clock = DoubtfulClock(self._queue) if self.injector.skews else TrueClock(self._queue)
        self.hear_time()
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
            distrusted=lambda: self._doubted,
        )
        self._try_to_lead(self._life)

    def _expected_launch(self, claim: NodeClaim) -> NodeClaim:
        return as_launched(claim, self.recorder.cluster.cloud.catalog)

    def kill(self) -> None:
        """End at once, without a goodbye; another process starts soon."""
        if not self.runs:
            return
        self.stop_controller()
        self.runs = False
        self._life += 1
        self._backlog.clear()
        self.sender.drop()
        self.watches.close()
        self._queue.after(RESTART, self.start)

    def freeze(self, seconds: float) -> None:
        """Stand still, as a process does that gets no processor."""
        self._frozen = True
        self._queue.after(seconds, self._thaw)

    def _thaw(self) -> None:
        self._frozen = False
        if self.runs and not self.sender.busy:
            self.idle()

    def later(self, delay: float, step: Callable[[], object]) -> None:
        """Go on with a request after a delay, in this life only; a process that stands still sees its answer later."""
        self._queue.after(delay, partial(self._later, self._life, step))

    def _later(self, life: int, step: Callable[[], object]) -> None:
        if life != self._life:
            return
        if self._frozen:
            self._queue.after(1.0, partial(self._later, life, step))
        else:
            step()

    # -- the lease -----------------------------------------------------------------------------------------------

    def may_write(self) -> bool:
        """Whether a write may be sent now."""
        return self.elector.leading(self._queue.time)

    def _try_to_lead(self, life: int) -> None:
        if life != self._life:
            return
        if not self._frozen:
            now = self._queue.time
            arrives, answered = self.injector.reaches_lease(self)
            if arrives:
                self.elector.try_to_lead(now, answered=answered)
            if answered:
                self.hear_time()
            if self._clock.jumped() and self.controller.running:
                self.stop_controller()
            self.follow()
        self._queue.after(TIMES.retry_period, partial(self._try_to_lead, life))

    def step_down(self) -> None:
        """Stop in good order, as for an update: the lease is given up, and another process starts."""
        if self.runs and not self._frozen and not self.sender.busy:
            self.stop_controller()
            self.elector.release()
            self.kill()

    def follow(self) -> None:
        """Start or stop the controller as the lease and the watches allow."""
        should = self.runs and not self._disconnected and self.may_write()
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

    # -- the clock, as the controller sees it --------------------------------------------------------------------

    @property
    def moment(self) -> datetime:
        return self._clock.moment

    @property
    def earliest(self) -> datetime:
        return self._clock.earliest

    @property
    def latest(self) -> datetime:
        return self._clock.latest

    @property
    def doubt(self) -> str:
        return self._clock.doubt

    def hear_time(self) -> None:
        """Take note of the date of an answer."""
        self._clock.answered(self.injector.ahead(self))

    def set_clock(self, ahead: float) -> None:
        self._clock.set_local(ahead)

    def after(self, delay: float, task: Task) -> None:
        self._queue.after(delay, partial(self._due, self._epoch, task))

    def when(self, moment: datetime, task: Task) -> None:
        self.after(self._clock.wait(moment), task)

    def _due(self, epoch: int, task: Task) -> None:
        if epoch != self._epoch:
            return
        if self._frozen or self.sender.busy:
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
        self._deliver()
        while self._backlog and not self._frozen and not self.sender.busy:
            self._run(self._backlog.pop(0))

    # -- watches -------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        if self.runs and not self._frozen and not self.sender.busy:
            self.watches.deliver()

    def doubt_watches(self, plurals: Iterable[str]) -> None:
        """Know that watches are silent and may be stalled."""
        self._doubted.update(dict.fromkeys(plurals, "its watch is silent"))

    def trust_watches(self, plurals: Iterable[str]) -> None:
        for plural in plurals:
            self._doubted.pop(plural, None)

    def disconnect(self) -> None:
        self._disconnected += 1
        self.follow()

    def reconnect(self, kinds: tuple[str, ...], *, gone: bool) -> None:
        """Watch again: from where the watch was, or with everything listed anew."""
        self._disconnected = max(0, self._disconnected - 1)
        if self.runs and gone:
            for kind in kinds:
                self.watches.list_again(kind)
        self.follow()
