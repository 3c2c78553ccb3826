"""The mirror: columns that follow the store, and are built anew when all of them may mean something else."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.factories import (
    csi_node,
    daemon_set,
    namespace,
    node,
    node_claim,
    node_pool,
    pdb,
    pod,
    pv,
    pvc,
    storage_class,
)

from karpool.controller.cluster_state import ClusterState
from karpool.controller.store import ClusterStore
from karpool.model.nodepool import NodeClaim
from karpool.model.workloads import PodDisruptionBudget
from karpool.wire.objects import Condition

WEB = {"app": "web"}


def filled() -> ClusterStore:
    store = ClusterStore()
    store.nodes.put(node("a"))
    store.pods.put(pod("web", node="a", cpu="1"))
    store.pools.put(node_pool("default"))
    store.namespaces.put(namespace("default"))
    store.daemon_sets.put(daemon_set("agent", cpu="100m"))
    return store


CHANGES: dict[str, Callable[[ClusterStore], object]] = {
    "a claim of a volume": lambda store: store.volume_claims.put(pvc("data")),
    "a volume": lambda store: store.volumes.put(pv("disk")),
    "a storage class": lambda store: store.storage_classes.put(storage_class("fast")),
    "a limit of volumes": lambda store: store.csi_nodes.put(csi_node("a", ebs=3)),
    "a daemon set": lambda store: store.daemon_sets.put(daemon_set("agent", cpu="200m")),
    "labels of a namespace": lambda store: store.namespaces.put(namespace("default", team="a")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changes_the_meaning_of_all_pods_makes_a_new_snapshot(change: Callable[[ClusterStore], object]) -> None:
    store = filled()
    cluster_state = ClusterState(store)
    before = cluster_state.current()
    change(store)
    after = cluster_state.current()
    assert after is not before
    assert after.nodes.rows.keys() == {"a"}
    assert after.pods.rows.keys() == {"default/web"}
    assert cluster_state.current() is after


def test_pods_and_nodes_change_in_the_snapshot_that_is_there() -> None:
    store = filled()
    cluster_state = ClusterState(store)
    before = cluster_state.current()
    store.nodes.put(node("b"))
    store.pods.put(pod("api", node="b", cpu="1"))
    store.pods.remove("default/web")
    assert cluster_state.current() is before
    assert before.nodes.rows.keys() == {"a", "b"}
    assert before.pods.rows.keys() == {"default/api"}


def test_a_pod_decoded_anew_with_nothing_new_in_it_loosens_nothing() -> None:
    store = filled()
    cluster_state = ClusterState(store)
    store.pods.put(pod("web", node="a", cpu="1"))
    assert cluster_state.loosened == 0


def test_pools_are_the_same_until_one_changes_in_a_way_that_matters() -> None:
    store = filled()
    cluster_state = ClusterState(store)
    before = cluster_state.pools()
    held = store.pools.get("default")
    assert held is not None
    store.pools.put(replace(held, status=replace(held.status, conditions=(Condition(type="Ready", status="True"),))))
    assert cluster_state.pools() is before
    store.pools.put(replace(held, status=replace(held.status, conditions=(Condition(type="Ready", status="False"),))))
    assert cluster_state.pools() is not before


def test_annotations_of_a_pool_matter() -> None:
    """Budgets, grace periods and hashes may stand there."""
    store = filled()
    cluster_state = ClusterState(store)
    before, loosened = cluster_state.pools(), cluster_state.loosened
    held = store.pools.get("default")
    assert held is not None
    annotated = replace(held.metadata, annotations={"karpool.sh/budgets": "[]"})
    store.pools.put(replace(held, metadata=annotated))
    assert cluster_state.pools() is not before
    assert cluster_state.loosened > loosened


def _likely(claim: NodeClaim) -> NodeClaim:
    """Foresees that a claim without a machine gets one."""
    return replace(claim, status=replace(claim.status, provider_id=claim.status.provider_id or "soon"))


@pytest.mark.parametrize("name", ["c", "another"])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_node_that_comes_before_its_claim_knows_it_is_not_there_yet(name: str, *, rebuilt: bool) -> None:
    """Else pods that are to go to the machine would find neither of them usable, and ask for another one."""
    store = filled()
    cluster_state = ClusterState(store, _likely)
    store.claims.put(node_claim("c", launched=False))
    newcomer = node(name, taints=["karpenter.sh/unregistered:NoExecute"], registered=False, initialized=False)
    newcomer = replace(newcomer, spec=replace(newcomer.spec, provider_id="machine"))
    store.nodes.put(newcomer)
    cluster_state.stale = rebuilt
    nodes = cluster_state.current().nodes
    assert nodes.rows.keys() == {"a", "c"}
    assert nodes.get(nodes.rows["c"]).node is None
    held = node_claim("c", launched=False)
    store.claims.put(replace(held, status=replace(held.status, provider_id="machine")))
    assert nodes.rows.keys() == {"a", name}
    joined = nodes.get(nodes.rows[name])
    assert (joined.node, joined.claim) == (newcomer, store.claims.get("c"))


def test_a_launch_that_is_given_up_leaves_no_trace_beside_nodes_without_a_machine() -> None:
    store = filled()
    bare = node("bare")
    store.nodes.put(replace(bare, spec=replace(bare.spec, provider_id="")))
    cluster_state = ClusterState(store, _likely)
    claim = node_claim("c", launched=False)
    store.claims.put(claim)
    assert cluster_state.node_name(claim) == ""
    store.claims.remove("c")
    assert cluster_state.current().nodes.rows.keys() == {"a", "bare"}


def every_row(cluster_state: ClusterState) -> set[int]:
    return set(cluster_state.snapshot.nodes.rows.values())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, pdb("web", WEB, allowed=1)),
        (pdb("web", WEB, allowed=1), None),
        (
            pdb("web", WEB, max_unavailable=0, allowed=0),
            pdb("web", WEB, max_unavailable=1, allowed=0),
        ),
        (pdb("web", WEB, allowed=1), pdb("web", {"app": "api"}, allowed=1)),
    ],
    ids=["comes", "goes", "is written anew", "covers others"],
)
def test_every_node_is_looked_at_again_when_a_budget(
    before: PodDisruptionBudget | None, after: PodDisruptionBudget | None
) -> None:
    store = filled()
    if before is not None:
        store.pdbs.put(before)
    cluster_state = ClusterState(store)
    cluster_state.touched, looked = set(), cluster_state.loosened
    if after is None:
        store.pdbs.remove("default/web")
    else:
        store.pdbs.put(after)
    assert cluster_state.touched == every_row(cluster_state)
    assert cluster_state.loosened > looked


def test_a_budget_that_shuts_is_noted_and_one_that_opens_loosens() -> None:
    store = filled()
    store.pdbs.put(pdb("web", WEB, allowed=1))
    cluster_state = ClusterState(store)
    cluster_state.touched = set()
    store.pdbs.put(pdb("web", WEB, allowed=0))
    assert cluster_state.tightened == {"default/web"}
    assert cluster_state.loosened == 0
    cluster_state.tightened = set()
    store.pdbs.put(pdb("web", WEB, allowed=1))
    assert not cluster_state.tightened
    assert cluster_state.loosened == 1
    assert not cluster_state.touched


def test_nodes_that_were_there_before_take_pods_and_may_go() -> None:
    store = ClusterStore()
    for number in range(20):
        store.nodes.put(node(f"n{number}"))
    cluster_state = ClusterState(store)
    assert cluster_state.open.sum() == 20
    store.nodes.remove("n19")
    assert cluster_state.open.sum() == 19
