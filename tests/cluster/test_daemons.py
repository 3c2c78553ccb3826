"""What DaemonSets take of a node, also when only their pods tell of them."""

from tests.factories import daemon_set, pod

from karpool.cluster.daemons import daemons
from karpool.model.labels import ZONE
from karpool.wire.quantity import parse_quantity


def test_the_newest_live_pod_speaks_for_its_daemon_set() -> None:
    entry = daemon_set("agent", cpu="100m")
    live = pod("agent-x", namespace=entry.metadata.namespace, cpu="200m", owner="DaemonSet", node="n1")
    (daemon,) = daemons([entry], [live])
    assert daemon.requests["cpu"] == parse_quantity("200m")


def test_a_daemon_set_that_only_its_pods_tell_of_counts_once() -> None:
    live = [
        pod(f"agent-{name}", cpu="1500m", owner="DaemonSet", node=name, selector={ZONE: "z"}) for name in ("a", "b")
    ]
    (daemon,) = daemons([], live)
    assert daemon.requests["cpu"] == parse_quantity("1500m")
    assert daemon.runs_on({ZONE: "z"}, ())
    assert not daemon.runs_on({ZONE: "y"}, ())
