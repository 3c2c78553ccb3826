"""What cannot be read: the nodes that it bears on neither give pods away nor take any, and say why."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import CATALOG, NOW, POOL, NodeWithPods, Scenario, either_search, node, pool_of
from tests.factories import (
    affinity_to,
    csi_node,
    daemon_set,
    namespace,
    node_claim,
    pdb,
    pod,
    pv,
    pvc,
    storage_class,
)
from tests.factories.unreadable import unreadable
from tests.tables import row, table

from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import context_of, plan
from karpool.disruption.settings import DisruptionSettings
from karpool.model.objects import Objects
from karpool.packing.options import Options

Spoil = Callable[[Objects], Objects]


def two_nodes() -> Objects:
    """`a` has one pod, which fits on `b`, whose pods fit nowhere else; each pod has a volume."""
    pods = [pod("a-0", node="a", cpu="1", claims=["disk-a"]), pod("b-0", node="b", cpu="2", claims=["disk-b"])]
    volumes = [pv(f"pv-{name}", driver="csi.example.com") for name in "ab"]
    return Objects(
        nodes=tuple(entry.node for entry in (node("a", "small"), node("b", "medium")) if entry.node),
        node_claims=tuple(entry.claim for entry in (node("a", "small"), node("b", "medium")) if entry.claim),
        node_pools=(POOL,),
        pods=tuple(pods),
        persistent_volume_claims=tuple(pvc(f"disk-{name}", volume=f"pv-{name}") for name in "ab"),
        persistent_volumes=tuple(volumes),
        storage_classes=(storage_class(),),
        csi_nodes=(csi_node("a"), csi_node("b")),
        namespaces=(namespace("default"),),
        daemon_sets=(daemon_set(cpu="10m", memory=None),),
    )


def spoil(collection: str, key: str, **fields: object) -> Spoil:
    """Make one object of a collection unreadable."""

    def spoilt(objects: Objects) -> Objects:
        entries = getattr(objects, collection)
        assert any(entry.key == key for entry in entries)
        return replace(
            objects,
            **{collection: tuple(unreadable(e, **fields) if e.key == key else e for e in entries)},
        )

    return spoilt


def codes(objects: Objects, **settings: str) -> dict[str, list[str]]:
    made = plan(objects, CATALOG, now=NOW, settings=DisruptionSettings(**settings), most_steps=3)  # type: ignore[arg-type]
    return {fate.candidate.name: [reason.code for reason in fate.reasons] for fate in made.fates}


def test_without_anything_unreadable_the_node_goes() -> None:
    assert codes(two_nodes())["a"] == ["Underutilized"]


@table(
    row("its Node", change=spoil("nodes", "a")),
    row("its NodeClaim", change=spoil("node_claims", "a")),
    row("its NodePool", change=spoil("node_pools", "default")),
    row("a pod on it", change=spoil("pods", "default/a-0")),
    row("a claim of a pod on it", change=spoil("persistent_volume_claims", "default/disk-a")),
    row("a volume of a pod on it", change=spoil("persistent_volumes", "pv-a")),
    row("its CSINode", change=spoil("csi_nodes", "a")),
    row("the namespace of a pod on it", change=spoil("namespaces", "default")),
    row("a DaemonSet", change=spoil("daemon_sets", "kube-system/agent")),
    row("the node of some pod", change=spoil("pods", "default/b-0", spec__nodeName=7)),
    row("the name of some node", change=spoil("nodes", "b", metadata__name=7)),
)
@pytest.mark.parametrize("search", ["prefix", "global"])
def test_a_node_stays_while_this_cannot_be_read(change: Spoil, search: str) -> None:
    assert codes(change(two_nodes()), search=search)["a"] == ["Unreadable"]


@table(
    row("its Node", change=spoil("nodes", "b")),
    row("its NodeClaim", change=spoil("node_claims", "b")),
    row("a pod on it", change=spoil("pods", "default/b-0")),
    row("a claim of a pod on it", change=spoil("persistent_volume_claims", "default/disk-b")),
    row("a volume of a pod on it", change=spoil("persistent_volumes", "pv-b")),
    row("its CSINode", change=spoil("csi_nodes", "b")),
)
@pytest.mark.parametrize("search", ["prefix", "global"])
def test_no_pod_is_sent_to_a_node_while_this_cannot_be_read(change: Spoil, search: str) -> None:
    objects = change(two_nodes())
    made = plan(objects, CATALOG, now=NOW, settings=DisruptionSettings(search=search))  # type: ignore[arg-type]
    reasons = {fate.candidate.name: fate.reasons for fate in made.fates}
    assert "Unreadable" in [reason.code for reason in reasons["b"]]
    assert not any(move.target == "b" for step in made.steps for move in step.command.moves)


def test_the_reason_names_the_object_and_the_field() -> None:
    made = plan(spoil("pods", "default/a-0")(two_nodes()), CATALOG, now=NOW)
    (reason,) = next(fate.reasons for fate in made.fates if fate.candidate.name == "a")
    assert reason.object == "Pod default/a-0"
    assert reason.message == "cannot be read: spec.containers: expected a list, got text"


def test_explain_shows_what_cannot_be_read_as_a_rule() -> None:
    objects = spoil("nodes", "a")(two_nodes())
    context = context_of(objects, CATALOG, now=NOW, settings=DisruptionSettings(), options=Options())
    told = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    broken = [outcome for outcome in told.outcomes if outcome.rule == "all that bears on it can be read"]
    assert [(outcome.passed, outcome.reason.code if outcome.reason else "") for outcome in broken] == [
        (False, "Unreadable")
    ]


def far_apart() -> list[NodeWithPods]:
    return [node("a", "small", pods=1), node("b", "medium", pods=2)]


@either_search(
    [
        Scenario(
            "pods of the namespace of a budget that cannot be read are not moved",
            nodes=far_apart(),
            pdbs=[unreadable(pdb("web", {"app": "web"}, allowed=1))],
            reasons={"a": "Unreadable", "b": "Unreadable"},
            messages={"a": "PodDisruptionBudget default/web cannot be read: spec.selector"},
        ),
        Scenario(
            "those of other namespaces are",
            nodes=far_apart(),
            pdbs=[unreadable(pdb("web", {"app": "web"}, allowed=1, namespace="other"))],
            removes="b",
        ),
        Scenario(
            "a budget whose namespace cannot be read may cover any pod",
            nodes=far_apart(),
            pdbs=[unreadable(pdb("web", {"app": "web"}, allowed=1), metadata__namespace=7)],
            reasons={"a": "Unreadable"},
        ),
        Scenario(
            "drift with a termination grace period does not overrule it",
            nodes=[node("a", pods=1, claim={"drifted": True, "termination_grace_period": "1h"}), node("b", pods=1)],
            pdbs=[unreadable(pdb("web", {"app": "web"}, allowed=1))],
            reasons={"a": "Unreadable"},
        ),
        Scenario(
            "a finished pod that cannot be read holds nobody",
            nodes=far_apart(),
            pods=[unreadable(replace(pod("x", node="a"), status=replace(pod("x").status, phase="Failed")))],
            removes="b",
        ),
        Scenario(
            "a pending pod that cannot be read is named, and nothing else",
            nodes=far_apart(),
            pods=[unreadable(pod("lost", pending=True))],
            removes="b",
            check=lambda made: [(key, why.code) for key, why in made.unschedulable] == [("default/lost", "Unreadable")],
        ),
        Scenario(
            "an empty node with a daemon pod that cannot be read stays",
            nodes=[node("a", pods=[unreadable(pod("agent-1", node="a", owner="DaemonSet"))])],
            reasons={"a": "Unreadable"},
        ),
        Scenario(
            "a pod that selects namespaces by label stays while one cannot be read",
            nodes=[node("a", "small", pods=[{"near": [affinity_to({"x": "y"}, namespace_selector={"t": "1"})]}])],
            other_objects={"namespaces": (unreadable(namespace("other", t="1")),)},
            reasons={"a": "Unreadable"},
        ),
        Scenario(
            "a storage class holds the pods whose volumes are still to come",
            nodes=[node("a", "small", pods=[{"claims": ["data"]}]), node("b", "small", pods=3)],
            other_objects={
                "persistent_volume_claims": (pvc("data", storage_class="standard"),),
                "storage_classes": (unreadable(storage_class()),),
            },
            reasons={"a": "Unreadable"},
        ),
        Scenario(
            "a pool with a claim that cannot be read supplies nothing",
            nodes=[
                node("a", "large", pods=1),
                NodeWithPods(None, unreadable(node_claim("lost", launched=False)), ()),
            ],
            reasons={"a": "PodsWouldNotFit"},
            messages={"a": "pool default: has a Node or a NodeClaim that cannot be read"},
        ),
        Scenario(
            "a node that would accept the pod is told as unreadable",
            nodes=[node("a", "small", pods=1), node("b", pods=[{}, unreadable(pod("lost", node="b"))])],
            pools=[pool_of(limits={"cpu": 1})],
            reasons={"a": "PodsWouldNotFit", "b": "Unreadable"},
            messages={"a": "1 node: would accept it, but something that bears on it cannot be read"},
        ),
    ]
)
def test_scenario(scenario: Scenario) -> None:
    scenario.verify()
