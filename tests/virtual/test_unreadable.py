"""A simulation that starts with something unreadable leaves alone what that bears on; so does a running controller."""

import io
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import CATALOG
from tests.disruption.test_unreadable import Spoil, spoil, two_nodes
from tests.factories import pdb
from tests.factories.unreadable import unreadable
from tests.tables import row, table
from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.disruption.plan import plan
from karpool.live.snapshot_file import encode_snapshot
from karpool.model.labels import TERMINATION_FINALIZER
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.scenario import Scenario


def lost_budget(objects: Objects) -> Objects:
    return replace(objects, pod_disruption_budgets=(unreadable(pdb("web", {"app": "web"}, allowed=1)),))


LOST = (
    row("its Node", change=spoil("nodes", "a")),
    row("its NodeClaim", change=spoil("node_claims", "a")),
    row("its NodePool", change=spoil("node_pools", "default")),
    row("a pod on it", change=spoil("pods", "default/a-0")),
    row("a pod that may be on it", change=spoil("pods", "default/b-0", spec__nodeName=7)),
    row("a claim of a pod on it", change=spoil("persistent_volume_claims", "default/disk-a")),
    row("a volume of a pod on it", change=spoil("persistent_volumes", "pv-a")),
    row("its CSINode", change=spoil("csi_nodes", "a")),
    row("the namespace of a pod on it", change=spoil("namespaces", "default")),
    row("a DaemonSet", change=spoil("daemon_sets", "kube-system/agent")),
    row("a budget of its namespace", change=lost_budget),
)


def simulated(objects: Objects) -> set[str]:
    """The nodes of a cluster that are left after an hour."""
    scenario = with_cluster(Scenario(), objects)
    cluster = VirtualCluster(scenario, CATALOG, initial=objects)
    cluster.run(HOUR)
    return {node.name for node in cluster.store.nodes}


def test_without_anything_unreadable_the_node_goes() -> None:
    assert "a" not in simulated(two_nodes())


@table(*LOST)
def test_a_simulated_node_stays_while_this_cannot_be_read(change: Spoil) -> None:
    assert "a" in simulated(change(two_nodes()))


@table(*LOST)
def test_a_plan_from_a_snapshot_file_comes_out_the_same(change: Spoil, tmp_path: Path) -> None:
    objects, file = change(two_nodes()), tmp_path / "cluster.json"
    file.write_bytes(encode_snapshot(objects))
    again = load([str(file)], stdin=io.BytesIO()).objects
    now = max(entry.metadata.creation_timestamp for entry in again.nodes if entry.metadata.creation_timestamp)
    later = now + timedelta(days=1)
    live, kept = (plan(each, CATALOG, now=later) for each in (objects, again))
    assert [fate.reasons for fate in kept.fates] == [fate.reasons for fate in live.fates]
    assert not kept.steps


# -- a controller that runs --------------------------------------------------------------------------------------------

WORKLOADS = """
workloads:
- {name: web, kind: Deployment, replicas: 8, cpu: "1", memory: 512Mi}
"""


def settled() -> VirtualCluster:
    cluster = virtual_cluster(WORKLOADS)
    cluster.run(HOUR)
    assert len(cluster.store.nodes) >= 1
    return cluster


@pytest.mark.parametrize("lost", ["Node", "NodeClaim", "Pod"])
def test_a_claim_that_is_deleted_keeps_its_finalizer_and_its_machine_until_all_can_be_read(lost: str) -> None:
    cluster = settled()
    store = cluster.store
    node = store.nodes.listed()[0]
    claim = next(claim for claim in store.claims if claim.status.node_name == node.name)
    pod = next(pod for pod in store.pods if pod.spec.node_name == node.name)
    whole = {"Node": node, "NodeClaim": claim, "Pod": pod}[lost]
    kinds = {"Node": store.nodes, "NodeClaim": store.claims, "Pod": store.pods}
    kinds[lost].put(unreadable(whole))  # type: ignore[attr-defined]
    cluster.api.delete(store.claims, claim.name)
    cluster.run(2 * HOUR)
    left = store.claims.get(claim.name)
    assert left is not None
    assert TERMINATION_FINALIZER in left.metadata.finalizers
    assert node.name in store.nodes
    assert node.name in {instance.name for instance in cluster.cloud.instances.values()}
    mended = kinds[lost].get(whole.key)
    assert mended is not None
    kinds[lost].put(replace(whole, metadata=replace(mended.metadata, unreadable="")))  # type: ignore[attr-defined]
    cluster.run(3 * HOUR)
    assert claim.name not in store.claims
    assert node.name not in store.nodes
