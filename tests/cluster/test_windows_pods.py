"""Pods that run on Windows nodes ask for Windows, whether they say so or not."""

from tests.factories import claim_for, node, node_pool, pod, spread

from karpool.cluster.pairing import join
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import OS
from karpool.model.objects import Objects

WINDOWS = node("win", labels={OS: "windows"})
LINUX = node("lin", labels={OS: "linux"})
NODES = (WINDOWS, LINUX)


def cluster(*nodes: str, on: str | None) -> Objects:
    here = tuple(entry for entry in NODES if entry.name in nodes)
    claims = tuple(map(claim_for, here))
    return Objects(nodes=here, node_claims=claims, node_pools=(node_pool(),), pods=(pod("web-1", node=on),))


def suited(snapshot: Snapshot) -> dict[str, bool]:
    """By node: whether it suits the pod."""
    number = int(snapshot.pods.class_of[snapshot.pods.rows["default/web-1"]])
    suits = snapshot.shapes.suits[snapshot.classes.signature[number]]
    return {name: bool(suits[snapshot.nodes.shape[row]]) for name, row in snapshot.nodes.rows.items()}


def test_a_pod_on_a_windows_node_goes_to_no_node_of_linux() -> None:
    assert suited(Snapshot(cluster("win", "lin", on="win"))) == {"win": True, "lin": False}
    assert suited(Snapshot(cluster("win", "lin", on="lin"))) == {"win": False, "lin": True}


def test_a_pod_that_comes_to_a_windows_node_later_asks_for_it_from_then_on() -> None:
    snapshot = Snapshot(cluster("win", "lin", on=None))
    assert suited(snapshot) == {"win": False, "lin": True}
    snapshot.put_pod(pod("web-1", node="win"))
    assert suited(snapshot) == {"win": True, "lin": False}
    snapshot.put_pod(pod("web-1", node="lin"))
    assert suited(snapshot) == {"win": False, "lin": True}


def test_a_windows_node_that_is_seen_after_its_pods_is_theirs() -> None:
    snapshot = Snapshot(cluster("lin", on="win"))
    (state,) = join((WINDOWS,), (claim_for(WINDOWS),))
    snapshot.put_node(state)
    assert suited(snapshot) == {"win": True, "lin": False}


def test_a_node_that_is_told_later_to_run_windows_and_one_that_no_longer_does() -> None:
    snapshot = Snapshot(cluster("win", "lin", on="win"))
    for labels, own in (({OS: "linux"}, False), ({OS: "windows"}, True)):
        changed = node("win", labels=labels)
        (state,) = join((changed,), (claim_for(changed),))
        snapshot.put_node(state)
        assert suited(snapshot) == ({"win": True, "lin": False} if own else {"win": True, "lin": True})
    snapshot.remove_node("win")
    assert not snapshot.pods.windows
    assert suited(snapshot) == {"lin": True}


def test_domains_are_counted_as_kube_scheduler_counts_them_whatever_runs_windows() -> None:
    """It looks at selectors and affinities for them, and neither at the system of a pod nor at that of its node."""
    spreads = pod("web-1", node="win", spread=[spread({"app": "web"})])
    objects = Objects(nodes=NODES, node_claims=tuple(map(claim_for, NODES)), node_pools=(node_pool(),), pods=(spreads,))
    snapshot = Snapshot(objects)
    assert suited(snapshot) == {"win": True, "lin": False}
    (group,) = snapshot.classes.constraints[int(snapshot.pods.class_of[0])].levels[0].groups
    assert group.nodes.alternatives == ()
