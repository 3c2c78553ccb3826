"""The controller: looks after nodes, provisions, and disrupts; whose cluster it is, it does not know.

It can be stopped and started at any moment. A stop loses all that it had in memory; the objects stay as they are.
"""

from karpool.controller.caretaker import Caretaker
from karpool.controller.disruptor import Disruptor
from karpool.controller.ground import Clock, Duties, Guard, Hands, Offers, Pace
from karpool.controller.mirror import Mirror
from karpool.controller.provisioner import Provisioner
from karpool.controller.session import Session
from karpool.controller.store import Store
from karpool.controller.watching import Observer
from karpool.disruption.settings import Settings
from karpool.execution.settings import Settings as ExecutionSettings
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget
from karpool.packing.question import Options


class Controller:
    """Starts and stops sessions, and tells the living one what changes."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        mirror: Mirror,
        hands: Hands,
        *,
        offers: Offers,
        guard: Guard,
        settings: Settings,
        options: Options,
        execution: ExecutionSettings | None = None,
        pace: Pace | None = None,
        duties: Duties | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.mirror = mirror
        self.hands = hands
        self.offers = offers
        self.guard = guard
        self.settings = settings
        self.options = options
        self.execution = execution or ExecutionSettings()
        self.pace = pace or Pace()
        self.duties = duties or Duties()
        self.observers: list[Observer] = []
        self.session: Session | None = None
        self.passes = 0
        store.pods.watch(self._pod)
        store.claims.watch(self._claim)
        store.nodes.watch(self._node)
        store.pools.watch(self._pool)
        store.pdbs.watch(self._budget)

    @property
    def running(self) -> bool:
        """Whether the controller lives."""
        return self.session is not None

    def start(self) -> None:
        """Begin with nothing in memory."""
        if self.session is not None:
            return
        self.session = session = Session(
            store=self.store,
            clock=self.clock,
            mirror=self.mirror,
            hands=self.hands,
            offers=self.offers,
            guard=self.guard,
            settings=self.settings,
            options=self.options,
            execution=self.execution,
            pace=self.pace,
            observers=self.observers,
        )
        self._caretaker = Caretaker(session, tends=self.duties.tends)
        self._provisioner = Provisioner(session, self._caretaker)
        self._disruptor = Disruptor(session, self._caretaker)
        self._caretaker.start()
        if self.duties.provisions:
            self._provisioner.start()
        if self.duties.disrupts:
            self._disruptor.start()

    def stop(self) -> None:
        """Die; what was in memory is gone."""
        if self.session is not None:
            self.session.alive = False
            self.session = None
            self.passes += self._disruptor.passes

    def look_again(self) -> None:
        """Look at everything as after a start, because something that was asked for did not happen."""
        if self.session is not None:
            self._caretaker.start()

    # -- changes -------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if self.session is not None:
            self._caretaker.pod(old, new)
            if self.duties.provisions:
                self._provisioner.pod(old, new)

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if self.session is not None:
            self._caretaker.claim(old, new)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if self.session is not None:
            self._caretaker.node(old, new)

    def _pool(self, old: NodePool | None, new: NodePool | None) -> None:
        if self.session is not None:
            self._caretaker.pool(old, new)

    def _budget(self, _old: PodDisruptionBudget | None, _new: PodDisruptionBudget | None) -> None:
        if self.session is not None:
            self._caretaker.budget()
