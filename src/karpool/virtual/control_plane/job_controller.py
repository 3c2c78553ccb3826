"""Jobs: pods that start at random times, run to completion, and start again if they are evicted before it."""

from functools import partial
from random import Random
from typing import Final

from karpool.model.pod import Pod
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.workload_controller import WorkloadController, reference
from karpool.virtual.curves import Curve, CurveEvaluator, seconds
from karpool.virtual.random_streams import poisson, random_stream
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld

HOUR: Final = 3600.0


class JobController(WorkloadController):
    """Starts as many jobs an hour as the curve says."""

    def __init__(self, world: VirtualWorld, api: Api, workload: ScenarioWorkload) -> None:
        super().__init__(world, api, workload)
        self._unfinished: list[str] = []

    def start(self) -> None:
        replicas = self.workload.replicas
        curve = replicas if isinstance(replicas, Curve) else Curve(base=float(replicas))
        random = random_stream(self.world.seed, "jobs", self.workload.namespace, self.workload.name)
        self._draw(self.evaluator(curve), random)

    def _draw(self, evaluator: CurveEvaluator, random: Random) -> None:
        every = seconds(evaluator.curve.every)
        for _ in range(poisson(random, evaluator.value(self.world.queue.time) * every / HOUR)):
            self.world.queue.after(random.random() * every, self._add_job)
        self.world.queue.after(every, partial(self._draw, evaluator, random))

    def _add_job(self) -> None:
        self.replicas += 1
        self.enqueue()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that has completed is a job less to do, and is deleted."""
        if new is not None and new.terminal and old is not None and not old.terminal:
            self.replicas -= 1
            self.world.queue.after(seconds(self.world.timings.reaction), partial(self.api.delete_pod, new.key))
        elif old is not None and old.active and (new is None or not new.active):
            self._unfinished.append(old.metadata.owner_references[0].name)
        super().pod_changed(old, new)

    def reconcile(self) -> None:
        """Start jobs, and those again whose pods were evicted: a job keeps its name, and its pods have their own."""
        for _ in range(self.replicas - len(self.pods)):
            name = self.next_name(self.workload.name)
            job = self._unfinished.pop(0) if self._unfinished else name
            self.create(name, reference("Job", job), labels=self.labels)
