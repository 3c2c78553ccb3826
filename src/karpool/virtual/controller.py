"""The controller: the same decisions and the same execution as the real one, on the virtual cluster.

It can be stopped and started at any moment. A stop loses all that it had in memory; the objects stay as they are.
"""

from collections.abc import Callable

from karpool.disruption.command import Command
from karpool.disruption.settings import Settings
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.workloads import PodDisruptionBudget
from karpool.packing.question import Options
from karpool.virtual.caretaker import Caretaker
from karpool.virtual.cloud import Cloud
from karpool.virtual.disruptor import Disruptor
from karpool.virtual.hands import Hands
from karpool.virtual.mirror import Mirror
from karpool.virtual.provisioner import Provisioner
from karpool.virtual.session import Session
from karpool.virtual.world import World


class Controller:
    """Starts and stops sessions, and tells the living one what changes."""

    def __init__(
        self,
        world: World,
        mirror: Mirror,
        hands: Hands,
        cloud: Cloud,
        *,
        settings: Settings,
        options: Options,
        disrupts: bool = True,
    ) -> None:
        self.world = world
        self.mirror = mirror
        self.hands = hands
        self.cloud = cloud
        self.settings = settings
        self.options = options
        self.disrupts = disrupts
        self.on_command: list[Callable[[Command], None]] = []
        self.session: Session | None = None
        self.commands = 0
        self.passes = 0
        store = world.store
        store.pods.watch(self._pod)
        store.claims.watch(self._claim)
        store.nodes.watch(self._node)
        store.pdbs.watch(self._budget)

    @property
    def running(self) -> bool:
        """Whether the controller lives."""
        return self.session is not None

    def start(self) -> None:
        """Begin with nothing in memory."""
        if self.session is not None:
            return
        self.session = session = Session(self.world, self.mirror, self.hands, self.cloud, self.settings, self.options)
        self._caretaker = Caretaker(session)
        self._provisioner = Provisioner(session, self._caretaker)
        self._disruptor = Disruptor(session, self._began)
        self._caretaker.start()
        self._provisioner.start()
        if self.disrupts:
            self._disruptor.start()

    def stop(self) -> None:
        """Die; what was in memory is gone."""
        if self.session is not None:
            self.session.alive = False
            self.session = None
            self.passes += self._disruptor.passes

    def _began(self, command: Command) -> None:
        self.commands += 1
        for told in self.on_command:
            told(command)

    # -- changes -------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if self.session is not None:
            self._caretaker.pod(old, new)
            self._provisioner.pod(old, new)

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if self.session is not None:
            self._caretaker.claim(old, new)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if self.session is not None:
            self._caretaker.node(old, new)

    def _budget(self, _old: PodDisruptionBudget | None, _new: PodDisruptionBudget | None) -> None:
        if self.session is not None:
            self._caretaker.budget()
