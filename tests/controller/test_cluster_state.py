"""The kept state: columns that follow the store, and are built anew when all of them may mean something else."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import (
    affinity_to,
    csi_node,
    daemon_set,
    namespace,
    node,
    node_claim,
    node_pool,
    node_term,
    pdb,
    pod,
    pv,
    pvc,
    spread,
    storage_class,
    taints_of,
)

from karpool.catalog.instance_types import Catalog
from karpool.cluster.codes import SEALED
from karpool.cluster.constraints import Preferences
from karpool.cluster.groups import Group
from karpool.cluster.nodes import StateNode
from karpool.cluster.resources import ATTACH, CPU, UNLIMITED
from karpool.controller.cluster_state import ClusterState
from karpool.controller.store import ClusterStore
from karpool.model.labels import DO_NOT_DISRUPT, ZONE
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import ContainerStatus, Pod
from karpool.model.scheduling import untolerated
from karpool.model.workloads import PodDisruptionBudget
from karpool.wire.objects import Condition
from karpool.wire.quantity import parse_quantity

WEB = {"app": "web"}


def filled() -> ClusterStore:
    store = ClusterStore()
    store.nodes.put(node("a"))
    store.pods.put(pod("web", node="a", cpu="1"))
    store.pools.put(node_pool("default"))
    store.namespaces.put(namespace("default"))
    store.daemon_sets.put(daemon_set("agent", cpu="100m"))
    return store


@pytest.mark.parametrize("selects", [True, False])
def test_labels_of_a_namespace_concern_only_pods_that_select_by_them(*, selects: bool) -> None:
    store = filled()
    if selects:
        near = [affinity_to({"app": "db"}, namespace_selector={"team": "a"})]
        store.pods.put(pod("picky", node="a", near=near))
    state = ClusterState(store)
    before, opportunities = state.current(), state.opportunities
    store.namespaces.put(namespace("default", team="a"))
    assert state.current() is before
    assert state.opportunities == opportunities + selects
    scopes = [group.scope.namespaces for group in live_groups(state, "default/picky")] if selects else []
    assert scopes == [frozenset({"default"})] * selects


def test_the_rules_of_a_pod_that_is_gone_are_not_taken_for_those_of_the_next() -> None:
    store = filled()
    state = ClusterState(store)
    near = [affinity_to({"app": "db"}, namespace_selector={"team": "a"})]
    store.pods.put(pod("picky", node="a", near=near))
    store.pods.remove("default/picky")
    store.namespaces.put(namespace("default", team="a"))
    store.pods.put(pod("picky", node="a", near=near))
    assert [group.scope.namespaces for group in live_groups(state, "default/picky")] == [frozenset({"default"})]


def live_groups(state: ClusterState, key: str) -> list[Group]:
    snapshot = state.current()
    return list(snapshot.classes.levels[int(snapshot.pods.class_of[snapshot.pods.rows[key]])].groups)


def test_a_storage_class_concerns_only_pods_whose_volumes_are_still_to_come() -> None:
    store = filled()
    store.volume_claims.put(pvc("data", storage_class="fast"))
    store.pods.put(pod("db", node="a", claims=["data"]))
    state = ClusterState(store)
    before = state.current()
    number = int(before.pods.class_of[before.pods.rows["default/db"]])
    assert before.classes.constraints[number].refusal == "storage class fast of claim default/data does not exist"
    store.storage_classes.put(storage_class("fast"))
    assert state.current() is before
    number = int(before.pods.class_of[before.pods.rows["default/db"]])
    assert before.classes.constraints[number].refusal == ""
    seen = state.opportunities
    store.storage_classes.put(storage_class("slow"))
    assert state.opportunities == seen


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
    assert cluster_state.opportunities == 0


def test_pools_are_the_same_until_one_changes_in_a_way_that_matters() -> None:
    store = filled()
    cluster_state = ClusterState(store)
    before = cluster_state.pools()
    pool = store.pools.get("default")
    assert pool is not None
    store.pools.put(replace(pool, status=replace(pool.status, conditions=(Condition(type="Ready", status="True"),))))
    assert cluster_state.pools() is before
    store.pools.put(replace(pool, status=replace(pool.status, conditions=(Condition(type="Ready", status="False"),))))
    assert cluster_state.pools() is not before


def test_annotations_of_a_pool_matter() -> None:
    """Budgets, grace periods and hashes may stand there."""
    store = filled()
    cluster_state = ClusterState(store)
    before, opportunities = cluster_state.pools(), cluster_state.opportunities
    pool = store.pools.get("default")
    assert pool is not None
    annotated = replace(pool.metadata, annotations={"karpool.sh/budgets": "[]"})
    store.pools.put(replace(pool, metadata=annotated))
    assert cluster_state.pools() is not before
    assert cluster_state.opportunities > opportunities


def launched(claim: NodeClaim) -> NodeClaim:
    """Expects that a claim without a machine gets one."""
    return replace(claim, status=replace(claim.status, provider_id=claim.status.provider_id or "soon"))


@pytest.mark.parametrize("name", ["c", "another"])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_node_that_comes_before_its_claim_knows_it_is_not_there_yet(name: str, *, rebuilt: bool) -> None:
    """Else pods that are to go to the machine would find neither of them usable, and ask for another one."""
    store = filled()
    cluster_state = ClusterState(store, launched)
    store.claims.put(node_claim("c", launched=False))
    newcomer = node(name, taints=["karpenter.sh/unregistered:NoExecute"], registered=False, initialized=False)
    newcomer = replace(newcomer, spec=replace(newcomer.spec, provider_id="machine"))
    store.nodes.put(newcomer)
    cluster_state.stale = rebuilt
    nodes = cluster_state.current().nodes
    assert nodes.rows.keys() == {"a", "c"}
    assert nodes.get(nodes.rows["c"]).node is None
    current = node_claim("c", launched=False)
    store.claims.put(replace(current, status=replace(current.status, provider_id="machine")))
    assert nodes.rows.keys() == {"a", name}
    joined = nodes.get(nodes.rows[name])
    assert (joined.node, joined.claim) == (newcomer, store.claims.get("c"))


def test_a_launch_that_is_given_up_leaves_no_trace_beside_nodes_without_a_machine() -> None:
    store = filled()
    bare = node("bare")
    store.nodes.put(replace(bare, spec=replace(bare.spec, provider_id="")))
    cluster_state = ClusterState(store, launched)
    claim = node_claim("c", launched=False)
    store.claims.put(claim)
    assert cluster_state.node_name(claim) == ""
    store.claims.remove("c")
    assert cluster_state.current().nodes.rows.keys() == {"a", "bare"}


def test_a_launch_is_expected_as_the_catalog_says_now() -> None:
    store, size = filled(), "4"

    def expected_launch(claim: NodeClaim) -> NodeClaim:
        amount = {"cpu": parse_quantity(size)}
        return replace(claim, status=replace(claim.status, provider_id="soon", allocatable=amount))

    store.claims.put(node_claim("c", launched=False))
    state = ClusterState(store, expected_launch)
    before = free_cpu(state, "c")
    size = "8"
    state.use_catalog(Catalog(()))
    assert free_cpu(state, "c") == before + 4000


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
def test_decisions_are_made_again_when_a_budget(
    before: PodDisruptionBudget | None, after: PodDisruptionBudget | None
) -> None:
    store = filled()
    if before is not None:
        store.pdbs.put(before)
    cluster_state = ClusterState(store)
    seen = cluster_state.opportunities
    if after is None:
        store.pdbs.remove("default/web")
    else:
        store.pdbs.put(after)
    assert cluster_state.opportunities > seen


def test_a_budget_that_shuts_lets_nobody_go_and_one_that_opens_may() -> None:
    store = filled()
    store.pdbs.put(pdb("web", WEB, allowed=1))
    cluster_state = ClusterState(store)
    store.pdbs.put(pdb("web", WEB, allowed=0))
    assert cluster_state.opportunities == 0
    store.pdbs.put(pdb("web", WEB, allowed=1))
    assert cluster_state.opportunities == 1


def test_nodes_that_were_there_before_take_pods_and_may_go() -> None:
    store = ClusterStore()
    for number in range(20):
        store.nodes.put(node(f"n{number}"))
    cluster_state = ClusterState(store)
    assert cluster_state.open.sum() == 20
    store.nodes.remove("n19")
    assert cluster_state.open.sum() == 19


# -- defects that were once there ----------------------------------------------------------------------------------


def test_a_claim_that_names_its_node_before_the_node_is_seen_leaves_no_row_behind() -> None:
    store = filled()
    state = ClusterState(store)
    store.claims.put(node_claim("c", node_name="late"))
    assert state.current().nodes.rows.keys() == {"a", "late"}
    late = node("late")
    store.nodes.put(replace(late, spec=replace(late.spec, provider_id="fake://c")))
    assert state.current().nodes.rows.keys() == {"a", "late"}
    store.nodes.remove("late")
    store.claims.remove("c")
    assert state.current().nodes.rows.keys() == {"a"}


def test_a_claim_that_learns_the_name_of_its_node_leaves_its_own_name() -> None:
    store = filled()
    state = ClusterState(store)
    store.claims.put(node_claim("c"))
    assert state.current().nodes.rows.keys() == {"a", "c"}
    store.claims.put(node_claim("c", node_name="late"))
    assert state.current().nodes.rows.keys() == {"a", "late"}


def test_node_and_claim_without_a_common_provider_id_are_paired_by_name() -> None:
    store = filled()
    state = ClusterState(store)
    other = node("b")
    store.nodes.put(replace(other, spec=replace(other.spec, provider_id="")))
    store.claims.put(node_claim("c", node_name="b"))
    nodes = state.current().nodes
    assert nodes.rows.keys() == {"a", "b"}
    assert nodes.get(nodes.rows["b"]).claim == store.claims.get("c")
    assert state.claim_of(other) == store.claims.get("c")


def taint_node(store: ClusterStore) -> None:
    store.nodes.put(node("a", taints=["spot:PreferNoSchedule"]))


def taint_pool(store: ClusterStore) -> None:
    store.pools.put(node_pool("default", taints=["spot:PreferNoSchedule"]))


@pytest.mark.parametrize("change", [taint_node, taint_pool])
def test_a_taint_that_asks_pods_to_stay_away_keeps_nobody_away(change: Callable[[ClusterStore], None]) -> None:
    store = filled()
    store.pods.put(pod("new", pending=True))
    state = ClusterState(store)
    change(store)
    snapshot = state.current()
    first = int(snapshot.pods.class_of[snapshot.pods.rows["default/new"]])
    last = int(snapshot.classes.next[first])
    assert untolerated(taints_of(["spot:PreferNoSchedule"]), snapshot.classes.levels[last].tolerations) is None


def test_preferences_that_are_ignored_are_ignored_in_the_kept_state() -> None:
    store = filled()
    state = ClusterState(store, preferences=Preferences.IGNORE)
    store.pods.put(pod("picky", prefer=[(1, node_term(("disk", "In", "ssd")))], pending=True))
    snapshot = state.current()
    number = int(snapshot.pods.class_of[snapshot.pods.rows["default/picky"]])
    assert not snapshot.classes.levels[number].requirements


def free_cpu(state: ClusterState, name: str = "a") -> int:
    nodes = state.current().nodes
    return int(nodes.free[nodes.rows[name], CPU])


def test_a_pod_resized_in_place_takes_what_it_has_now() -> None:
    store = filled()
    state = ClusterState(store)
    before, web = free_cpu(state), pod("web", node="a", cpu="1")
    larger = ContainerStatus(name="main", allocated_resources={"cpu": parse_quantity("3")})
    store.pods.put(replace(web, status=replace(web.status, container_statuses=(larger,))))
    assert free_cpu(state) == before - 2000
    store.pods.put(web)
    assert free_cpu(state) == before


def daemon_pod(name: str, cpu: str, **rest: Any) -> Pod:
    return pod(name, namespace="kube-system", owner="DaemonSet", cpu=cpu, memory=None, **rest)


def test_what_a_new_node_reserves_for_a_daemon_follows_its_live_pods() -> None:
    """LimitRanges and webhooks change what daemon pods request."""
    store = filled()
    state = ClusterState(store)
    daemons, opportunities = state.current().daemons, state.opportunities
    store.nodes.put(node("b"))
    expected = free_cpu(state, "b")
    store.pods.put(daemon_pod("agent-1", "600m", node="a"))
    (agent,) = state.current().daemons
    assert state.current().daemons is not daemons
    assert state.opportunities > opportunities
    assert agent.requests["cpu"] == parse_quantity("600m")
    assert free_cpu(state, "b") == expected - 500
    store.pods.remove("kube-system/agent-1")
    assert free_cpu(state, "b") == expected


def test_a_daemon_set_that_changes_is_seen_at_once() -> None:
    store = filled()
    state = ClusterState(store)
    snapshot, before = state.current(), free_cpu(state)
    store.daemon_sets.put(daemon_set("agent", cpu="200m", selector={"kubernetes.io/hostname": "b"}))
    assert free_cpu(state) == before + 100
    store.daemon_sets.remove("kube-system/agent")
    assert free_cpu(state) == before + 100
    assert state.current() is snapshot


@pytest.mark.parametrize("kind", ["pod", "node", "claim"])
def test_a_do_not_disrupt_that_is_taken_away_is_noticed_at_once(kind: str) -> None:
    guard = {DO_NOT_DISRUPT: "true"}
    store = filled()
    store.pods.put(pod("web", node="a", cpu="1", annotations=guard))
    store.nodes.put(node("a", annotations=guard))
    store.claims.put(node_claim("a", node_name="a", annotations=guard))
    state = ClusterState(store)
    snapshot, opportunities = state.current(), state.opportunities
    stamp = int(snapshot.nodes.changed[snapshot.nodes.rows["a"]])
    match kind:
        case "pod":
            store.pods.put(pod("web", node="a", cpu="1"))
        case "node":
            store.nodes.put(node("a"))
        case _:
            store.claims.put(node_claim("a", node_name="a"))
    assert state.opportunities > opportunities
    assert snapshot.nodes.changed[snapshot.nodes.rows["a"]] > stamp


def test_jobs_that_come_and_go_leave_nothing_behind() -> None:
    store = filled()
    state = ClusterState(store)
    sizes = []
    for generation in range(40):
        for number in range(50):
            labels = {"job": f"{generation}-{number}"}
            store.pods.put(pod(f"job-{generation}-{number}", node="a", labels=labels, spread=[spread(labels)]))
        for number in range(50):
            store.pods.remove(f"default/job-{generation}-{number}")
        sizes.append(state.current().interned)
    assert max(sizes[20:]) <= max(sizes[:20]) < 3_000


def test_a_write_to_a_volume_classes_only_the_pods_that_use_it() -> None:
    store = filled()
    store.storage_classes.put(storage_class("standard"))
    store.volume_claims.put(pvc("data", storage_class="standard"))
    store.pods.put(pod("db", claims=["data"], pending=True))
    state = ClusterState(store)
    before = state.current()
    web = before.pods.class_of[before.pods.rows["default/web"]]
    store.volumes.put(pv("disk", zones=["elsewhere"], driver="csi.example.com"))
    store.volume_claims.put(pvc("data", volume="disk"))
    assert state.current() is before
    assert before.pods.class_of[before.pods.rows["default/web"]] == web
    number = int(before.pods.class_of[before.pods.rows["default/db"]])
    assert [places[ZONE].values for places in before.classes.constraints[number].volumes] == [{"elsewhere"}]
    store.volumes.remove("disk")
    number = int(before.pods.class_of[before.pods.rows["default/db"]])
    assert before.classes.constraints[number].refusal == "volume disk of claim default/data does not exist"


def test_a_limit_of_volumes_is_seen_at_once() -> None:
    store = filled()
    state = ClusterState(store)
    before = state.current()
    store.csi_nodes.put(csi_node("a", ebs=3))
    column = before.resources.index[ATTACH + "ebs"]
    assert before.nodes.free[before.nodes.rows["a"], column] == 3
    store.csi_nodes.remove("a")
    assert before.nodes.free[before.nodes.rows["a"], column] == UNLIMITED
    assert state.current() is before


def test_every_column_of_nodes_has_room_for_those_that_are_only_expected_for_a_moment() -> None:
    state = ClusterState(filled())
    before = set(state.current().nodes.rows)
    coming = [node_claim(f"new-{number}", capacity={"cpu": 4, "memory": "4Gi", "pods": 9}) for number in range(200)]
    with state.as_if() as columns:
        columns.show(["a"], [StateNode(None, claim) for claim in coming])
        rows = state.snapshot.nodes.rows
        assert set(rows) == before | {f"new-{number}" for number in range(200)}
    assert set(state.snapshot.nodes.rows) == before
    assert {len(state.open), len(state.avoided)} == {len(state.snapshot.nodes.live)}


def test_columns_show_for_a_moment_what_has_not_happened_and_then_something_else() -> None:
    state = ClusterState(filled())
    snapshot = state.current()
    nodes = snapshot.nodes
    names, live = set(nodes.rows), nodes.live.copy()
    small, alike, large, more = (
        StateNode(None, node_claim(name, capacity={"cpu": cpu, "memory": "4Gi", "pods": 9}))
        for name, cpu in (("new", 4), ("new", 4), ("new", 8), ("more", 1))
    )
    with state.as_if() as columns:
        columns.show(["a"], [small])
        row, stamp = nodes.rows["new"], nodes.changed[nodes.rows["new"]]
        room = nodes.room[row, CPU]
        assert (nodes.live[nodes.rows["a"]], set(nodes.rows)) == (SEALED, {*names, "new"})
        columns.show([], [alike, more])
        assert nodes.live[nodes.rows["a"]] == live[nodes.rows["a"]]
        assert (nodes.rows["new"], nodes.changed[row]) == (row, stamp), "what stays is left alone"
        columns.show([], [large])
        assert nodes.room[nodes.rows["new"], CPU] == 2 * room > 0
        assert set(nodes.rows) == {*names, "new"}
    assert (set(nodes.rows), nodes.live[: len(live)].tolist()) == (names, live.tolist())
