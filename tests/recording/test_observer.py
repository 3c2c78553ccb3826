"""What an observer writes down, and that readers know what it knew."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace
from tests.factories import claim_for, node, node_pool, pdb, pod

from karpool.model.labels import TERMINATION_TIMESTAMP
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.recording import records as r
from karpool.recording.history import History
from karpool.recording.observer import Observer
from karpool.wire.objects import Condition, decode_value, encode_value

START = datetime(2026, 11, 16, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Recorded:
    """An observer, and what it wrote."""

    def __init__(self) -> None:
        self.records: list[r.AnyRecord] = []
        self.observer = Observer(History(r.Header(start=START)), self.records.append)

    def said(self) -> Iterator[r.AnyRecord]:
        """What was written since the last time."""
        yield from self.records
        self.records.clear()

    def reread(self) -> History:
        """What a reader of all of it knows."""
        history = History(r.Header(start=START))
        written = msgspec.json.encode(self.records, enc_hook=encode_value)
        for record in msgspec.json.decode(written, type=list[r.AnyRecord], dec_hook=decode_value):
            history.apply(record)
        return history


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def web(name: str = "web-1", *, node: str | None = "n1", created: float = 0.0, **fields: object) -> Pod:
    return pod(name, node=node, created=at(created), **fields)  # type: ignore[arg-type]


def named(records: Iterator[r.AnyRecord]) -> list[str]:
    return [type(record).__name__ for record in records]


def leaving(entry: Pod, reason: str = "") -> Pod:
    conditions = (Condition(type="DisruptionTarget", status="True", reason=reason),) if reason else ()
    meta = replace(entry.metadata, deletion_timestamp=at(60))
    status = replace(entry.status, conditions=(*entry.status.conditions, *conditions))
    return replace(entry, metadata=meta, status=status)


def test_a_pod_is_born_bound_ready_and_gone(recorded: Recorded) -> None:
    observer = recorded.observer
    observer.saw("Pod", web(node=None, pending=True), at(0))
    assert named(recorded.said()) == ["Template", "Born"]
    observer.saw("Pod", web(), at(2))
    assert "Bound" in named(recorded.said())
    observer.lost("Pod", "default/web-1", at(9))
    assert [type(entry) for entry in recorded.records] == [r.Died]
    assert not observer.history.pods


def test_what_is_known_is_not_written_again(recorded: Recorded) -> None:
    for second in range(3):
        recorded.observer.saw("Pod", web(), at(second))
        recorded.observer.saw("Node", node("n1"), at(second))
    names = named(recorded.said())
    assert names.count("Born") == names.count("Put") == 1
    assert "Changed" not in names


def test_pods_that_are_alike_share_a_template(recorded: Recorded) -> None:
    for number in range(5):
        recorded.observer.saw("Pod", web(f"web-{number}"), at(number))
    recorded.observer.saw("Pod", web("big", cpu="7"), at(9))
    assert named(recorded.said()).count("Template") == 2


def test_labels_that_a_pod_has_of_its_node_make_no_other_pod_of_it(recorded: Recorded) -> None:
    """The API server copies zone and region to a pod when it is bound."""
    plain = {"app": "web"}
    recorded.observer.saw("Pod", web(node=None, pending=True, labels=plain), at(0))
    for number, zone in enumerate("abc", 1):
        labels = {**plain, "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r"}
        recorded.observer.saw("Pod", web(f"web-{number}", labels=labels), at(number))
    names = named(recorded.said())
    assert names.count("Template") == 1
    assert names.count("Bound") == 3
    assert "Became" not in names


def test_an_eviction_names_its_cause_and_why_the_node_goes(recorded: Recorded) -> None:
    there = node("n1")
    reason = Condition(type="DisruptionReason", status="True", reason="Underutilized")
    claim = claim_for(there)
    claim = replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, reason)))
    recorded.observer.listed(Objects(nodes=(there,), node_claims=(claim,), pods=(web(),)), at(0))
    list(recorded.said())
    recorded.observer.saw("Pod", leaving(web(), "EvictionByEvictionAPI"), at(30))
    assert list(recorded.said()) == [r.Leaving(t=30.0, pod=0, cause=r.LeaveCause.EVICTED, because="Underutilized")]


def test_a_pod_that_has_to_be_gone_when_its_node_has_is_forced_out(recorded: Recorded) -> None:
    there = node("n1")
    claim = claim_for(there)
    deadline = {TERMINATION_TIMESTAMP: at(61).isoformat()}
    claim = replace(claim, metadata=replace(claim.metadata, annotations=deadline))
    web_2 = replace(web("web-2"), metadata=replace(web("web-2").metadata, deletion_timestamp=at(90)))
    recorded.observer.listed(Objects(nodes=(there,), node_claims=(claim,), pods=(web(), web("web-2"))), at(0))
    list(recorded.said())
    recorded.observer.saw("Pod", leaving(web()), at(30))
    recorded.observer.saw("Pod", web_2, at(30))
    causes = [record.cause for record in recorded.said() if isinstance(record, r.Leaving)]
    assert causes == [r.LeaveCause.FORCED, r.LeaveCause.DELETED]


def test_a_pod_that_is_scaled_down_is_no_eviction(recorded: Recorded) -> None:
    recorded.observer.saw("Pod", web(), at(0))
    list(recorded.said())
    recorded.observer.saw("Pod", leaving(web()), at(30))
    assert list(recorded.said()) == [r.Leaving(t=30.0, pod=0, cause=r.LeaveCause.DELETED)]


def test_a_completed_pod_ends_and_is_not_born_again(recorded: Recorded) -> None:
    done = replace(web(), status=replace(web().status, phase="Succeeded"))
    recorded.observer.saw("Pod", web(), at(0))
    recorded.observer.saw("Pod", done, at(50))
    recorded.observer.saw("Pod", done, at(60))
    assert [entry for entry in recorded.said() if not isinstance(entry, r.Template)][-1] == r.Died(
        t=50.0, pod=0, how=r.End.SUCCEEDED
    )


def test_a_pod_of_the_same_name_is_another_one(recorded: Recorded) -> None:
    recorded.observer.saw("Pod", web(), at(0))
    recorded.observer.saw("Pod", web(created=40), at(41))
    names = named(recorded.said())
    assert names.count("Born") == 2
    assert names.count("Died") == 1


def test_after_a_restart_only_what_is_different_is_written(recorded: Recorded) -> None:
    before = Objects(nodes=(node("n1"), node("n2")), pods=(web(), web("web-2")), node_pools=(node_pool(),))
    recorded.observer.listed(before, at(0))
    again = Recorded()
    again.observer = Observer(recorded.reread(), again.records.append)
    again.observer.listed(replace(before, nodes=(node("n1"),), pods=(web(), web("web-3", created=500))), at(600))
    assert [entry for entry in again.said() if not isinstance(entry, r.Bound | r.Ready)] == [
        r.Gone(t=600.0, kind="Node", key="n2"),
        r.Died(t=600.0, pod=1),
        r.Born(t=600.0, pod=2, template=0, name="web-3", created=500.0),
    ]


def test_a_reader_knows_the_objects_as_they_were(recorded: Recorded) -> None:
    there = node("n1", taints=["gone:NoSchedule"])
    objects = Objects(nodes=(there,), node_claims=(claim_for(there),), pods=(web(labels={"app": "web"}),))
    recorded.observer.listed(objects, at(0))
    recorded.observer.saw("Node", node("n1"), at(10))
    read = recorded.reread().objects()
    assert read.nodes[0].spec.taints == ()
    assert read.nodes[0].metadata.labels == there.metadata.labels
    assert read.nodes[0].status == there.status
    assert read.node_claims[0].spec == objects.node_claims[0].spec
    assert read.pods[0].spec == objects.pods[0].spec
    assert read.pods[0].metadata.labels == {"app": "web"}
    assert read.pods[0].metadata.creation_timestamp == at(0)


def test_the_status_of_a_budget_follows_from_pods_and_is_left_out(recorded: Recorded) -> None:
    recorded.observer.saw("PodDisruptionBudget", pdb("web", {"app": "web"}, allowed=1), at(0))
    recorded.observer.saw("PodDisruptionBudget", pdb("web", {"app": "web"}, allowed=0), at(1))
    assert named(recorded.said()) == ["Put"]


def test_annotations_that_mean_nothing_are_left_out(recorded: Recorded) -> None:
    recorded.observer.saw("Node", node("n1", annotations={"secret": "hush"}), at(0))
    recorded.observer.saw("Pod", web(annotations={"secret": "hush", "karpenter.sh/do-not-disrupt": "true"}), at(0))
    text = repr(recorded.records)
    assert "hush" not in text
    assert "karpenter.sh/do-not-disrupt" in text


def test_time_never_goes_back(recorded: Recorded) -> None:
    recorded.observer.saw("Pod", web(), at(100))
    recorded.observer.lost("Pod", "default/web-1", at(90))
    died = list(recorded.said())[-1]
    assert isinstance(died, r.Died)
    assert died.t == 100.0


def test_prices_are_written_when_they_change(recorded: Recorded) -> None:
    recorded.observer.priced({"m5.large/a/spot": 0.04}, at(0))
    recorded.observer.priced({"m5.large/a/spot": 0.04}, at(60))
    recorded.observer.priced({"m5.large/a/spot": 0.05}, at(120))
    recorded.observer.priced({}, at(180))
    assert [entry.prices for entry in recorded.said() if isinstance(entry, r.Prices)] == [
        {"m5.large/a/spot": 0.04},
        {"m5.large/a/spot": 0.05},
        {"m5.large/a/spot": None},
    ]
