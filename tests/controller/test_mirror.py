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

from karpool.controller.mirror import Mirror
from karpool.controller.store import Store
from karpool.model.nodepool import NodeClaim
from karpool.model.wire import Condition
from karpool.model.workloads import PodDisruptionBudget

WEB = {"app": "web"}


def filled() -> Store:
    store = Store()
    store.nodes.put(node("a"))
    store.pods.put(pod("web", node="a", cpu="1"))
    store.pools.put(node_pool("default"))
    store.namespaces.put(namespace("default"))
    store.daemon_sets.put(daemon_set("agent", cpu="100m"))
    return store


CHANGES: dict[str, Callable[[Store], object]] = {
    "a claim of a volume": lambda store: store.volume_claims.put(pvc("data")),
    "a volume": lambda store: store.volumes.put(pv("disk")),
    "a storage class": lambda store: store.storage_classes.put(storage_class("fast")),
    "a limit of volumes": lambda store: store.csi_nodes.put(csi_node("a", ebs=3)),
    "a daemon set": lambda store: store.daemon_sets.put(daemon_set("agent", cpu="200m")),
    "labels of a namespace": lambda store: store.namespaces.put(namespace("default", team="a")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changes_the_meaning_of_all_pods_makes_a_new_snapshot(change: Callable[[Store], object]) -> None:
    store = filled()
    mirror = Mirror(store)
    before = mirror.current()
    change(store)
    after = mirror.current()
    assert after is not before
    assert after.nodes.rows.keys() == {"a"}
    assert after.pods.rows.keys() == {"default/web"}
    assert mirror.current() is after


def test_pods_and_nodes_change_in_the_snapshot_that_is_there() -> None:
    store = filled()
    mirror = Mirror(store)
    before = mirror.current()
    store.nodes.put(node("b"))
    store.pods.put(pod("api", node="b", cpu="1"))
    store.pods.remove("default/web")
    assert mirror.current() is before
    assert before.nodes.rows.keys() == {"a", "b"}
    assert before.pods.rows.keys() == {"default/api"}


def test_a_pod_decoded_anew_with_nothing_new_in_it_loosens_nothing() -> None:
    store = filled()
    mirror = Mirror(store)
    store.pods.put(pod("web", node="a", cpu="1"))
    assert mirror.loosened == 0


def test_pools_are_the_same_until_one_changes_in_a_way_that_matters() -> None:
    store = filled()
    mirror = Mirror(store)
    before = mirror.pools()
    held = store.pools.get("default")
    assert held is not None
    store.pools.put(replace(held, status=replace(held.status, conditions=(Condition(type="Ready", status="True"),))))
    assert mirror.pools() is before
    store.pools.put(replace(held, status=replace(held.status, conditions=(Condition(type="Ready", status="False"),))))
    assert mirror.pools() is not before


def test_annotations_of_a_pool_matter() -> None:
    """Budgets, grace periods and hashes may stand there."""
    store = filled()
    mirror = Mirror(store)
    before, loosened = mirror.pools(), mirror.loosened
    held = store.pools.get("default")
    assert held is not None
    annotated = replace(held.metadata, annotations={"karpool.sh/budgets": "[]"})
    store.pools.put(replace(held, metadata=annotated))
    assert mirror.pools() is not before
    assert mirror.loosened > loosened


def _likely(claim: NodeClaim) -> NodeClaim:
    """Foresees that a claim without a machine gets one."""
    return replace(claim, status=replace(claim.status, provider_id=claim.status.provider_id or "soon"))


@pytest.mark.parametrize("name", ["c", "another"])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_node_that_comes_before_its_claim_knows_it_is_not_there_yet(name: str, *, rebuilt: bool) -> None:
    """Else pods that are to go to the machine would find neither of them usable, and ask for another one."""
    store = filled()
    mirror = Mirror(store, _likely)
    store.claims.put(node_claim("c", launched=False))
    newcomer = node(name, taints=["karpenter.sh/unregistered:NoExecute"], registered=False, initialized=False)
    newcomer = replace(newcomer, spec=replace(newcomer.spec, provider_id="machine"))
    store.nodes.put(newcomer)
    mirror.stale = rebuilt
    nodes = mirror.current().nodes
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
    mirror = Mirror(store, _likely)
    claim = node_claim("c", launched=False)
    store.claims.put(claim)
    assert mirror.node_name(claim) == ""
    store.claims.remove("c")
    assert mirror.current().nodes.rows.keys() == {"a", "bare"}


def every_row(mirror: Mirror) -> set[int]:
    return set(mirror.snapshot.nodes.rows.values())


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
    mirror = Mirror(store)
    mirror.touched, looked = set(), mirror.loosened
    if after is None:
        store.pdbs.remove("default/web")
    else:
        store.pdbs.put(after)
    assert mirror.touched == every_row(mirror)
    assert mirror.loosened > looked


def test_a_budget_that_shuts_is_noted_and_one_that_opens_loosens() -> None:
    store = filled()
    store.pdbs.put(pdb("web", WEB, allowed=1))
    mirror = Mirror(store)
    mirror.touched = set()
    store.pdbs.put(pdb("web", WEB, allowed=0))
    assert mirror.tightened == {"default/web"}
    assert mirror.loosened == 0
    mirror.tightened = set()
    store.pdbs.put(pdb("web", WEB, allowed=1))
    assert not mirror.tightened
    assert mirror.loosened == 1
    assert not mirror.touched


def test_nodes_that_were_there_before_take_pods_and_may_go() -> None:
    store = Store()
    for number in range(20):
        store.nodes.put(node(f"n{number}"))
    mirror = Mirror(store)
    assert mirror.open.sum() == 20
    store.nodes.remove("n19")
    assert mirror.open.sum() == 19
