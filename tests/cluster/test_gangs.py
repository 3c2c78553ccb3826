"""Which pods belong to one gang, and how many of them are needed at once."""

from typing import Any

import msgspec
import pytest
from tests.factories import pod
from tests.factories.gangs import members, native_pod_group, pod_group

from karpool.cluster.gangs import Gang, GangIndex
from karpool.model.gangs import PodGroup, Workload, gang_of
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import decode_value


def from_json(text: str, **meta: Any) -> Pod:
    """A waiting pod with a spec as it is written."""
    made = pod("a-0", pending=True, **meta)
    spec = msgspec.json.decode(text, type=type(made.spec), dec_hook=decode_value)
    return msgspec.structs.replace(made, spec=spec)


COSCHEDULING = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}
OLD_COSCHEDULING = {"labels": {"pod-group.scheduling.sigs.k8s.io": "train"}}
VOLCANO = {"annotations": {"scheduling.k8s.io/group-name": "train"}}
KUEUE = {"labels": {"kueue.x-k8s.io/pod-group-name": "train"}}
NATIVE = '{"schedulingGroup": {"podGroupName": "train"}}'
IN_WORKLOAD = '{"workloadRef": {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "2"}}'
WORKLOAD = """{"metadata": {"name": "train", "namespace": "default"}, "spec": {"podGroups": [
    {"name": "driver", "policy": {"basic": {}}}, {"name": "workers", "policy": {"gang": {"minCount": 3}}}]}}"""


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (pod(**COSCHEDULING), "default/train"),
        (pod(**OLD_COSCHEDULING), "default/train"),
        (pod(**VOLCANO), "default/train"),
        (pod(annotations={"scheduling.volcano.sh/group-name": "train"}), "default/train"),
        (pod(**KUEUE), "default/train"),
        (from_json(NATIVE), "default/train"),
        (from_json(IN_WORKLOAD), "default/train/workers/2"),
        (pod(), "None"),
        (pod(labels={"scheduling.x-k8s.io/pod-group": ""}), "None"),
    ],
)
def test_every_scheduler_marks_its_gangs_in_its_own_way(made: Pod, name: str) -> None:
    assert str(gang_of(made)) == name


def waiting(pods: tuple[Pod, ...], *groups: PodGroup, workload: str = "", on_nodes: int = 0) -> tuple[Gang, ...]:
    """The gangs among pods of which the last ones have a node."""
    workloads = (msgspec.json.decode(workload, type=Workload),) if workload else ()
    index = GangIndex(Objects(pod_groups=groups, workloads=workloads))
    first = len(pods) - on_nodes
    return index.waiting(pods, range(first), range(first, len(pods)))


@pytest.mark.parametrize(
    ("made", "group", "workload", "least"),
    [
        (pod(**COSCHEDULING), pod_group("train", 3), "", 3),
        (pod(**COSCHEDULING), pod_group("other", 3), "", None),
        (pod(**COSCHEDULING), pod_group("train", 3, namespace="other"), "", None),
        (pod(**VOLCANO), pod_group("train", 3), "", 3),
        (pod(**VOLCANO), None, "", None),
        (
            pod(labels={**OLD_COSCHEDULING["labels"], "pod-group.scheduling.sigs.k8s.io/min-available": "3"}),
            None,
            "",
            3,
        ),
        (pod(**KUEUE, annotations={"kueue.x-k8s.io/pod-group-total-count": "3"}), None, "", 3),
        (pod(**KUEUE, annotations={"kueue.x-k8s.io/pod-group-total-count": "three"}), None, "", None),
        (pod(**KUEUE), pod_group("train", 3), "", None),
        (from_json(NATIVE), native_pod_group("train", 3), "", 3),
        (from_json(NATIVE), None, "", None),
        (from_json(IN_WORKLOAD), None, WORKLOAD, 3),
        (from_json(IN_WORKLOAD), native_pod_group("train", 4), "", None),
    ],
)
def test_how_many_are_needed_is_read_where_the_scheduler_reads_it(
    made: Pod, group: PodGroup | None, workload: str, least: int | None
) -> None:
    pods = (made,) * 4
    (gang,) = waiting(pods, *([group] if group else []), workload=workload)
    assert gang.least == least
    assert gang.missing == (len(pods) if least is None else least)


@pytest.mark.parametrize(
    ("made", "group"),
    [
        (pod(**COSCHEDULING), pod_group("train", 1)),
        (pod(**COSCHEDULING), pod_group("train", -5)),
        (from_json(NATIVE), native_pod_group("train", basic=True)),
        (pod("a-0", annotations={"scheduling.k8s.io/group-name": "podgroup-1"}, owner=None), None),
    ],
    ids=["one is enough", "nonsense", "basic policy", "Volcano's own group for a single pod"],
)
def test_a_group_that_needs_one_pod_at_a_time_is_no_gang(made: Pod, group: PodGroup | None) -> None:
    if group is None:
        made = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, uid="1"))
    assert waiting((made, made), *([group] if group else [])) == ()


@pytest.mark.parametrize(("on_nodes", "missing"), [(0, 4), (1, 3), (2, 2)])
def test_those_on_nodes_count(on_nodes: int, missing: int) -> None:
    pods = (*members("train", 4), *members("train", on_nodes, first=4, node="n1"))
    (gang,) = waiting(pods, pod_group("train", 4), on_nodes=on_nodes)
    assert gang.missing == missing


def test_enough_on_nodes_is_no_gang_any_more() -> None:
    pods = (*members("train", 2), *members("train", 3, first=2, node="n1"))
    assert waiting(pods, pod_group("train", 4), on_nodes=3) == ()


def test_a_group_of_kueue_that_has_begun_is_scheduled_one_by_one() -> None:
    made = pod(**KUEUE, annotations={"kueue.x-k8s.io/pod-group-total-count": "4"})
    assert waiting((made,) * 4, on_nodes=1) == ()


def test_the_highest_priority_is_served_first_then_the_oldest() -> None:
    old, new = members("old", 2), members("urgent", 2, priority=5)
    assert [gang.id.name for gang in waiting((*old, *new))] == ["urgent", "old"]


def test_gated_pods_wait_for_no_node() -> None:
    made = from_json('{"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}', **KUEUE)
    assert not made.waits_for_node


def test_groups_come_change_and_go() -> None:
    index, pods = GangIndex(Objects()), members("train", 4)
    for group, missing in ((pod_group("train", 2), 2), (pod_group("train", 3), 3), (None, 4)):
        index.put_group("default/train", group)
        (gang,) = index.waiting(pods, range(4), ())
        assert gang.missing == missing
