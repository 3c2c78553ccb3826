"""Where pods of commands under way are going, and that decisions count on it."""

from dataclasses import replace

from msgspec.structs import replace as changed
from tests.disruption.scenarios import Scenario, node
from tests.disruption.test_revalidate import context
from tests.factories import claim_for

from karpool.controller.destinations import Destinations
from karpool.controller.store import ClusterStore
from karpool.disruption.command import Cause, Command, Method, Move
from karpool.disruption.context import DecisionContext
from karpool.execution.actions import CreateClaim
from karpool.model.nodepool import NodeClaim

MOVES = (Move("default/a-0", "a", "z"), Move("default/a-1", "a", 0), Move("default/x-0", None, "z"))
COMMAND = Command(Method.MULTI_NODE, Cause.UNDERUTILIZED, ("a",), moves=MOVES)


def new_claim(node_name: str = "") -> NodeClaim:
    machine = node("machine").node
    assert machine is not None
    made = claim_for(machine)
    return changed(made, metadata=changed(made.metadata, name="new"), status=changed(made.status, node_name=node_name))


def started() -> tuple[ClusterStore, Destinations]:
    store = ClusterStore()
    source = node("a").node
    assert source is not None
    store.nodes.put(source)
    destinations = Destinations(store)
    destinations.started(COMMAND, [CreateClaim(new_claim())])
    return store, destinations


def test_a_pod_goes_to_the_node_of_a_replacement_under_the_name_that_it_has_by_then() -> None:
    store, destinations = started()
    assert destinations.by_pod() == {"default/a-0": "z", "default/a-1": "new"}
    store.claims.put(new_claim())
    assert destinations.by_pod()["default/a-1"] == "new"
    store.claims.put(new_claim("machine"))
    assert destinations.by_pod()["default/a-1"] == "machine"


def test_moves_are_forgotten_when_the_node_is_gone() -> None:
    store, destinations = started()
    store.nodes.remove("a")
    assert destinations.by_pod() == {}


def test_moves_are_forgotten_even_if_nobody_asks_for_them() -> None:
    store, destinations = started()
    store.nodes.remove("a")
    destinations.started(replace(COMMAND, moves=()), [])
    assert not destinations._moves


def leaving(**destinations: str) -> DecisionContext:
    """A cluster of which node `a` goes, with room for its pods on three others."""
    nodes = [
        node("a", pods=[{"cpu": 1}] * 2, taints=["karpenter.sh/disrupted:NoSchedule"]),
        *(node(name) for name in "xyz"),
    ]
    made = context(Scenario("", nodes=nodes))
    keys = {f"default/{pod.replace('_', '-')}": name for pod, name in destinations.items()}
    policies = replace(made.policies, in_command=frozenset({"a"}), destinations=keys)
    return DecisionContext(made.engine, policies, made.now)


def homes(held: DecisionContext) -> dict[str, str]:
    with held:
        pods, nodes = held.snapshot.pods, held.snapshot.nodes
        return {key: nodes.get(int(pods.node_of[row])).name for key, row in pods.rows.items()}


def test_decisions_count_pods_where_they_are_going() -> None:
    assert homes(leaving()) == {"default/a-0": "x", "default/a-1": "x"}
    assert sorted(homes(leaving(a_0="z", a_1="y")).values()) == ["y", "z"]


def test_a_destination_that_is_not_there_does_not_matter() -> None:
    assert homes(leaving(a_0="gone", a_1="x")) == {"default/a-0": "x", "default/a-1": "x"}
