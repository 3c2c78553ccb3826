"""What a recorded cluster asked for: workloads, tasks and what people changed, without what its controller did."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.factories import claim_for, node, node_pool, pdb, pod

from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.workloads import Deployment, WorkloadSpec
from karpool.recording.observer import Observer
from karpool.recording.writer import RecordingWriter
from karpool.virtual.replays.demand import (
    Appearance,
    Demand,
    Event,
    ObjectGone,
    ObjectPut,
    Rollout,
    Scale,
    Task,
    read_demand,
)
from karpool.wire.objects import Metadata, OwnerReference

START = datetime(2026, 11, 16, 8, tzinfo=UTC)
WEB = ("default", "Deployment", "web")
Story = Callable[[Observer], object]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def web(number: int, revision: str = "a", *, created: float = 0.0, where: str = "n1") -> Pod:
    labels = {"app": "web", "pod-template-hash": revision}
    made = pod(f"web-{revision}-{number}", node=where, labels=labels, created=at(created))
    owner = OwnerReference(kind="ReplicaSet", name=f"web-{revision}", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def job(name: str, pod_name: str, created: float) -> Pod:
    made = pod(pod_name, node="n1", created=at(created))
    owner = OwnerReference(kind="Job", name=name, controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def ended(entry: Pod, phase: str = "Succeeded") -> Pod:
    return replace(entry, status=replace(entry.status, phase=phase))


@pytest.fixture
def demand_of(tmp_path: Path) -> Callable[[Story], Demand]:
    def told(story: Story) -> Demand:
        path = tmp_path / "told.recording"
        with RecordingWriter(path, START) as writer:
            observer = Observer(writer.history, writer.write)
            there = node("n1")
            observer.listed(
                Objects(nodes=(there,), node_claims=(claim_for(there),), node_pools=(node_pool(),), pods=(web(1),)),
                at(0),
            )
            story(observer)
            observer.alive(at(3600))
        return read_demand(path)

    return told


DemandOf = Callable[[Story], Demand]


def events(demand: Demand, kind: type[Event]) -> list[tuple[float, Event]]:
    return [(time, event) for time, event in demand.events if isinstance(event, kind)]


def test_it_begins_with_the_cluster_that_was_there(demand_of: DemandOf) -> None:
    demand = demand_of(lambda _: None)
    assert [entry.name for entry in demand.objects.pods] == ["web-a-1"]
    assert demand.start == START
    assert demand.length == 3600.0
    assert demand.events == ()


def test_pods_that_come_and_go_are_replicas(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", web(2, created=60), at(60))
        observer.saw("Pod", web(3, created=61), at(61))
        observer.lost("Pod", "default/web-a-1", at(90))

    assert demand_of(story).events == ((60.0, Scale(WEB, 2)), (61.0, Scale(WEB, 3)), (90.0, Scale(WEB, 2)))


def test_an_eviction_is_no_wish(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.evicted("default/web-a-1", at(60))
        observer.saw("Pod", web(2, created=61, where="n2"), at(61))
        observer.lost("Pod", "default/web-a-1", at(90))

    assert demand_of(story).events == ()


def test_a_pod_that_is_not_created_again_after_its_eviction_was_not_wanted(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.evicted("default/web-a-1", at(60))
        observer.lost("Pod", "default/web-a-1", at(62))

    assert demand_of(story).events == ((90.0, Scale(WEB, 0)),)


def test_pods_whose_node_was_lost_are_still_wanted(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.lost("Node", "n1", at(60))
        observer.lost("Pod", "default/web-a-1", at(61))
        observer.saw("Pod", web(2, created=63, where="n2"), at(63))

    assert demand_of(story).events == ()


def test_another_template_is_a_rollout_and_not_one_replica_more(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", web(2, "b", created=60), at(60))
        observer.lost("Pod", "default/web-a-1", at(70))

    (time, event), *others = demand_of(story).events
    assert (time, type(event)) == (60.0, Rollout)
    assert not others


def test_a_straggler_of_the_last_revision_is_no_way_back(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", web(2, "b", created=60), at(60))
        observer.saw("Pod", web(3, "a", created=100), at(100))

    assert len(events(demand_of(story), Rollout)) == 1


def test_the_first_revision_again_much_later_is_a_rollback(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", web(2, "b", created=60), at(60))
        observer.saw("Pod", web(3, "a", created=1800), at(1800))

    assert [time for time, _ in events(demand_of(story), Rollout)] == [60.0, 1800.0]


def test_what_a_deployment_says_counts_more_than_its_pods(demand_of: DemandOf) -> None:
    def deployment(replicas: int) -> Deployment:
        return Deployment(metadata=Metadata(name="web", namespace="default"), spec=WorkloadSpec(replicas=replicas))

    def story(observer: Observer) -> None:
        observer.saw("Deployment", deployment(5), at(60))
        observer.saw("Pod", web(2, created=61), at(61))
        observer.saw("Deployment", deployment(7), at(90))

    assert demand_of(story).events == ((60.0, Scale(WEB, 5)), (90.0, Scale(WEB, 7)))


def test_a_new_workload_appears_with_its_pods(demand_of: DemandOf) -> None:
    demand = demand_of(lambda observer: observer.saw("Pod", pod("shop-1", created=at(60)), at(60)))
    (_, appearance), (_, scale) = demand.events
    assert isinstance(appearance, Appearance)
    assert scale == Scale(appearance.group, 1)


def test_a_job_runs_as_long_as_it_ran(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", job("report", "report-x", 60), at(60))
        observer.saw("Pod", ended(job("report", "report-x", 60)), at(460))

    ((time, task),) = demand_of(story).events
    assert isinstance(task, Task)
    assert (time, task.length, task.ends) == (60.0, 400.0, None)


def test_a_job_that_was_evicted_is_one_task_with_the_length_of_its_last_pod(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", job("report", "report-x", 60), at(60))
        observer.evicted("default/report-x", at(200))
        observer.saw("Pod", job("report", "report-y", 201), at(201))
        observer.lost("Pod", "default/report-x", at(203))
        observer.saw("Pod", ended(job("report", "report-y", 201)), at(701))

    ((_, task),) = demand_of(story).events
    assert isinstance(task, Task)
    assert task.length == 500.0


def test_a_task_that_somebody_deletes_ends_then(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Pod", pod("alone", owner=None, node="n1", created=at(60)), at(60))
        observer.lost("Pod", "default/alone", at(500))

    ((_, task),) = demand_of(story).events
    assert isinstance(task, Task)
    assert (task.length, task.ends) == (None, 500.0)


def test_budgets_and_pools_change_as_people_changed_them(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("PodDisruptionBudget", pdb("web", {"app": "web"}), at(60))
        observer.saw("NodePool", node_pool(weight=9), at(70))
        observer.lost("PodDisruptionBudget", "default/web", at(80))

    kinds = [(time, type(event), event.kind) for time, event in demand_of(story).events]  # type: ignore[union-attr]
    assert kinds == [
        (60.0, ObjectPut, "PodDisruptionBudget"),
        (70.0, ObjectPut, "NodePool"),
        (80.0, ObjectGone, "PodDisruptionBudget"),
    ]


def test_gaps_are_known(demand_of: DemandOf) -> None:
    demand = demand_of(lambda observer: observer.gap(at(60), at(300), "the recorder did not run"))
    assert demand.gaps == ((60.0, 300.0),)


def test_what_nodes_do_is_no_demand(demand_of: DemandOf) -> None:
    def story(observer: Observer) -> None:
        observer.saw("Node", node("n2"), at(60))
        observer.saw("NodeClaim", claim_for(node("n2")), at(60))
        observer.lost("Node", "n2", at(600))

    assert demand_of(story).events == ()


def test_without_any_pod_the_object_says_what_pods_are_like(demand_of: DemandOf) -> None:
    template = web(1)
    made = Deployment(metadata=Metadata(name="idle", namespace="default"))
    spec = WorkloadSpec(replicas=3, template=replace(made.spec.template, spec=template.spec))
    demand = demand_of(lambda observer: observer.saw("Deployment", replace(made, spec=spec), at(60)))
    assert [type(event) for _, event in demand.events if not isinstance(event, Scale)] == [Appearance]
    assert events(demand, Scale)[-1] == (60.0, Scale(("default", "Deployment", "idle"), 3))
