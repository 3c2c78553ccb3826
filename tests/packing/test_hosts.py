"""Rules that name hosts: whoever makes them, they hold on existing nodes."""

import pytest
from msgspec.structs import replace
from tests.factories import Z1, Z2, Z3, affinity_to, daemon_set, local_volume, node, node_term, pod, pv, pvc, spread
from tests.packing import placing, twin
from tests.packing.scenarios import Engine, Scenario

from karpool.model.labels import HOSTNAME, ZONE
from karpool.model.pod import Container, ContainerPort
from karpool.model.scheduling import NodeExpression, NodeTerm

A, B, C = node("a", zone=Z1), node("b", zone=Z2), node("c", zone=Z3)
WEB = {"app": "web"}
SIDECAR = Container(name="proxy", restart_policy="Always", ports=(ContainerPort(host_port=8080),))
SPREAD = {"labels": WEB, "spread": [spread(WEB)], "require": [(HOSTNAME, "In", "a", "b")]}

SCENARIOS = [
    Scenario(
        name="a pod that asks for a host",
        pods=[pod("web-1", require=[(HOSTNAME, "In", "b")])],
        nodes=[A, B],
        pools=[],
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a pod that avoids a host",
        pods=[pod("web-1", require=[(HOSTNAME, "NotIn", "a")])],
        nodes=[A, B],
        pools=[],
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a host that is no longer there",
        pods=[pod("web-1", require=[(HOSTNAME, "In", "z")])],
        nodes=[A, B],
        unplaced=1,
    ),
    Scenario(
        name="a volume that can be reached from one host",
        pods=[pod("web-1", claims=["data"])],
        nodes=[A, B],
        others={
            "persistent_volumes": (pv("v", terms=[node_term((HOSTNAME, "In", "b"))], driver="csi.local"),),
            "persistent_volume_claims": (pvc("data", volume="v", phase="Bound"),),
        },
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a volume that is a directory of one host",
        pods=[pod("web-1", claims=["data"])],
        nodes=[A, B],
        others={
            "persistent_volumes": (local_volume("v", "b"),),
            "persistent_volume_claims": (pvc("data", volume="v", phase="Bound"),),
        },
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a volume that is a directory of a host that is gone",
        pods=[pod("web-1", claims=["data"])],
        nodes=[A, B],
        others={
            "persistent_volumes": (local_volume("v", "z"),),
            "persistent_volume_claims": (pvc("data", volume="v", phase="Bound"),),
        },
        unplaced=1,
    ),
    Scenario(
        name="a pod that asks for a node by its name",
        pods=[pod("web-1", terms=[NodeTerm(match_fields=(NodeExpression("metadata.name", "In", ("b",)),))])],
        nodes=[A, B],
        pools=[],
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a pod that avoids a node by its name",
        pods=[pod("web-1", terms=[NodeTerm(match_fields=(NodeExpression("metadata.name", "NotIn", ("a",)),))])],
        nodes=[A, B],
        pools=[],
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a port of the host that a sidecar takes",
        pods=[pod("web-2", init_containers=[SIDECAR])],
        bound=[pod("web-1", node="a", init_containers=[SIDECAR])],
        nodes=[A, B],
        pools=[],
        placed_on={"web-2": "b"},
    ),
    Scenario(
        name="a port of the host that a container takes only before the others start",
        pods=[pod("web-2", init_containers=[replace(SIDECAR, restart_policy="")])],
        bound=[pod("web-1", node="a", init_containers=[replace(SIDECAR, restart_policy="")])],
        nodes=[A],
        pools=[],
        placed_on={"web-2": "a"},
    ),
    Scenario(
        name="a node that is not ready and does not have its taint yet",
        pods=[pod("web-1")],
        nodes=[node("a", ready=False), B],
        pools=[],
        placed_on={"web-1": "b"},
    ),
    Scenario(
        name="a daemon of another host takes nothing here",
        pods=[pod("web-1", cpu="3")],
        nodes=[A],
        pools=[],
        others={"daemon_sets": (daemon_set("agent", cpu="2", selector={HOSTNAME: "z"}),)},
        placed_on={"web-1": "a"},
    ),
    Scenario(
        name="a spread counts only the hosts its pods may use",
        pods=[pod("web-3", pending=True, **SPREAD)],
        bound=[pod("web-1", node="a", **SPREAD), pod("web-2", node="b", **SPREAD)],
        nodes=[A, B, C],
        pools=[],
    ),
    Scenario(
        name="a peer on a node without the key does not count as the first of its group",
        pods=[pod("web-2", labels=WEB, near=[affinity_to(WEB, ZONE)], pending=True)],
        bound=[pod("web-1", labels=WEB, node="n")],
        nodes=[node("n", zone=None), B],
        pools=[],
        placed_on={"web-2": "b"},
    ),
]


@pytest.mark.parametrize("engine", [placing.place, twin.place], ids=["engine", "twin"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_rules_about_hosts_hold(scenario: Scenario, engine: Engine) -> None:
    scenario.verify(scenario.ask(engine))
