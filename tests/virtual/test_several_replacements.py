"""A command with several replacements, carried out on a virtual cluster: all are launched, or none stays."""

from collections.abc import Sequence

from tests.virtual.worlds import CATALOG, scenario

from karpool.disruption.command import Cause, Command, Method, Move, Replacement
from karpool.disruption.settings import GLOBAL
from karpool.execution.actions import CreateClaim
from karpool.execution.start import start_command
from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model.requirements import Requirements, one_of
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Decisions, DrainPaceLimits, Policy

FOUR, EIGHT, MEMORY = "c-4x-amd64-linux", "c-8x-amd64-linux", "m-4x-amd64-linux"
WEB = "workloads: [{name: web, cpu: '1', memory: 512Mi, replicas: 6}]"


def settled(text: str = WEB, *, disruption: bool = False, pace: DrainPaceLimits | None = None) -> VirtualCluster:
    """A cluster whose pods run."""
    policy = Policy(decisions=Decisions(search=GLOBAL), disruption=disruption, pace=pace or DrainPaceLimits())
    cluster = VirtualCluster(scenario(text), CATALOG, policy=policy)
    cluster.run(600.0)
    assert all(pod.bound for pod in cluster.store.pods)
    return cluster


def begin(cluster: VirtualCluster, types: Sequence[str]) -> Command:
    """Start to replace all nodes by new ones of these types, with pods for each of them."""
    session, store = cluster.controller.session, cluster.store
    assert session is not None
    pods = sorted(pod.key for pod in store.pods)
    sources = {pod.key: pod.spec.node_name for pod in store.pods}
    moves = tuple(Move(key, sources[key], at % len(types)) for at, key in enumerate(pods))
    new = tuple(Replacement("general", _one(name), (name,), "on-demand", (), 0.1) for name in types)
    nodes = tuple(sorted(node.name for node in store.nodes))
    command = Command(Method.MULTI_NODE, Cause.UNDERUTILIZED, nodes, replacements=new, moves=moves)
    daemons = session.cluster_state.snapshot.daemons
    session.execute(start_command(command, store.objects(), cluster.now, session.execution, daemons), in_order=True)
    return command


def _one(name: str) -> Requirements:
    return Requirements([("node.kubernetes.io/instance-type", one_of(name))])


def marks(cluster: VirtualCluster) -> list[str]:
    return [
        claim.name for claim in cluster.store.claims if {COMMAND, REPLACES}.intersection(claim.metadata.annotations)
    ]


def types_of(cluster: VirtualCluster) -> list[str]:
    return sorted(instance.entry.name for instance in cluster.cloud.instances.values())


def test_nodes_go_when_all_replacements_are_ready_and_every_pod_runs_again() -> None:
    cluster = settled()
    command = begin(cluster, [FOUR, FOUR])
    all_ready = None
    while any(name in cluster.store.nodes for name in command.nodes):
        cluster.run(cluster.queue.time + 1.0)
        assert cluster.queue.time < 3600.0
        new = [claim for claim in cluster.store.claims if claim.status.node_name not in command.nodes]
        if all_ready is None and len(new) == 2 and all(claim.is_true("Initialized") for claim in new):
            all_ready = cluster.queue.time
        if all_ready is None:
            assert not any(claim.terminating for claim in cluster.store.claims)
    cluster.run(cluster.queue.time + 120.0)
    assert all_ready is not None
    assert types_of(cluster) == [FOUR, FOUR]
    assert sum(pod.bound for pod in cluster.store.pods) == 6
    assert marks(cluster) == []


def test_one_launch_that_fails_takes_the_others_back() -> None:
    shortage = f"faults: [{{kind: shortage, start: 10m, length: 1h, instanceTypes: [{MEMORY}]}}]"
    cluster = settled(f"{shortage}\n{WEB}")
    before = types_of(cluster)
    command = begin(cluster, [FOUR, MEMORY, FOUR])
    cluster.run(cluster.queue.time + 900.0)
    assert cluster.cloud.failed_launches == 1
    assert types_of(cluster) == before
    assert {node.name for node in cluster.store.nodes} == set(command.nodes)
    assert not any(node.spec.taints for node in cluster.store.nodes)
    assert sum(pod.bound for pod in cluster.store.pods) == 6
    assert marks(cluster) == []


def test_replacements_are_expected_until_the_nodes_that_go_are_gone() -> None:
    cluster = settled()
    command = begin(cluster, [FOUR, EIGHT])
    most = frozenset[str]()
    while any(name in cluster.store.nodes for name in command.nodes):
        cluster.run(cluster.queue.time + 1.0)
        assert cluster.queue.time < 3600.0
        most |= cluster.controller._disruption.policies(cluster.now).nominated
    assert most == {node.name for node in cluster.store.nodes}
    cluster.run(cluster.queue.time + 60.0)
    assert cluster.controller._disruption.policies(cluster.now).nominated == frozenset()


TIGHT = """
workloads:
- {name: large, cpu: 1500m, memory: 512Mi, replicas: 2}
- {name: small, cpu: 1100m, memory: 512Mi, replicas: 4}
"""


def test_pods_of_a_command_get_no_other_nodes_while_it_is_under_way() -> None:
    """A large pod and two small ones fill a node; largest first, two large ones would share one, and a pod be left."""
    # Pods that leave one after the other are spread by the scheduler, and the last one finds no room.
    cluster = settled(TIGHT, pace=DrainPaceLimits(workload_percent=0, pods_percent=0))
    created: list[str] = []
    cluster.actuator.observers.append(
        lambda action: created.append(action.claim.name) if isinstance(action, CreateClaim) else None
    )
    command = begin(cluster, [FOUR, FOUR])
    while any(name in cluster.store.nodes for name in command.nodes):
        cluster.run(cluster.queue.time + 1.0)
        assert cluster.queue.time < 3600.0
    cluster.run(cluster.queue.time + 120.0)
    assert len(created) == 2
    assert all(pod.bound for pod in cluster.store.pods)
