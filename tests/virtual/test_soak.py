"""A controller that runs for weeks: Jobs come and go, each with labels, rules and volumes of its own; memory is flat.

By day this is two days in small; `make test-nightly` runs thirty.
"""

import gc
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import settings
from msgspec.structs import replace
from tests.factories import affinity_to, pod, pv, pvc, spread
from tests.virtual.worlds import HOUR, virtual_cluster

import karpool
from karpool.model.labels import ZONE
from karpool.virtual.cluster import VirtualCluster

pytestmark = pytest.mark.slow

DAY: Final = 24 * HOUR
NIGHTLY: Final = settings.get_current_profile_name() == "nightly"
DAYS, EVERY, SPARE = (30, 600.0, 2_000) if NIGHTLY else (2, 2400.0, 50)
"""How long, how many seconds from one Job to the next, and how much of what is dead is always kept."""
LENGTH: Final = 1800.0
PARTS: Final = 8
"""How often a run is measured."""
WORKLOADS: Final = """
workloads:
- {name: web, kind: Deployment, replicas: 6, cpu: 500m, memory: 512Mi}
"""


class Jobs:
    """Starts a Job now and then, lets it run for half an hour, and deletes it with its volume."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.started = 0
        cluster.queue.at(60.0, self._start)

    def _start(self) -> None:
        self.started += 1
        name = f"job-{self.started}"
        own, store = {"batch.kubernetes.io/job-name": name}, self.cluster.store
        store.volumes.put(pv(name, driver="csi.example.com"))
        store.volume_claims.put(pvc(name, volume=name))
        rules = {"spread": [spread(own, ZONE)], "anti": [affinity_to(own)], "claims": [name]}
        cpu = f"{300 + self.started % 7}m"
        self.cluster.api.create_pod(pod(name, cpu=cpu, memory="256Mi", labels=own, owner="Job", pending=True, **rules))  # type: ignore[arg-type]
        self.cluster.queue.after(LENGTH, partial(self._finish, name))
        self.cluster.queue.after(EVERY, self._start)

    def _finish(self, name: str) -> None:
        store, key = self.cluster.store, f"default/{name}"
        done = store.pods.get(key)
        if done is not None:
            store.pods.put(replace(done, status=replace(done.status, phase="Succeeded")))
            store.pods.remove(key)
        store.volume_claims.remove(key)
        store.volumes.remove(name)


class Measure(NamedTuple):
    """What a controller keeps: rows, classes, label sets and groups, answers, tasks that wait, and bytes."""

    interned: int
    classes: int
    label_sets: int
    groups: int
    rows: int
    remembered: int
    tasks: int
    bytes: int


def measured(cluster: VirtualCluster) -> Measure:
    gc.collect()
    snapshot = cluster.cluster_state.snapshot
    assert cluster.controller.session is not None
    return Measure(
        interned=snapshot.interned,
        classes=snapshot.classes.size,
        label_sets=len(snapshot.topology.label_sets),
        groups=len(snapshot.topology.groups),
        rows=len(snapshot.pods.objects) + len(snapshot.nodes.states),
        remembered=cluster.controller.session.engine().remembered,
        tasks=len(cluster.queue),
        bytes=_bytes_of_the_controller(),
    )


def _bytes_of_the_controller() -> int:
    """What code of the controller holds; a simulation itself keeps a record of all that happened."""
    source = Path(karpool.__file__).parent
    traces = tracemalloc.take_snapshot().filter_traces(
        [
            tracemalloc.Filter(inclusive=True, filename_pattern=f"{source}/*"),
            tracemalloc.Filter(inclusive=False, filename_pattern=f"{source}/virtual/*"),
        ]
    )
    return sum(trace.size for trace in traces.traces)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.soak
@pytest.mark.timeout(7200 if NIGHTLY else 120)
@pytest.mark.usefixtures("traced")
def test_memory_is_flat_while_jobs_come_and_go() -> None:
    cluster = virtual_cluster(WORKLOADS)
    cluster.cluster_state.spare = SPARE
    jobs, measures = Jobs(cluster), []
    for part in range(PARTS):
        cluster.run((part + 1) * DAYS * DAY / PARTS)
        measures.append(measured(cluster))
    early, late = measures[1 : PARTS // 2], measures[PARTS // 2 :]
    assert jobs.started >= DAYS * DAY / EVERY - 1
    assert cluster.controller.turns > 10 * DAYS
    # What is dead is at most as much as what lives, and a margin: it goes up and down, and not up alone.
    most_live = 60
    for measure in late:
        assert measure.interned <= 3 * most_live + 2 * SPARE
        assert max(measure.classes, measure.label_sets) < jobs.started / 2
    for name in Measure._fields:
        highest = max(getattr(measure, name) for measure in early)
        assert max(getattr(measure, name) for measure in late) <= 1.1 * highest + SPARE, (name, measures)
