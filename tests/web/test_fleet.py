"""Rows of a fleet, and the changes that pages are told of."""

from msgspec.structs import replace
from tests.factories import claim_for, namespace, node, node_claim, pod
from tests.web.shown import CATALOG, decoded, fleet_of, nodes_of, small_store

from karpool.catalog.instance_types import Catalog
from karpool.controller.store import ClusterStore


def test_a_document_has_every_node_with_its_price_and_size() -> None:
    document = fleet_of(small_store()).document()
    nodes = nodes_of(document)
    assert sorted(nodes) == ["a", "b"]
    assert nodes["a"]["pool"] == "web"
    assert nodes["a"]["price"] == 0.192
    assert nodes["a"]["cpu"] == 4
    assert nodes["a"]["memory"] == 16384
    assert nodes["a"]["status"] == "ready"
    assert document["podCount"] == 2
    assert [pool["name"] for pool in document["pools"]] == ["web"]


def test_a_price_that_nobody_knows_is_null() -> None:
    store = ClusterStore()
    store.nodes.put(node("a", type="unheard-of"))
    assert nodes_of(fleet_of(store).document())["a"]["price"] is None


def test_pods_name_their_node_by_its_number_and_those_that_wait_name_none() -> None:
    fleet = fleet_of(small_store())
    nodes = nodes_of(fleet.document())
    part = decoded((0, fleet.pods_after(0, 100, (0, 0))))
    found = {row[1]: row for row in part["pods"]}
    assert found["default/cart"][2] == nodes["a"]["id"]
    assert found["default/cart"][3:5] == [0.5, 1024]
    assert found["default/waits"][2] == 0
    assert part["next"] is None


def test_pods_are_read_in_parts() -> None:
    store = ClusterStore()
    store.nodes.put(node("a"))
    for number in range(5):
        store.pods.put(pod(f"p{number}", node="a"))
    fleet = fleet_of(store)
    names, after, parts = [], 0, 0
    while after is not None:
        part = decoded((0, fleet.pods_after(after, 2, (0, 0))))
        names += [row[1] for row in part["pods"]]
        after, parts = part["next"], parts + 1
    assert sorted(names) == [f"default/p{number}" for number in range(5)]
    assert parts == 3


def test_nothing_is_told_while_nothing_changes() -> None:
    store = small_store()
    fleet = fleet_of(store)
    fleet.read(fleet.waiting)
    assert fleet.change() is None
    store.nodes.put(node("a", pool="web"))
    fleet.read(fleet.waiting)
    assert fleet.change() is None


def test_a_change_has_only_what_is_new_changed_or_gone() -> None:
    store = small_store()
    fleet = fleet_of(store)
    numbers = {name: row["id"] for name, row in nodes_of(fleet.document()).items()}
    store.pods.put(pod("waits", cpu="1", node="b"))
    store.pods.remove("default/cart")
    store.nodes.remove("a")
    fleet.read(fleet.waiting)
    change = decoded(fleet.change())
    assert [row[1:3] for row in change["pods"]] == [["default/waits", numbers["b"]]]
    assert len(change["gonePods"]) == 1
    assert change["goneNodes"] == [numbers["a"]]
    assert change["nodes"] == []
    assert change["number"] == fleet.number


def test_labels_of_namespaces_come_with_the_fleet_and_then_only_those_that_change() -> None:
    store = small_store()
    store.namespaces.put(namespace("shop", team="cart"))
    store.namespaces.put(namespace("bare"))
    fleet = fleet_of(store)
    assert fleet.document()["namespaces"] == {"shop": {"team": "cart"}}
    store.namespaces.put(namespace("shop", team="cart"))
    fleet.read(fleet.waiting)
    assert fleet.change() is None
    store.namespaces.put(namespace("bare", team="ops"))
    store.namespaces.remove("shop")
    fleet.read(fleet.waiting)
    assert decoded(fleet.change())["namespaces"] == {"bare": {"team": "ops"}, "shop": None}
    store.nodes.remove("b")
    fleet.read(fleet.waiting)
    assert decoded(fleet.change())["namespaces"] == {}


def test_a_pod_that_has_ended_is_gone() -> None:
    store = small_store()
    fleet = fleet_of(store)
    cart = store.pods.get("default/cart")
    assert cart is not None
    store.pods.put(replace(cart, status=replace(cart.status, phase="Succeeded")))
    fleet.read(fleet.waiting)
    assert len(decoded(fleet.change())["gonePods"]) == 1


def test_a_pod_may_come_before_its_node() -> None:
    store = ClusterStore()
    store.pods.put(pod("early", node="late"))
    fleet = fleet_of(store)
    store.nodes.put(node("late"))
    fleet.read(fleet.waiting)
    change = decoded(fleet.change())
    (row,) = decoded((0, fleet.pods_after(0, 10, (0, 0))))["pods"]
    assert row[2] == change["nodes"][0][0]


def test_a_claim_without_its_node_is_a_node_that_starts() -> None:
    store = ClusterStore()
    store.claims.put(node_claim("web-1"))
    assert nodes_of(fleet_of(store).document())["web-1"]["status"] == "starting"


def test_a_node_that_is_disrupted_is_leaving_and_one_that_is_not_ready_says_so() -> None:
    store = ClusterStore()
    broken = node("c", ready=False)
    store.nodes.put(node("b", taints=["karpool.sh/disrupted:NoSchedule"]))
    store.nodes.put(broken)
    store.claims.put(claim_for(broken))
    nodes = nodes_of(fleet_of(store).document())
    assert nodes["b"]["status"] == "leaving"
    assert nodes["c"]["status"] == "not ready"


def test_missed_changes_are_told_again_and_those_that_are_not_kept_are_not() -> None:
    store = small_store()
    fleet = fleet_of(store)
    seen = fleet.number
    for number in range(3):
        store.pods.put(pod(f"new-{number}", node="a"))
        fleet.read(fleet.waiting)
        fleet.change()
    missed = fleet.changes_after(seen)
    assert missed is not None
    assert [number for number, _ in missed] == [seen + 1, seen + 2, seen + 3]
    assert fleet.changes_after(fleet.number) == []
    assert fleet.changes_after(fleet.number + 1) is None
    for number in range(2_100):
        store.pods.put(pod("new-0", node="a", cpu=f"{number + 1}m"))
        fleet.read(fleet.waiting)
        fleet.change()
    assert fleet.changes_after(seen) is None


def test_nodes_are_priced_anew_when_the_catalogue_is_another() -> None:
    catalogs = [CATALOG]
    store = small_store()
    fleet = fleet_of(store, lambda: catalogs[-1])
    before = nodes_of(fleet.document())["a"]["price"]
    catalogs.append(Catalog(types=catalogs[0].types, node_fee=1.0))
    fleet.reprice()
    assert len(decoded(fleet.change())["nodes"]) == 2
    assert nodes_of(fleet.document())["a"]["price"] == before + 1.0


def test_labels_that_each_pod_has_another_value_of_are_left_out() -> None:
    store = ClusterStore()
    for number in range(3):
        labels = {"app": "db", "statefulset.kubernetes.io/pod-name": f"db-{number}"}
        store.pods.put(pod(f"db-{number}", labels=labels))
    assert fleet_of(store).document()["labels"] == [0, [{"app": "db"}]]
