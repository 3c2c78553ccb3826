"""Jobs: pods that come by chance, run to their end, and begin again if they are evicted before it."""

from functools import partial
from random import Random

from karpool.model.pod import Pod
from karpool.virtual.curves import Curve, Player, seconds
from karpool.virtual.owners import Owner, reference
from karpool.virtual.random_streams import poisson, stream

HOUR = 3600.0


class JobOwner(Owner):
    """Begins as many jobs an hour as the curve says."""

    def start(self) -> None:
        """Begin to draw jobs."""
        replicas = self.workload.replicas
        curve = replicas if isinstance(replicas, Curve) else Curve(base=float(replicas))
        name = (self.workload.namespace, self.workload.name)
        player = Player(curve, self.world.queue.start, stream(self.world.seed, "curve", *name))
        self._draw(player, stream(self.world.seed, "jobs", *name))

    def _draw(self, player: Player, random: Random) -> None:
        every = seconds(player.curve.every)
        for _ in range(poisson(random, player.value(self.world.queue.time) * every / HOUR)):
            self.world.queue.after(random.random() * every, self._begin)
        self.world.queue.after(every, partial(self._draw, player, random))

    def _begin(self) -> None:
        self.wanted += 1
        self.soon()

    def notice(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that has run to its end is one job less to do, and is cleared away."""
        if new is not None and new.terminal and old is not None and not old.terminal:
            self.wanted -= 1
            self.world.queue.after(seconds(self.world.timings.reaction), partial(self.api.delete_pod, new.key))
        super().notice(old, new)

    def reconcile(self) -> None:
        """Run a pod for every job that has none."""
        for _ in range(self.wanted - len(self.pods)):
            name = self.next_name(self.workload.name)
            self.create(name, reference("Job", name), labels=self.labels)
