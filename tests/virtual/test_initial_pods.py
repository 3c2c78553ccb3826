"""Pods of a real cluster in the virtual one: their ages, their owners and their volumes."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.factories import csi_node, pdb
from tests.virtual.worlds import BY_PREFIXES

from karpool.catalog.observed import with_observed
from karpool.catalog.sources import open_catalog
from karpool.disruption.brakes.owned_pods import owner_key
from karpool.disruption.candidates.pods import protected_until
from karpool.model.labels import DO_NOT_DISRUPT, ZONE
from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodStatus
from karpool.model.reading.loading import load
from karpool.virtual.changes import with_annotation, with_label, with_metadata
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.control_plane.workload_controller import APP
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.scenario import Policy, Scenario, patched, read_scenario

EXAMPLES = str(Path(__file__).parents[2] / "examples")
DRIVER = "ebs.csi.aws.com"
QUEUE = "data/queue-0"
MINUTE = 60.0


@pytest.fixture(scope="module")
def objects() -> Objects:
    return load([EXAMPLES], stdin=io.BytesIO()).objects


def resumed(objects: Objects, text: str = "length: 2h", *, disruption: bool = False) -> VirtualCluster:
    catalog = with_observed(open_catalog("sample"), objects.nodes, objects.node_claims)
    made = with_cluster(read_scenario(text), objects)
    return VirtualCluster(made, catalog, policy=replace(BY_PREFIXES, disruption=disruption), initial=objects)


def with_pods(objects: Objects, change: Callable[[Pod], Pod]) -> Objects:
    return replace(objects, pods=tuple(change(pod) for pod in objects.pods))


def get_pod(cluster: VirtualCluster, key: str) -> Pod:
    pod = cluster.store.pods.get(key)
    assert pod is not None, key
    return pod


def cordon(cluster: VirtualCluster, name: str) -> None:
    node = cluster.store.nodes.get(name)
    assert node is not None
    cluster.store.nodes.put(replace(node, spec=replace(node.spec, unschedulable=True)))


# -- ages --------------------------------------------------------------------------------------------------------


def test_pods_keep_their_ages_and_nodes_their_quiet_time(objects: Objects) -> None:
    cluster = resumed(objects)
    cluster.run(5 * MINUTE)
    for before in objects.pods:
        if not before.terminal:
            after = get_pod(cluster, before.key)
            assert after.metadata.creation_timestamp == before.metadata.creation_timestamp
            assert after.status == before.status
    events = {claim.status.node_name: claim.status.last_pod_event_time for claim in objects.node_claims}
    # The export came to its node after the last event that was noted there.
    events["general-7"] = next(pod.status.start_time for pod in objects.pods if pod.name == "export-x7k2p")
    assert {claim.name: claim.status.last_pod_event_time for claim in cluster.store.claims} == events


def test_a_node_that_was_quiet_before_the_start_need_not_wait_again(objects: Objects) -> None:
    slow = {"spec": {"disruption": {"consolidateAfter": "1h"}}}
    cluster = resumed(
        replace(objects, node_pools=patched(objects.node_pools, Policy(pools={"*": slow}))), disruption=True
    )
    cluster.run(5 * MINUTE)
    assert cluster.recorder.summary().evictions > 0


def test_do_not_disrupt_for_a_while_counts_from_the_pods_own_start(objects: Objects) -> None:
    guarded = with_pods(objects, lambda pod: with_annotation(pod, DO_NOT_DISRUPT, "300h"))
    cluster = resumed(guarded)
    cluster.run(MINUTE)
    for before in guarded.pods:
        if not before.terminal:
            assert protected_until(get_pod(cluster, before.key)) == protected_until(before)


def test_a_pod_that_says_nothing_of_itself_is_started_and_as_old_as_its_creation(objects: Objects) -> None:
    bare = with_pods(objects, lambda pod: replace(pod, status=PodStatus()))
    cluster = resumed(bare)
    cluster.run(MINUTE)
    after = get_pod(cluster, QUEUE)
    assert after.status.phase == "Running"
    assert after.status.start_time == after.metadata.creation_timestamp


def test_a_pod_that_was_leaving_leaves_and_its_owner_makes_it_anew(objects: Objects) -> None:
    soon = with_cluster(Scenario(), objects).start + timedelta(seconds=20)
    leaving = with_pods(objects, lambda pod: with_metadata(pod, deletion_timestamp=soon) if pod.key == QUEUE else pod)
    cluster = resumed(leaving)
    begin = cluster.now
    cluster.run(MINUTE)
    after = get_pod(cluster, QUEUE)
    assert after.active
    assert after.metadata.creation_timestamp is not None
    assert after.metadata.creation_timestamp > begin


# -- owners ------------------------------------------------------------------------------------------------------


def test_owners_have_their_own_names_and_kinds(objects: Objects) -> None:
    made = {(workload.namespace, workload.name): workload for workload in with_cluster(Scenario(), objects).workloads}
    assert made["data", "queue"].kind == "StatefulSet"
    assert made["shop", "web"].kind == "Deployment"
    for entry in objects.deployments:
        assert (entry.metadata.namespace, entry.name) in made
    for entry in objects.daemon_sets:
        assert made[entry.metadata.namespace, entry.name].kind == "DaemonSet"


def test_a_pod_that_was_there_and_the_one_that_takes_its_place_have_the_same_owner(objects: Objects) -> None:
    """Else the controller would seem short of a pod for ever, and a paced drain wait for that."""
    cluster = resumed(objects)
    first = {pod.key: pod for pod in cluster.store.pods if not pod.is_daemon and pod.bound}
    for key in first:
        cluster.api.evict(key)
    cluster.run(10 * MINUTE)
    before, after = (
        {(pod.metadata.labels.get(APP), owner_key(pod)) for pod in pods}
        for pods in (first.values(), [pod for pod in cluster.store.pods if not pod.is_daemon and pod.bound])
    )
    assert {pod.key for pod in cluster.store.pods} - first.keys()
    assert after <= before


@pytest.mark.parametrize(("asked", "numbers"), [(3, {0, 1, 2}), (2, {0, 1}), (5, {0, 1, 2, 3, 4}), (None, {0, 1, 2})])
def test_a_stateful_set_has_as_many_pods_as_it_asks_for(objects: Objects, asked: int | None, numbers: set[int]) -> None:
    (queue,) = objects.stateful_sets
    written = replace(queue, spec=replace(queue.spec, replicas=asked))
    cluster = resumed(replace(objects, stateful_sets=(written,)))
    cluster.run(10 * MINUTE)
    assert {pod.name for pod in cluster.store.pods if pod.owned_by("StatefulSet")} == {f"queue-{n}" for n in numbers}


def test_a_stateful_set_may_begin_to_count_anywhere(objects: Objects) -> None:
    def shifted(pod: Pod) -> Pod:
        number = pod.name.removeprefix("queue-")
        return with_metadata(pod, name=f"queue-{int(number) + 5}") if pod.owned_by("StatefulSet") else pod

    cluster = resumed(with_pods(objects, shifted))
    cluster.run(5 * MINUTE)
    assert {pod.name for pod in cluster.store.pods if pod.owned_by("StatefulSet")} == {"queue-5", "queue-6", "queue-7"}


def test_a_budget_covers_pods_of_two_owners_that_share_a_label(objects: Objects) -> None:
    shared = {"app.kubernetes.io/name": "shop"}
    keep = pdb("keep", shared, namespace="shop", min_available=1)
    labelled = with_pods(objects, lambda pod: with_label(pod, *next(iter(shared.items()))))
    cluster = resumed(replace(labelled, pod_disruption_budgets=(keep,)))
    cluster.run(MINUTE)
    budget = cluster.store.pdbs.get("shop/keep")
    assert budget is not None
    pods = [pod for pod in objects.pods if pod.metadata.namespace == "shop" and not pod.terminal]
    assert len({pod.metadata.owner_references[0].name for pod in pods}) > 1
    assert budget.status.current_healthy == len(pods)


# -- volumes -----------------------------------------------------------------------------------------------------


def driven_off(cluster: VirtualCluster, key: str = QUEUE) -> Pod:
    """What comes back of a pod whose node is closed."""
    cluster.run(MINUTE)
    before = get_pod(cluster, key)
    cordon(cluster, before.spec.node_name)
    cluster.api.delete_pod(key)
    cluster.run(10 * MINUTE)
    after = get_pod(cluster, key)
    assert after.metadata.uid != before.metadata.uid
    assert after.spec.node_name != before.spec.node_name
    return after


def test_a_pod_of_a_stateful_set_comes_back_with_its_claim_and_in_the_zone_of_its_volume(objects: Objects) -> None:
    for number, zone in enumerate(("us-east-1a", "us-east-1b", "us-east-1c")):
        cluster = resumed(objects)
        after = driven_off(cluster, f"data/queue-{number}")
        claims = [volume.persistent_volume_claim for volume in after.spec.volumes]
        assert [claim.claim_name for claim in claims if claim is not None] == [f"data-queue-{number}"]
        assert after.owned_by("StatefulSet")
        node = cluster.store.nodes.get(after.spec.node_name)
        assert node is not None
        assert node.metadata.labels[ZONE] == zone


def test_a_node_that_can_attach_no_more_volumes_gets_no_pod_that_brings_one(objects: Objects) -> None:
    free = driven_off(resumed(objects)).spec.node_name
    full = tuple(csi_node(node.name, **{DRIVER: 0}) for node in objects.nodes if node.name == free)
    assert full
    assert driven_off(resumed(replace(objects, csi_nodes=full))).spec.node_name != free


def test_a_pod_whose_claim_nobody_knows_waits(objects: Objects) -> None:
    lost = tuple(claim for claim in objects.persistent_volume_claims if claim.name != "data-queue-0")
    assert driven_off(resumed(replace(objects, persistent_volume_claims=lost))).spec.node_name == ""
